#include "tessera/codegen/ptx/reduction_writer.h"

#include <algorithm>
#include <utility>

#include "tessera/codegen/ptx/functions.h"
#include "tessera/tile/gpu/accumulation.h"

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

DType ReductionWriter::part_type(const Operation& fold) const {
  return tile::gpu::widens(fold, dtype(fold.in[0])) ? DType::F32 : dtype(fold.in[0]);
}

llvm::Value* ReductionWriter::neutral(const Operation& op) {
  const DType of = part_type(op);
  return constant(tile::Type::scalar(of), *tile::neutral_of(op.function, of));
}

ReductionWriter::Elements ReductionWriter::combine(const Operation& op, const Elements& left,
                                                   const Elements& right) {
  if (op.regions.empty()) {
    const DType of = part_type(op);
    const Pieces operands[] = {{left[0]}, {right[0]}};
    return emit_map(ir_, op.function, of, operands, options_.precision);
  }
  const tile::Region& body = op.regions[0];
  for (std::size_t i = 0; i < left.size(); ++i) {
    values_.scalars[body.params[i]] = left[i];
    values_.scalars[body.params[left.size() + i]] = right[i];
  }
  const OpId yield = body.ops.back();
  for (const OpId id : body.ops)
    if (id != yield) evaluator_.evaluate(operation(id));
  Elements combined;
  for (const ValueId id : operation(yield).in) combined.push_back(scalar(id));
  return combined;
}

ReductionWriter::Elements ReductionWriter::joined(const Operation& op, bool padded,
                                                  const Elements& left, const Elements& right) {
  if (!padded) return combine(op, left, right);
  Elements both = combine(op, {left.begin(), left.end() - 1}, {right.begin(), right.end() - 1});
  // Valid elements come first along the axis: without a right one, the left one is the result.
  for (std::size_t i = 0; i < both.size(); ++i)
    both[i] = ir_.CreateSelect(right.back(), both[i], left[i]);
  both.push_back(left.back());
  return both;
}

Pieces ReductionWriter::fused_sums(const Operation& sum, const Layout& layout, const Pieces& level,
                                   const std::vector<int>& registers) {
  const Operation& product = *planned_.defining_op(sum.in[0]);
  const Pieces a = tile(product.in[0], layout), b = tile(product.in[1], layout);
  const auto axis = static_cast<int>(sum.ints[0]);
  const std::int64_t extent = type(sum.in[0]).shape[static_cast<std::size_t>(axis)];
  Pieces upper;
  for (std::size_t i = 0; i + 1 < level.size(); i += 2) {
    const auto reg = static_cast<std::size_t>(registers[i]);
    if (block_.is_below(layout, axis, registers[i], extent) != ir_.getTrue()) {  // may be padding
      upper.push_back(combine(sum, {level[i]}, {level[i + 1]}).front());
      continue;
    }
    upper.push_back(ir_.CreateIntrinsic(llvm::Intrinsic::fma, {level[i + 1]->getType()},
                                        {a[reg], b[reg], level[i + 1]}));
  }
  return upper;
}

// User-defined combiners are applied in the order of the index: they need not commute. Padding
// elements are skipped: the last element of each list is a validity flag.
void ReductionWriter::write(const tile::gpu::ReduceInThread& reduce) {
  const Operation& op = operation(reduce.op);
  const int axis = static_cast<int>(op.ints[0]);
  const tile::Extents& shape = type(op.in[0]).shape;
  const Layout& layout = reduce.layout;
  const std::int64_t extent = shape[static_cast<std::size_t>(axis)];
  const bool padded = tile::gpu::carries_validity(op, type(op.in[0]), layout);
  const bool wide = tile::gpu::widens(op, dtype(op.in[0]));

  Fold fold{layout, {}, {}, {}, {}, padded, wide};
  std::vector<Pieces> inputs;
  for (const ValueId id : op.in) {
    inputs.push_back(tile(id, layout));
    fold.types.push_back(wide ? DType::F32 : dtype(id));
    if (wide) inputs.back() = emit_conversion(ir_, inputs.back(), dtype(id), DType::F32);
  }
  if (padded) {
    Pieces counts;
    for (int reg = 0; reg < layout.registers(); ++reg)
      counts.push_back(block_.is_below(layout, axis, reg, extent));
    inputs.push_back(std::move(counts));
    fold.types.push_back(DType::Bool);
  } else if (layout.extent(axis) > extent) {
    llvm::Value* none = neutral(op);
    for (int reg = 0; reg < layout.registers(); ++reg) {
      llvm::Value*& value = inputs.front()[static_cast<std::size_t>(reg)];
      value = ir_.CreateSelect(block_.is_below(layout, axis, reg, extent), value, none);
    }
  }
  for (const std::vector<int>& group : groups(layout, axis)) {
    std::vector<Elements> level;
    for (const int reg : group) {
      level.emplace_back();
      for (const Pieces& input : inputs)
        level.back().push_back(input[static_cast<std::size_t>(reg)]);
    }
    if (reduce.fma && level.size() > 1) {
      Pieces products;
      for (const Elements& one : level) products.push_back(one.front());
      level.clear();
      for (llvm::Value* sum : fused_sums(op, layout, products, group)) level.push_back({sum});
    }
    while (level.size() > 1) {  // a tree: short chains, small errors
      std::vector<Elements> upper;
      for (std::size_t i = 0; i < level.size(); i += 2)
        upper.push_back(joined(op, padded, level[i], level[i + 1]));
      level = std::move(upper);
    }
    fold.parts.push_back(std::move(level.front()));
  }
  start(reduce.op, layout, std::move(fold));
}

void ReductionWriter::start(OpId id, const Layout& layout, Fold fold) {
  const int axis = static_cast<int>(operation(id).ints[0]);
  fold.rest = layout.without(axis);
  const std::vector<IndexBit>& bits = layout.thread_bits();
  for (int bit = 0; bit < static_cast<int>(bits.size()); ++bit)
    if (bits[static_cast<std::size_t>(bit)].axis == axis)
      (bit < kLaneBits ? fold.lane_bits : fold.warp_bits).push_back(bit);
  folds_.insert_or_assign(id, std::move(fold));
}

void ReductionWriter::fold_lanes(const Operation& op, Fold& fold, int bit) {
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

void ReductionWriter::write(const tile::gpu::ReduceInWarp& reduce) {
  for (int bit = 0; bit < kLaneBits; ++bit)
    for (const OpId id : reduce.ops) {
      Fold& fold = folds_.at(id);
      if (std::count(fold.lane_bits.begin(), fold.lane_bits.end(), bit) > 0)
        fold_lanes(operation(id), fold, bit);
    }
}

// Each warp stores its partial results, and all warps load them in order.
void ReductionWriter::write(const tile::gpu::ReduceInBlock& reduce) {
  const auto indices = [&](const Fold& fold, int reg, llvm::Value* warp) {
    std::vector<llvm::Value*> indices;
    for (int a = 0; a < fold.rest.rank(); ++a) indices.push_back(block_.index(fold.rest, a, reg));
    indices.push_back(warp);
    return indices;
  };
  for (const auto& [id, buffers] : reduce.exchanges) {
    const Fold& fold = folds_.at(id);
    llvm::Value* own = block_.i32(0);
    for (std::size_t i = 0; i < fold.warp_bits.size(); ++i)
      own = ir_.CreateOr(own, ir_.CreateShl(block_.thread_bits(fold.warp_bits[i], 1),
                                            block_.i32(static_cast<std::int64_t>(i))));
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const auto align = llvm::Align(static_cast<std::uint64_t>(byte_width(buffers[i].dtype)));
      for (int reg = 0; reg < fold.rest.registers(); ++reg) {
        llvm::Value* value = fold.parts[static_cast<std::size_t>(reg)][i];
        ir_.CreateAlignedStore(block_.pack({&value, 1}, buffers[i].dtype),
                               block_.address(buffers[i], indices(fold, reg, own)), align);
      }
    }
  }
  block_.barrier();
  for (const auto& [id, buffers] : reduce.exchanges) {
    Fold& fold = folds_.at(id);
    for (int reg = 0; reg < fold.rest.registers(); ++reg) {
      Elements sum;
      for (std::int64_t warp = 0; warp < std::int64_t{1} << fold.warp_bits.size(); ++warp) {
        Elements part;
        for (const tile::gpu::SharedTile& buffer : buffers)
          part.push_back(block_.take_one(buffer, indices(fold, reg, block_.i32(warp))));
        sum = warp == 0 ? part : joined(operation(id), fold.padded, sum, part);
      }
      fold.parts[static_cast<std::size_t>(reg)] = std::move(sum);
    }
  }
}

void ReductionWriter::write(const tile::gpu::ReduceResult& result) {
  const Fold& fold = folds_.at(result.op);
  const ValueId out = operation(result.op).out[result.result];
  Pieces registers;
  for (const Elements& part : fold.parts) registers.push_back(part[result.result]);
  if (fold.wide) registers = emit_conversion(ir_, registers, DType::F32, dtype(out));
  define(out, result.layout, std::move(registers));
}

void ReductionWriter::write(const tile::gpu::Unpack& unpack) {
  Values::Packed& packed = values_.packed.at(unpack.value);
  // Hides from ptxas that the unpacked values are known, so that it does not keep them in
  // registers: adds the lowest bit of an address, which is 0.
  llvm::Value* zero =
      ir_.CreateTrunc(ir_.CreateLShr(packed.base, block_.i64(63)), ir_.getInt32Ty());
  Pieces registers;
  for (llvm::Value*& run : packed.runs) {
    llvm::Value* zeros = zero;
    if (const auto* words = llvm::dyn_cast<llvm::FixedVectorType>(run->getType()))
      zeros = ir_.CreateVectorSplat(words->getNumElements(), zero);
    run = ir_.CreateOr(run, zeros);
    for (llvm::Value* value : block_.unpack(run, packed.dtype, packed.run))
      registers.push_back(value);
  }
  define(unpack.value, packed.layout, std::move(registers));
}

}  // namespace tessera::codegen::ptx
