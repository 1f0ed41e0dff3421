#include "tessera/support/check.h"

namespace tessera {

void fail_check(const char* file, int line, const char* condition, const std::string& message) {
  throw InternalError(fmt::format("{}:{}: {} does not hold: {}", file, line, condition, message));
}

}  // namespace tessera
