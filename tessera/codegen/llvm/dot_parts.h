#pragma once

#include <llvm/IR/IRBuilder.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "tessera/codegen/llvm/dot.h"
#include "tessera/codegen/llvm/flow.h"

namespace tessera::codegen {

/// Multiply-accumulate instruction of a dot. `a` and `b` are the element types in the panels, to
/// which packing converts.
///
/// Lanes:  an accumulator is a vector along n; a group of k_group values of a is broadcast to all
///         lanes and multiplied with as many groups of b as there are lanes.
/// Blocks: an accumulator is a 2 x 2 block of c; 2 groups of a meet 2 groups of b.
/// Tiles:  an accumulator is a tile of AMX, see dot_amx.h.
struct Instruction {
  enum class Form : std::uint8_t { Lanes, Blocks, Tiles };

  /// Name of the LLVM intrinsic; a name that ends with a dot is completed by the vector width in
  /// bits. Null: fma in the type of c.
  const char* name = nullptr;
  DType a = DType::F32, b = DType::F32, c = DType::F32;
  int k_group = 1;
  Form form = Form::Lanes;
  bool swapped = false;   // b is the first operand of the intrinsic
  bool offset_a = false;  // a is packed with its sign bit flipped; sums of b compensate for it
};

Instruction instruction_for(const DotShape& shape, const machine::Machine& machine);

/// Parameters of the function around a dot's loops, in order.
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

/// Number of groups of k that panels are padded to: the largest unroll factor of a micro-kernel.
constexpr int kMaxUnroll = 4;

inline std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Block size that splits an extent into few and nearly equal blocks: a multiple of `unit`, at most
/// `most` where a unit is.
std::int64_t even_block(std::int64_t extent, std::int64_t most, std::int64_t unit);

/// Value of an integer constant, if it is one.
std::optional<std::int64_t> known(llvm::Value* value);
/// Whether a value is a constant other than 0.
inline bool is_true(llvm::Value* value) {
  return known(value).value_or(0) != 0;
}

/// Whether values of a are broadcast by the load (x86-64), not by lane-indexed instructions.
inline bool loads_spread(const machine::Machine& machine) {
  return machine.architecture == machine::Architecture::X86_64;
}

/// Bytes of b that stay in L1, beside a and c, where b is read in place.
inline std::int64_t near_bytes(const machine::Machine& machine) {
  return loads_spread(machine) ? machine.l1d * 2 / 3 : machine.l1d / 2;
}

/// Unit of the rows of a register tile: 1, or 2 where 2 x 2 blocks are multiplied.
inline int row_unit(const Instruction& instruction) {
  return instruction.form == Instruction::Form::Blocks ? 2 : 1;
}

/// GEMM micro-kernel: c[rows, columns] (+)= a·b for a register tile.
///   void(i64 groups of k, a, i64 a_stride, b, i64 b_stride, c, i64 c_stride, i1 accumulate, ahead
///        [, from, i64 from_stride])
/// Strides are in elements: between rows or columns of a where it is not packed, groups of b, rows
/// of c and of `from`.
struct MicroKernel {
  /// Layout of a: panels of `rows`; or in place, with contiguous rows or contiguous columns.
  enum class A : std::uint8_t { Panel, Rows, Columns };

  Instruction instruction;
  int vector_bytes = 16;
  bool broadcast_loads = false;  // values of a are broadcast by loads, not lane by lane
  int rows = 0, columns = 0;
  int unroll = kMaxUnroll;  // groups of k per loop iteration
  int splits = 1;  // interleaved sets of accumulators, to hide the latency of a small register tile
  bool whole_unrolls = false;             // the number of groups is a multiple of `unroll`
  TripCount trip_count = TripCount::Any;  // AtLeastOne: the number of groups is at least `unroll`
  A a = A::Panel;
  int next_lines = 0;  // cache lines to prefetch of each of the next rows of a; A::Rows only
  int b_stride = 0;    // between groups of b; 0: run-time argument
  int later_b = 0;     // prefetch distance of b in groups of k
  bool far_c = false;  // c is prefetched and added after the loop; else accumulators start from it
  bool apart = false;  // the addend is in other memory than c
  int ahead = 0;       // cache lines at `ahead` to prefetch into L2 per loop iteration
  std::optional<bool> accumulate = std::nullopt;  // none: run-time argument
};
llvm::Function* micro_kernel(llvm::Module& module, const MicroKernel& kernel);

/// Arguments of a micro-kernel, in the order of its parameters.
struct MicroOperands {
  llvm::Value *groups, *a, *a_stride, *b, *b_stride, *c, *c_stride, *accumulate, *ahead;
  llvm::Value *from = nullptr, *from_stride = nullptr;
};
/// Emits a micro-kernel inline, without storing c: returns the accumulators, vectors along n in the
/// order [row][vector]. They start from `start` if it is given, which only Form::Lanes supports.
llvm::SmallVector<llvm::Value*, 40> emit_micro_kernel(llvm::IRBuilder<>& ir,
                                                      const MicroKernel& kernel,
                                                      const MicroOperands& operands,
                                                      llvm::ArrayRef<llvm::Value*> start);

/// Packing function: copies lines (rows of a, columns of b) into a panel, in which lines are the
/// fast axis and groups of k the slow one.
///   void(panel, source, i64 line_stride, i64 k_stride, i64 lines, i64 k)
/// Missing lines, and k's up to the next multiple of `k_multiple`, become zeros.
struct Packer {
  enum class Unit : std::uint8_t { Lines, K, Neither };  // the contiguous axis of the source

  DType from = DType::F32, to = DType::F32;
  int lines = 0, k_group = 1, k_multiple = 1;
  Unit unit = Unit::Neither;
  int vector_bytes = 16;   // of the widest vectors that are copied unconverted
  bool offset = false;     // flip the sign bit of each element
  bool all_lines = false;  // no line is ever missing
  bool whole_k = false;    // k is a multiple of k_multiple and of 16
};
llvm::Function* packer(llvm::Module& module, const Packer& pack);

/// Contiguous axis, given the strides of lines and of k.
Packer::Unit packed_unit(llvm::Value* line_stride, llvm::Value* k_stride);

/// Copies a tile with rows of `tile_columns` elements to c: c[lines, columns] = tile, or from +
/// tile.
///   void(c, i64 c_stride, tile, i64 rows, i64 columns, i1 accumulate, from, i64 from_stride)
llvm::Function* tile_merger(llvm::Module& module, DType dtype, int tile_columns);

}  // namespace tessera::codegen
