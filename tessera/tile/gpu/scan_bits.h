#pragma once

#include <vector>

#include "tessera/tile/gpu/layout.h"

namespace tessera::tile::gpu {

/// Location of an index bit along the axis of a scan.
struct ScanBit {
  bool in_registers = false;
  int bit = 0;  // of the register index or of the thread index
};
/// Index bits along an axis, from the lowest on.
std::vector<ScanBit> scan_bits(const Layout& layout, int axis);

}  // namespace tessera::tile::gpu
