#include "tessera/lower/group.h"

namespace tessera::lower {

Expected<Attempt> lower_rows(const Group&, const machine::Machine&, const GroupOptions&) {
  return Attempt{};
}

}  // namespace tessera::lower
