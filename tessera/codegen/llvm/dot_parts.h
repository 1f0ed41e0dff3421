#pragma once

#include <llvm/IR/IRBuilder.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "tessera/codegen/llvm/dot.h"
#include "tessera/codegen/llvm/flow.h"

namespace tessera::codegen {

/// What multiplies and adds. `a` and `b` are the types in the panels, to which packing converts.
///
/// Lanes:  an accumulator is a vector along n; a value of a (a group of k_group along k) is spread
///         over all lanes and multiplied with as many groups of b as there are lanes.
/// Blocks: an accumulator is a 2 x 2 block of c; 2 groups of a meet 2 groups of b.
/// Tiles:  an accumulator is a tile of AMX, see dot_amx.h.
struct Instruction {
  enum class Form : std::uint8_t { Lanes, Blocks, Tiles };

  /// The intrinsic, where a dot at the end stands for the bits of a vector; null: multiply and add
  /// in the type of c.
  const char* name = nullptr;
  DType a = DType::F32, b = DType::F32, c = DType::F32;
  int k_group = 1;
  Form form = Form::Lanes;
  bool swapped = false;   // b is its first factor
  bool offset_a = false;  // a is packed with its sign bit flipped, which b's sums make up for
};

Instruction instruction_for(const DotShape& shape, const machine::Machine& machine);

/// What the function around a dot's loops is given, in the order of its parameters.
struct DotArguments {
  llvm::Value *m, *n, *k;
  llvm::Value *a, *a_row, *a_column;
  llvm::Value *b, *b_row, *b_column, *b_panel_stride;
  llvm::Value *c, *c_row, *from, *from_row, *adds, *scratch;

  std::array<llvm::Value**, 16> all() {
    return {&m, &n,     &k,    &a,        &a_row, &a_column, &b, &b_row, &b_column, &b_panel_stride,
            &c, &c_row, &from, &from_row, &adds,  &scratch};
  }
};

/// Groups of k that panels are filled up to: the most that a turn of a micro-kernel takes.
constexpr int kTurn = 4;

inline std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// The block that cuts an extent into few and nearly equal parts: a multiple of `unit`, of at most
/// `most` if a unit is.
std::int64_t even_block(std::int64_t extent, std::int64_t most, std::int64_t unit);

/// The number that a value is known to be.
std::optional<std::int64_t> known(llvm::Value* value);

/// Values of a are spread as they are loaded, not lane by lane.
inline bool loads_spread(const machine::Machine& machine) {
  return machine.architecture == machine::Architecture::X86_64;
}

/// Bytes of b that stay in the first cache where they are read as they lie, beside a and c.
inline std::int64_t near_bytes(const machine::Machine& machine) {
  return loads_spread(machine) ? machine.l1d * 2 / 3 : machine.l1d / 2;
}

/// Rows (of a tile in registers) that come in units: 1, or 2 where blocks are multiplied.
inline int row_unit(const Instruction& instruction) {
  return instruction.form == Instruction::Form::Blocks ? 2 : 1;
}

/// c[rows, columns] (+)= a·b for a tile that stays in registers while k runs.
///   void(i64 groups of k, a, i64 a_stride, b, i64 b_stride, c, i64 c_stride, i1 accumulate, ahead
///        [, from, i64 from_stride])
/// Strides are in elements: between rows or columns of a, where it is not packed, groups of b, rows
/// of c and of what is added to where it lies apart.
struct MicroKernel {
  /// How a lies: in panels of `rows`, or where it is, with the elements of a row side by side, or
  /// those of a column.
  enum class A : std::uint8_t { Panel, Rows, Columns };

  Instruction instruction;
  int vector_bytes = 16;
  bool broadcast_loads = false;  // values of a are spread as they are loaded, not lane by lane
  int rows = 0, columns = 0;
  int unroll = kTurn;        // groups of k in a turn of the loop
  int splits = 1;            // accumulators that take turns, where few would wait for each other
  bool whole_turns = false;  // the number of groups is a multiple of `unroll`
  Turns turns = Turns::Any;  // Some: it is not less
  A a = A::Panel;
  int next_lines = 0;  // lines of each of the next rows of a that are asked for; A::Rows alone
  int b_stride = 0;    // between groups of b; 0: the argument tells
  int later_b = 0;     // groups of k that b is asked for ahead
  bool far_c = false;  // c is asked for while k runs and read after; else sums begin with it
  bool apart = false;  // what is added to is not in c
  int ahead = 0;       // lines at `ahead` that are brought into the second cache with a group of k
  std::optional<bool> accumulate = std::nullopt;  // none: the argument tells
};
llvm::Function* micro_kernel(llvm::Module& module, const MicroKernel& kernel);

/// What a micro-kernel works on, in the order of its parameters.
struct MicroOperands {
  llvm::Value *groups, *a, *a_stride, *b, *b_stride, *c, *c_stride, *accumulate, *ahead;
  llvm::Value *from = nullptr, *from_stride = nullptr;
};
/// The same in place, and without c: the sums, vectors along n in the order [row][vector]. They
/// start from `start` where there is any, which instructions of Form::Lanes alone can.
llvm::SmallVector<llvm::Value*, 40> emit_micro_kernel(llvm::IRBuilder<>& ir,
                                                      const MicroKernel& kernel,
                                                      const MicroOperands& operands,
                                                      llvm::ArrayRef<llvm::Value*> start);

/// Copies lines (rows of a, columns of b) into a panel: groups of k run slowly, lines fast.
///   void(panel, source, i64 line_stride, i64 k_stride, i64 lines, i64 k)
/// Missing lines, and k's up to the next multiple of `k_multiple`, become zeros.
struct Packer {
  enum class Unit : std::uint8_t { Lines, K, Neither };  // what lies side by side in the source

  DType from = DType::F32, to = DType::F32;
  int lines = 0, k_group = 1, k_multiple = 1;
  Unit unit = Unit::Neither;
  int vector_bytes = 16;   // of the widest vectors that are copied as they are
  bool offset = false;     // flip the sign bit of each element
  bool all_lines = false;  // no line is ever missing
  bool whole_k = false;    // k is a multiple of k_multiple and of 16
};
llvm::Function* packer(llvm::Module& module, const Packer& pack);

/// What lies side by side, by the strides between lines and between k's.
Packer::Unit packed_unit(llvm::Value* line_stride, llvm::Value* k_stride);

/// c[lines, columns] = tile, whose rows are `tile_columns` long, or from + tile.
///   void(c, i64 c_stride, tile, i64 rows, i64 columns, i1 accumulate, from, i64 from_stride)
llvm::Function* tile_merger(llvm::Module& module, DType dtype, int tile_columns);

}  // namespace tessera::codegen
