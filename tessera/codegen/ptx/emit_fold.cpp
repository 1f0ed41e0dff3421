#include <algorithm>
#include <limits>
#include <utility>

#include "tessera/codegen/ptx/emitter.h"
#include "tessera/codegen/ptx/functions.h"

namespace tessera::codegen::ptx {
namespace {

/// Registers of a layout whose bits along an axis are 0, with the registers that each is reduced
/// over, in the order of their index.
std::vector<std::vector<int>> groups(const Layout& layout, int axis) {
  std::vector<std::vector<int>> groups;
  for (int reg = 0; reg < layout.registers(); ++reg)
    if (layout.offset(axis, reg) == 0) groups.emplace_back();
  std::vector<int> members(groups.size(), 0);
  for (int reg = 0; reg < layout.registers(); ++reg) {
    std::size_t group = 0, bit = 0;
    for (std::size_t i = 0; i < layout.register_bits().size(); ++i)
      if (layout.register_bits()[i].axis != axis)
        group |= static_cast<std::size_t>((reg >> i) & 1) << bit++;
    groups[group].push_back(reg);
  }
  for (std::vector<int>& group : groups) {
    std::sort(group.begin(), group.end(),
              [&](int a, int b) { return layout.offset(axis, a) < layout.offset(axis, b); });
  }
  return groups;
}

}  // namespace

bool widens(const tile::Operation& op, DType dtype) {
  const bool rounds = op.function == tile::Function::Add || op.function == tile::Function::Mul;
  return rounds && (dtype == DType::F16 || dtype == DType::BF16);
}

DType Emitter::part_type(const Operation& fold) const {
  return widens(fold, dtype(fold.in[0])) ? DType::F32 : dtype(fold.in[0]);
}

std::optional<Emitter::Factors> Emitter::factors_of(const Operation& sum, const Layout& layout) {
  const ValueId in = sum.in[0];
  if (!sum.regions.empty() || sum.function != tile::Function::Add || dtype(in) != DType::F32)
    return {};
  if (!definitions_[in] || uses_[in] != 1) return {};
  const Operation& product = kernel_.ops[*definitions_[in]];
  if (product.code != tile::Code::Map || product.function != tile::Function::Mul) return {};
  return Factors{tile(product.in[0], layout), tile(product.in[1], layout)};
}

Emitter::Elements Emitter::combine(const Operation& op, const Elements& left,
                                   const Elements& right) {
  if (op.regions.empty()) {
    const DType of = widens(op, dtype(op.in[0])) ? DType::F32 : dtype(op.in[0]);
    const Pieces operands[] = {{left[0]}, {right[0]}};
    return emit_map(ir_, op.function, of, operands, options_.precision);
  }
  const tile::Region& body = op.regions[0];
  for (std::size_t i = 0; i < left.size(); ++i) {
    scalars_[body.params[i]] = left[i];
    scalars_[body.params[left.size() + i]] = right[i];
  }
  region(body);
  Elements combined;
  for (const ValueId id : kernel_.ops[body.ops.back()].in)
    combined.push_back(error_ ? left[combined.size()] : scalar(id));
  return combined;
}

Emitter::Elements Emitter::joined(const Operation& op, bool padded, const Elements& left,
                                  const Elements& right) {
  if (!padded) return combine(op, left, right);
  Elements both = combine(op, {left.begin(), left.end() - 1}, {right.begin(), right.end() - 1});
  // Valid elements come first along the axis: without a right one, the left one is the result.
  for (std::size_t i = 0; i < both.size(); ++i)
    both[i] = ir_.CreateSelect(right.back(), both[i], left[i]);
  both.push_back(left.back());
  return both;
}

// Partial results are combined first in a thread, then between the lanes of a warp, then between
// warps. User-defined combiners are applied in the order of the index: they need not commute.
// Padding elements are skipped: the last element of each list is a validity flag.
void Emitter::reduce(const Operation& op) {
  const auto is_open = [&](ValueId id) {
    return std::any_of(folds_.begin(), folds_.end(), [&](const Fold& fold) {
      return std::find(fold.op->out.begin(), fold.op->out.end(), id) != fold.op->out.end();
    });
  };
  if (!op.regions.empty() || std::any_of(op.in.begin(), op.in.end(), is_open)) finish_folds();
  const int axis = static_cast<int>(op.ints[0]);
  const tile::Extents& shape = type(op.in[0]).shape;
  const Layout layout = [&] {
    if (!op.regions.empty()) return Layout::in_order(shape, axis, block_.threads());
    const std::optional<Layout>& given = plan_.home(op.in[0]);
    return given ? *given : plan_.standard(shape);
  }();
  const bool padded = layout.extent(axis) > shape[static_cast<std::size_t>(axis)];
  const bool wide = widens(op, dtype(op.in[0]));

  std::vector<DType> types;
  std::vector<Pieces> inputs;
  for (const ValueId id : op.in) {
    inputs.push_back(tile(id, layout));
    types.push_back(wide ? DType::F32 : dtype(id));
    if (wide) inputs.back() = emit_conversion(ir_, inputs.back(), dtype(id), DType::F32);
  }
  if (padded) {
    Pieces counts;
    for (int reg = 0; reg < layout.registers(); ++reg)
      counts.push_back(ir_.CreateICmpULT(block_.index(layout, axis, reg),
                                         block_.i32(shape[static_cast<std::size_t>(axis)])));
    inputs.push_back(std::move(counts));
    types.push_back(DType::Bool);
  }
  const auto join = [&](const Elements& left, const Elements& right) {
    return joined(op, padded, left, right);
  };

  const std::optional<Factors> factors = padded ? std::nullopt : factors_of(op, layout);
  std::vector<Elements> parts;
  for (const std::vector<int>& group : groups(layout, axis)) {
    std::vector<Elements> level;
    for (const int reg : group) {
      level.emplace_back();
      for (const Pieces& input : inputs)
        level.back().push_back(input[static_cast<std::size_t>(reg)]);
    }
    if (factors && level.size() > 1) {
      std::vector<Elements> upper;
      for (std::size_t i = 0; i < level.size(); i += 2)
        upper.push_back(
            {factors->plus(ir_, static_cast<std::size_t>(group[i]), level[i + 1].front())});
      level = std::move(upper);
    }
    while (level.size() > 1) {  // a tree: short chains, small errors
      std::vector<Elements> upper;
      for (std::size_t i = 0; i < level.size(); i += 2)
        upper.push_back(join(level[i], level[i + 1]));
      level = std::move(upper);
    }
    parts.push_back(std::move(level.front()));
  }

  Fold fold{&op, layout.without(axis), {}, {}, std::move(types), std::move(parts), padded, wide};
  const std::vector<IndexBit>& bits = layout.thread_bits();
  for (int bit = 0; bit < static_cast<int>(bits.size()); ++bit)
    if (bits[static_cast<std::size_t>(bit)].axis == axis)
      (bit < kLaneBits ? fold.lane_bits : fold.warp_bits).push_back(bit);
  folds_.push_back(std::move(fold));
  if (!op.regions.empty()) finish_folds();
}

void Emitter::fold_lanes(Fold& fold, int bit) {
  const Operation& op = *fold.op;
  const bool ordered = !op.regions.empty() || fold.padded;
  llvm::Value* upper = ordered ? ir_.CreateIsNotNull(block_.thread_bits(bit, 1)) : nullptr;
  for (Elements& part : fold.parts) {
    Elements other;
    for (llvm::Value* value : part) other.push_back(block_.across(value, bit));
    if (!ordered) {
      part = joined(op, fold.padded, part, other);
      continue;
    }
    Elements left, right;
    for (std::size_t i = 0; i < part.size(); ++i) {
      left.push_back(ir_.CreateSelect(upper, other[i], part[i]));
      right.push_back(ir_.CreateSelect(upper, part[i], other[i]));
    }
    part = joined(op, fold.padded, left, right);
  }
}

// Lanes exchange partial results, for one reduction after the other in each step; then each warp
// stores its partial results, and all warps load them in order.
void Emitter::finish_folds() {
  if (folds_.empty()) return;
  std::vector<Fold> folds = std::exchange(folds_, {});
  for (int bit = 0; bit < kLaneBits; ++bit)
    for (Fold& fold : folds)
      if (std::count(fold.lane_bits.begin(), fold.lane_bits.end(), bit) > 0) fold_lanes(fold, bit);
  struct Exchange {
    std::vector<Block::Buffer> buffers = {};
    std::int64_t warps = 1;
  };
  std::vector<Exchange> exchanges(folds.size());
  std::int64_t bytes = 0;
  for (std::size_t f = 0; f < folds.size(); ++f) {
    const Fold& fold = folds[f];
    if (fold.warp_bits.empty()) continue;
    exchanges[f].warps = std::int64_t{1} << fold.warp_bits.size();
    tile::Extents extents;
    for (int a = 0; a < fold.rest.rank(); ++a) extents.push_back(fold.rest.extent(a));
    extents.push_back(exchanges[f].warps);  // last, so that a thread reads neighbours
    for (const DType of : fold.types) {
      exchanges[f].buffers.push_back(Block::buffer(extents, of));
      exchanges[f].buffers.back().offset = bytes;
      bytes += (exchanges[f].buffers.back().bytes() + 15) / 16 * 16;
    }
  }
  const auto indices = [&](const Fold& fold, int reg, llvm::Value* warp) {
    std::vector<llvm::Value*> indices;
    for (int a = 0; a < fold.rest.rank(); ++a) indices.push_back(block_.index(fold.rest, a, reg));
    indices.push_back(warp);
    return indices;
  };
  if (bytes > 0) {
    const bool once = mapping_.rows && !mapping_.persistent;
    const std::int64_t base = once ? block_.fresh(bytes) : block_.scratch(bytes);
    for (std::size_t f = 0; f < folds.size(); ++f) {
      const Fold& fold = folds[f];
      llvm::Value* own = block_.i32(0);
      for (std::size_t i = 0; i < fold.warp_bits.size(); ++i)
        own = ir_.CreateOr(own, ir_.CreateShl(block_.thread_bits(fold.warp_bits[i], 1),
                                              block_.i32(static_cast<std::int64_t>(i))));
      for (std::size_t i = 0; i < exchanges[f].buffers.size(); ++i) {
        Block::Buffer& buffer = exchanges[f].buffers[i];
        buffer.offset += base;
        const auto align = llvm::Align(static_cast<std::uint64_t>(byte_width(buffer.dtype)));
        for (int reg = 0; reg < fold.rest.registers(); ++reg) {
          llvm::Value* value = fold.parts[static_cast<std::size_t>(reg)][i];
          ir_.CreateAlignedStore(block_.pack({&value, 1}, buffer.dtype),
                                 block_.address(buffer, indices(fold, reg, own)), align);
        }
      }
    }
    block_.barrier();
  }
  for (std::size_t f = 0; f < folds.size(); ++f) {
    Fold& fold = folds[f];
    const Operation& op = *fold.op;
    for (int reg = 0; reg < fold.rest.registers() && !exchanges[f].buffers.empty(); ++reg) {
      Elements sum;
      for (std::int64_t warp = 0; warp < exchanges[f].warps; ++warp) {
        Elements part;
        for (const Block::Buffer& buffer : exchanges[f].buffers)
          part.push_back(block_.take_one(buffer, indices(fold, reg, block_.i32(warp))));
        sum = warp == 0 ? part : joined(op, fold.padded, sum, part);
      }
      fold.parts[static_cast<std::size_t>(reg)] = std::move(sum);
    }
  }
  if (bytes > 0) block_.forget();
  for (const Fold& fold : folds) {
    const Operation& op = *fold.op;
    for (std::size_t i = 0; i < op.out.size(); ++i) {
      const ValueId out = op.out[i];
      Pieces registers;
      for (const Elements& part : fold.parts) registers.push_back(part[i]);
      if (fold.wide) registers = emit_conversion(ir_, registers, DType::F32, dtype(out));
      const Layout& rest = fold.rest;
      if (!type(out).is_scalar() && rest != home(out))
        registers = block_.convert(registers, dtype(out), rest, home(out));
      define(out, type(out).is_scalar() ? rest : home(out), std::move(registers));
    }
  }
  unpack_again();
}

}  // namespace tessera::codegen::ptx
