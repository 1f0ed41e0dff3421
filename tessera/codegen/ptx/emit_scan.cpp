#include <algorithm>
#include <map>

#include "tessera/codegen/ptx/emitter.h"
#include "tessera/codegen/ptx/fold.h"
#include "tessera/codegen/ptx/functions.h"

// Scans, bit by bit of the index along their axis, from the lowest on, whether a bit maps to
// registers, lanes or warps. The size of blocks doubles with each bit; only totals of blocks are
// exchanged, not their elements.

namespace tessera::codegen::ptx {
namespace {

/// Location of an index bit.
struct BitPlace {
  bool in_registers = false;
  int bit = 0;  // of the register index or of the thread index
};

std::vector<BitPlace> places_of(const Layout& layout, int axis) {
  std::map<int, BitPlace> places;
  const auto add = [&](const std::vector<IndexBit>& bits, bool in_registers) {
    for (std::size_t i = 0; i < bits.size(); ++i)
      if (bits[i].axis == axis) places[bits[i].bit] = {in_registers, static_cast<int>(i)};
  };
  add(layout.register_bits(), true);
  add(layout.thread_bits(), false);
  std::vector<BitPlace> in_order;
  for (const auto& [bit, place] : places) in_order.push_back(place);
  return in_order;
}

/// Prefix before some elements of a thread: `there` says whether it is not empty; null: empty.
struct Carry {
  std::vector<llvm::Value*> elements = {};
  llvm::Value* there = nullptr;
};

}  // namespace

/// Values of the thread whose index differs in a bit: by key, each with an element of each dtype.
void Emitter::exchange_parts(std::map<int, Elements>& parts, const std::vector<DType>& types,
                             int bit) {
  if (bit < kLaneBits) {
    for (auto& [key, part] : parts)
      for (llvm::Value*& element : part) element = block_.across(element, bit);
    return;
  }
  std::vector<Block::Buffer> buffers;
  std::int64_t bytes = 0;
  for (const DType of : types) {
    buffers.push_back(Block::buffer({std::ssize(parts), block_.threads()}, of));
    buffers.back().offset = bytes;
    bytes += (buffers.back().bytes() + 15) / 16 * 16;
  }
  const std::int64_t base = block_.scratch(bytes);
  for (Block::Buffer& buffer : buffers) buffer.offset += base;
  const auto each = [&](llvm::Value* thread, const auto& visit) {
    std::int64_t number = 0;
    for (auto& [key, part] : parts) {
      llvm::Value* const indices[] = {block_.i32(number++), thread};
      for (std::size_t i = 0; i < buffers.size(); ++i) visit(buffers[i], indices, part[i]);
    }
  };
  each(block_.thread(), [&](const Block::Buffer& buffer, const auto& indices, llvm::Value* own) {
    ir_.CreateAlignedStore(block_.pack({&own, 1}, buffer.dtype), block_.address(buffer, indices),
                           llvm::Align(static_cast<std::uint64_t>(byte_width(buffer.dtype))));
  });
  block_.barrier();
  each(ir_.CreateXor(block_.thread(), block_.i32(std::int64_t{1} << bit)),
       [&](const Block::Buffer& buffer, const auto& indices, llvm::Value*& part) {
         part = block_.take_one(buffer, indices);
       });
  block_.forget();
}

void Emitter::scan(const Operation& op) {
  const int axis = static_cast<int>(op.ints[0]);
  const bool reverse = op.ints[1] != 0, wide = widens(op, dtype(op.in[0]));
  const Layout layout = home(op.out[0]);
  const std::int64_t extent = type(op.in[0]).shape[static_cast<std::size_t>(axis)];
  // Padding elements come after all others, or backwards, before them: then the last element of
  // each list is a validity flag.
  const bool padded = reverse && layout.extent(axis) > extent;
  std::vector<DType> types;
  std::vector<Elements> values(static_cast<std::size_t>(layout.registers()));
  const auto add = [&](const Pieces& input, DType of) {
    types.push_back(of);
    for (std::size_t reg = 0; reg < values.size(); ++reg) values[reg].push_back(input[reg]);
  };
  for (const ValueId id : op.in) {
    const Pieces input = tile(id, layout);
    add(wide ? emit_conversion(ir_, input, dtype(id), DType::F32) : input,
        wide ? DType::F32 : dtype(id));
  }
  if (padded) {
    Pieces counts;
    for (int reg = 0; reg < layout.registers(); ++reg)
      counts.push_back(ir_.CreateICmpULT(block_.index(layout, axis, reg), block_.i32(extent)));
    add(counts, DType::Bool);
  }
  const auto choose = [&](llvm::Value* condition, const Elements& then, const Elements& other) {
    Elements chosen;
    for (std::size_t i = 0; i < then.size(); ++i)
      chosen.push_back(ir_.CreateSelect(condition, then[i], other[i]));
    return chosen;
  };
  const auto join = [&](const Elements& before, const Elements& after) {
    if (!padded) return combine(op, before, after);
    const auto without = [](const Elements& all) { return Elements(all.begin(), all.end() - 1); };
    Elements both =
        choose(before.back(), combine(op, without(before), without(after)), without(after));
    both.push_back(after.back());
    return both;
  };
  /// Combines the prefix of some elements with a block before it.
  const auto extend = [&](Carry& carry, const Elements& block) {
    Elements all = block;
    if (carry.there != nullptr) {
      all = join(block, carry.elements);
      if (carry.there != ir_.getTrue()) all = choose(carry.there, all, block);
    }
    return all;
  };

  const std::vector<BitPlace> places = places_of(layout, axis);
  // Sequential scan of neighbours in a thread.
  std::size_t low = 0;
  int low_mask = 0;
  while (low < places.size() && places[low].in_registers) low_mask |= 1 << places[low++].bit;
  std::map<int, Elements> totals;  // by the first register of a block, the bits so far cleared
  std::map<int, Carry> carries;    // by the first register of neighbours
  for (int first = 0; first < layout.registers(); ++first) {
    if ((first & low_mask) != 0) continue;
    std::vector<int> run;
    for (int reg = 0; reg < layout.registers(); ++reg)
      if ((reg & ~low_mask) == first) run.push_back(reg);
    std::sort(run.begin(), run.end(), [&](int a, int b) {
      return (layout.offset(axis, a) < layout.offset(axis, b)) != reverse;
    });
    for (std::size_t i = 1; i < run.size(); ++i) {
      const auto now = static_cast<std::size_t>(run[i]),
                 last = static_cast<std::size_t>(run[i - 1]);
      values[now] = join(values[last], values[now]);
    }
    totals[first] = values[static_cast<std::size_t>(run.back())];
    carries[first] = {};
  }

  int merged = low_mask;
  for (std::size_t i = low; i < places.size(); ++i) {
    const BitPlace place = places[i];
    const bool last = i + 1 == places.size();
    if (place.in_registers) {
      const int bit = 1 << place.bit;
      std::map<int, Elements> doubled;
      for (const auto& [key, total] : totals) {
        if ((key & bit) != 0) continue;
        const int before = reverse ? key | bit : key, after = reverse ? key : key | bit;
        for (auto& [run, carry] : carries)
          if ((run & ~merged) == after) carry = {extend(carry, totals.at(before)), ir_.getTrue()};
        if (!last) doubled[key] = join(totals.at(before), totals.at(after));
      }
      totals = std::move(doubled);
      merged |= bit;
      continue;
    }
    std::map<int, Elements> others = totals;
    exchange_parts(others, types, place.bit);
    llvm::Value* later = ir_.CreateIsNotNull(block_.thread_bits(place.bit, 1));
    if (reverse) later = ir_.CreateNot(later);
    for (auto& [run, carry] : carries) {
      const Elements& other = others.at(run & ~merged);
      const Elements all = extend(carry, other);
      carry = carry.there == nullptr
                  ? Carry{all, later}
                  : Carry{choose(later, all, carry.elements), ir_.CreateOr(later, carry.there)};
    }
    for (auto& [key, total] : totals) {
      const Elements& other = others.at(key);
      if (!last) total = join(choose(later, other, total), choose(later, total, other));
    }
  }
  for (int reg = 0; reg < layout.registers(); ++reg) {
    const Carry& carry = carries.at(reg & ~low_mask);
    Elements& value = values[static_cast<std::size_t>(reg)];
    if (carry.there == nullptr) continue;
    const Elements all = join(carry.elements, value);
    value = carry.there == ir_.getTrue() ? all : choose(carry.there, all, value);
  }
  for (std::size_t i = 0; i < op.out.size(); ++i) {
    Pieces registers;
    for (const Elements& value : values) registers.push_back(value[i]);
    if (wide) registers = emit_conversion(ir_, registers, DType::F32, dtype(op.out[i]));
    define(op.out[i], layout, std::move(registers));
  }
}

}  // namespace tessera::codegen::ptx
