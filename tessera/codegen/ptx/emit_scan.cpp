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

/// Scan of a tile along an axis: totals of blocks and the prefixes before them, which double in
/// size with each index bit.
struct Emitter::Scan {
  /// Prefix before some elements of a thread: `there` says whether it is not empty; null: empty.
  struct Carry {
    Elements elements = {};
    llvm::Value* there = nullptr;
  };

  Emitter& emitter;
  const Operation& op;
  const Layout layout;
  const int axis;
  const bool reverse, wide;
  /// Padding elements come after all others, or backwards, before them: then the last element of
  /// each list is a validity flag.
  bool padded = false;
  std::vector<DType> types = {};
  std::vector<Elements> values = {};    // by register
  std::map<int, Elements> totals = {};  // by the first register of a block, merged bits cleared
  std::map<int, Carry> carries = {};    // by the first register of neighbours
  int neighbours = 0, merged = 0;       // register bits: of neighbours; of those merged so far

  Scan(Emitter& e, const Operation& of)
      : emitter(e),
        op(of),
        layout(e.home(of.out[0])),
        axis(static_cast<int>(of.ints[0])),
        reverse(of.ints[1] != 0),
        wide(widens(of, e.dtype(of.in[0]))),
        values(static_cast<std::size_t>(layout.registers())) {
    const std::int64_t extent = e.type(of.in[0]).shape[static_cast<std::size_t>(axis)];
    padded = reverse && layout.extent(axis) > extent;
    const auto add = [&](const Pieces& input, DType dtype) {
      types.push_back(dtype);
      for (std::size_t reg = 0; reg < values.size(); ++reg) values[reg].push_back(input[reg]);
    };
    for (const ValueId id : of.in) {
      const Pieces input = e.tile(id, layout);
      add(wide ? emit_conversion(e.ir_, input, e.dtype(id), DType::F32) : input,
          wide ? DType::F32 : e.dtype(id));
    }
    if (!padded) return;
    Pieces counts;
    for (int reg = 0; reg < layout.registers(); ++reg)
      counts.push_back(
          e.ir_.CreateICmpULT(e.block_.index(layout, axis, reg), e.block_.i32(extent)));
    add(counts, DType::Bool);
  }

  Elements choose(llvm::Value* condition, const Elements& then, const Elements& other) const {
    Elements chosen;
    for (std::size_t i = 0; i < then.size(); ++i)
      chosen.push_back(emitter.ir_.CreateSelect(condition, then[i], other[i]));
    return chosen;
  }
  Elements join(const Elements& before, const Elements& after) const {
    if (!padded) return emitter.combine(op, before, after);
    const auto without = [](const Elements& all) { return Elements(all.begin(), all.end() - 1); };
    Elements both =
        choose(before.back(), emitter.combine(op, without(before), without(after)), without(after));
    both.push_back(after.back());
    return both;
  }
  /// Combines the prefix of some elements with a block before it.
  Elements extend(const Carry& carry, const Elements& block) const {
    Elements all = block;
    if (carry.there != nullptr) {
      all = join(block, carry.elements);
      if (carry.there != emitter.ir_.getTrue()) all = choose(carry.there, all, block);
    }
    return all;
  }

  /// Sequential scan of neighbours in a thread, whose lowest index bits are these register bits.
  void scan_neighbours(int bits) {
    neighbours = merged = bits;
    for (int first = 0; first < layout.registers(); ++first) {
      if ((first & bits) != 0) continue;
      std::vector<int> run;
      for (int reg = 0; reg < layout.registers(); ++reg)
        if ((reg & ~bits) == first) run.push_back(reg);
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
  }

  /// Merges blocks that differ in a bit of the register index. `last`: their totals are not needed.
  void merge_registers(int bit, bool last) {
    std::map<int, Elements> doubled;
    for (const auto& [key, total] : totals) {
      if ((key & bit) != 0) continue;
      const int before = reverse ? key | bit : key, after = reverse ? key : key | bit;
      for (auto& [run, carry] : carries)
        if ((run & ~merged) == after)
          carry = {extend(carry, totals.at(before)), emitter.ir_.getTrue()};
      if (!last) doubled[key] = join(totals.at(before), totals.at(after));
    }
    totals = std::move(doubled);
    merged |= bit;
  }

  /// The same for a bit of the thread index: threads exchange the totals of their blocks.
  void merge_threads(int bit, bool last) {
    llvm::IRBuilder<>& ir = emitter.ir_;
    std::map<int, Elements> others = totals;
    emitter.exchange_parts(others, types, bit);
    llvm::Value* later = ir.CreateIsNotNull(emitter.block_.thread_bits(bit, 1));
    if (reverse) later = ir.CreateNot(later);
    for (auto& [run, carry] : carries) {
      const Elements& other = others.at(run & ~merged);
      const Elements all = extend(carry, other);
      carry = carry.there == nullptr
                  ? Carry{all, later}
                  : Carry{choose(later, all, carry.elements), ir.CreateOr(later, carry.there)};
    }
    if (last) return;
    for (auto& [key, total] : totals) {
      const Elements& other = others.at(key);
      total = join(choose(later, other, total), choose(later, total, other));
    }
  }

  /// Combines every element with the prefix before its neighbours.
  void add_carries() {
    for (int reg = 0; reg < layout.registers(); ++reg) {
      const Carry& carry = carries.at(reg & ~neighbours);
      Elements& value = values[static_cast<std::size_t>(reg)];
      if (carry.there == nullptr) continue;
      const Elements all = join(carry.elements, value);
      value = carry.there == emitter.ir_.getTrue() ? all : choose(carry.there, all, value);
    }
  }
};

void Emitter::scan(const Operation& op) {
  Scan scan(*this, op);
  const std::vector<BitPlace> places = places_of(scan.layout, scan.axis);
  std::size_t low = 0;
  int neighbours = 0;
  while (low < places.size() && places[low].in_registers) neighbours |= 1 << places[low++].bit;
  scan.scan_neighbours(neighbours);
  for (std::size_t i = low; i < places.size(); ++i) {
    const bool last = i + 1 == places.size();
    if (places[i].in_registers)
      scan.merge_registers(1 << places[i].bit, last);
    else
      scan.merge_threads(places[i].bit, last);
  }
  scan.add_carries();
  for (std::size_t i = 0; i < op.out.size(); ++i) {
    Pieces registers;
    for (const Elements& value : scan.values) registers.push_back(value[i]);
    if (scan.wide) registers = emit_conversion(ir_, registers, DType::F32, dtype(op.out[i]));
    define(op.out[i], scan.layout, std::move(registers));
  }
}

}  // namespace tessera::codegen::ptx
