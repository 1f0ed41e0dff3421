#include "tessera/codegen/ptx/scan_writer.h"

#include <algorithm>
#include <map>

#include "tessera/codegen/ptx/functions.h"
#include "tessera/tile/gpu/accumulation.h"
#include "tessera/tile/gpu/scan_bits.h"

// Scans, bit by bit of the index along their axis, from the lowest on, whether a bit maps to
// registers, lanes or warps. The size of blocks doubles with each bit; only totals of blocks are
// exchanged, not their elements.

namespace tessera::codegen::ptx {

/// Values of the thread whose index differs in a bit: by key, each with an element of each dtype.
void ScanWriter::exchange_lanes(std::map<int, Elements>& parts, int bit) {
  for (auto& [key, part] : parts)
    for (llvm::Value*& element : part) element = block_.across(element, bit);
}

void ScanWriter::exchange_warps(std::map<int, Elements>& parts,
                                const tile::gpu::ScanTile::Exchange& exchange, int bit) {
  if (exchange.barrier_before) block_.barrier();
  const auto each = [&](llvm::Value* thread, const auto& visit) {
    std::int64_t number = 0;
    for (auto& [key, part] : parts) {
      llvm::Value* const indices[] = {block_.i32(number++), thread};
      for (std::size_t i = 0; i < exchange.parts.size(); ++i)
        visit(Block::Buffer(exchange.parts[i]), indices, part[i]);
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
}

/// Scan of a tile along an axis: totals of blocks and the prefixes before them, which double in
/// size with each index bit.
struct ScanWriter::Scan {
  /// Prefix before some elements of a thread: `there` says whether it is not empty; null: empty.
  struct Carry {
    Elements elements = {};
    llvm::Value* there = nullptr;
  };

  ScanWriter& writer;
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

  Scan(ScanWriter& e, const tile::gpu::ScanTile& scan) : Scan(e, scan, e.operation(scan.op)) {}
  Scan(ScanWriter& e, const tile::gpu::ScanTile& scan, const Operation& of)
      : writer(e),
        op(of),
        layout(scan.layout),
        axis(static_cast<int>(of.ints[0])),
        reverse(of.ints[1] != 0),
        wide(tile::gpu::widens(of, e.dtype(of.in[0]))),
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
      chosen.push_back(writer.ir_.CreateSelect(condition, then[i], other[i]));
    return chosen;
  }
  Elements join(const Elements& before, const Elements& after) const {
    if (!padded) return writer.reductions_.combine(op, before, after);
    const auto without = [](const Elements& all) { return Elements(all.begin(), all.end() - 1); };
    Elements both =
        choose(before.back(), writer.reductions_.combine(op, without(before), without(after)),
               without(after));
    both.push_back(after.back());
    return both;
  }
  /// Combines the prefix of some elements with a block before it.
  Elements extend(const Carry& carry, const Elements& block) const {
    Elements all = block;
    if (carry.there != nullptr) {
      all = join(block, carry.elements);
      if (carry.there != writer.ir_.getTrue()) all = choose(carry.there, all, block);
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
          carry = {extend(carry, totals.at(before)), writer.ir_.getTrue()};
      if (!last) doubled[key] = join(totals.at(before), totals.at(after));
    }
    totals = std::move(doubled);
    merged |= bit;
  }

  /// The same for a bit of the thread index: threads exchange the totals of their blocks.
  void merge_threads(int bit, bool last, const tile::gpu::ScanTile::Exchange* exchange) {
    llvm::IRBuilder<>& ir = writer.ir_;
    std::map<int, Elements> others = totals;
    if (exchange == nullptr)
      writer.exchange_lanes(others, bit);
    else
      writer.exchange_warps(others, *exchange, bit);
    llvm::Value* later = ir.CreateIsNotNull(writer.block_.thread_bits(bit, 1));
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
      value = carry.there == writer.ir_.getTrue() ? all : choose(carry.there, all, value);
    }
  }
};

void ScanWriter::write(const tile::gpu::ScanTile& of) {
  const Operation& op = operation(of.op);
  Scan scan(*this, of);
  const std::vector<tile::gpu::ScanBit> bits = tile::gpu::scan_bits(scan.layout, scan.axis);
  std::size_t low = 0;
  int neighbours = 0;
  while (low < bits.size() && bits[low].in_registers) neighbours |= 1 << bits[low++].bit;
  scan.scan_neighbours(neighbours);
  auto exchange = of.exchanges.begin();
  for (std::size_t i = low; i < bits.size(); ++i) {
    const bool last = i + 1 == bits.size();
    if (bits[i].in_registers)
      scan.merge_registers(1 << bits[i].bit, last);
    else
      scan.merge_threads(bits[i].bit, last, bits[i].bit < kLaneBits ? nullptr : &*exchange++);
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
