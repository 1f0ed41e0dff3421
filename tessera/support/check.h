#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace tessera {

/// Violation of an internal invariant, thrown by TESSERA_CHECK only and never for bad input. The
/// command line and the language bindings catch it and ask for a bug report.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void fail_check(const char* file, int line, const char* condition,
                             const std::string& message);

}  // namespace tessera

/// Asserts an invariant, in release builds too. The condition must be free of side effects.
#define TESSERA_CHECK(condition, ...)                                                    \
  do {                                                                                   \
    if (!(condition)) [[unlikely]]                                                       \
      ::tessera::fail_check(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
  } while (false)
