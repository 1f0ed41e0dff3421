#include <cstddef>

#include "tessera/tile/cpu/nest.h"

namespace tessera::tile::cpu {
namespace {

/// Index map of a reshape that adds and removes axes of extent 1: the operand's axes by the
/// result's.
std::optional<IndexMap> unit_axes_map(const Extents& from, const Extents& to, const IndexMap& map) {
  IndexMap result;
  std::size_t j = 0;
  for (const std::int64_t extent : from) {
    if (extent == 1) {
      result.push_back({-1, 0});
      continue;
    }
    while (j < to.size() && to[j] == 1) ++j;
    if (j == to.size() || to[j] != extent) return {};
    result.push_back(map[j++]);
  }
  while (j < to.size() && to[j] == 1) ++j;
  if (j != to.size()) return {};
  return result;
}

}  // namespace

IndexMap identity_map(std::size_t rank) {
  IndexMap map;
  for (std::size_t i = 0; i < rank; ++i) map.push_back({static_cast<int>(i), 0});
  return map;
}

std::optional<IndexMap> operand_map(const Kernel& kernel, const Operation& op,
                                    const IndexMap& map) {
  switch (op.code) {
    case Code::Broadcast: {
      const Extents& from = kernel.type(op.in[0]).shape;
      IndexMap result = map;
      if (from.empty()) return IndexMap{};
      for (std::size_t i = 0; i < from.size(); ++i) {
        if (from[i] == 1) result[i] = {-1, 0};
      }
      return result;
    }
    case Code::Permute: {
      IndexMap result(map.size());
      for (std::size_t i = 0; i < map.size(); ++i) {
        result[static_cast<std::size_t>(op.ints[i])] = map[i];
      }
      return result;
    }
    case Code::Slice: {
      IndexMap result = map;
      for (std::size_t i = 0; i < map.size(); ++i) result[i].offset += op.ints[i];
      return result;
    }
    case Code::Reshape:
      return unit_axes_map(kernel.type(op.in[0]).shape, kernel.type(op.out[0]).shape, map);
    case Code::Hint: return map;
    default: return {};
  }
}

std::optional<ValueId> parameter_of(const Kernel& kernel,
                                    const std::vector<std::optional<OpId>>& definition,
                                    ValueId value) {
  while (definition[value]) {
    const Operation& op = kernel.ops[*definition[value]];
    switch (op.code) {
      case Code::Offset:
      case Code::View:
      case Code::Base:
      case Code::Hint:
      case Code::Broadcast:
      case Code::Reshape:
      case Code::Permute:
      case Code::Slice: value = op.in[0]; break;
      case Code::Bitcast:
        if (!kernel.type(op.in[0]).is_pointer() || !kernel.type(value).is_pointer()) return {};
        value = op.in[0];
        break;
      default: return {};
    }
  }
  for (const ValueId param : kernel.params()) {
    if (param == value) return value;
  }
  return {};
}

}  // namespace tessera::tile::cpu
