#include "tessera/tile/gpu/scan_bits.h"

#include <map>

namespace tessera::tile::gpu {

std::vector<ScanBit> scan_bits(const Layout& layout, int axis) {
  std::map<int, ScanBit> places;
  const auto add = [&](const std::vector<IndexBit>& bits, bool in_registers) {
    for (std::size_t i = 0; i < bits.size(); ++i)
      if (bits[i].axis == axis) places[bits[i].bit] = {in_registers, static_cast<int>(i)};
  };
  add(layout.register_bits(), true);
  add(layout.thread_bits(), false);
  std::vector<ScanBit> in_order;
  for (const auto& [bit, place] : places) in_order.push_back(place);
  return in_order;
}

}  // namespace tessera::tile::gpu
