#include "tessera/lower/group.h"

namespace tessera::lower {

Expected<Attempt> lower_attention(const Group&, const machine::Machine&, const GroupOptions&) {
  return Attempt{};
}

}  // namespace tessera::lower
