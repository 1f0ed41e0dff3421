#pragma once

#include <cstdint>
#include <optional>

#include "tessera/codegen/llvm/dot_parts.h"

namespace tessera::codegen {

constexpr std::int64_t kCacheLine = 64;  // bytes

/// Decisions about the GEMM loops of one dot, beyond its plan: which operands are packed, what is
/// prefetched, and how the panels at the edges are computed.
struct GemmChoices {
  /// Column panel of c: columns that are computed together.
  struct Columns {
    int columns = 0;    // 0: there are none
    bool exact = true;  // all of them exist
  };
  /// Row panels of a block: of `rows` rows, then of one row less.
  struct EvenRows {
    int rows = 0;
    std::int64_t in_tall = 0;  // rows of the last block that are in the former
  };

  GemmChoices(llvm::IRBuilder<>& ir, const DotCall& call, const machine::Machine& machine,
              const DotArguments& in);

  Instruction instruction;
  int lanes = 0;                // elements of c in a vector
  std::int64_t kc = 0, nc = 0;  // blocks of k and n
  int pad_k = 1;                // panels are padded to a multiple of this
  MicroKernel::A a = MicroKernel::A::Panel;
  bool pack_a = true;
  llvm::Value* pack_b = nullptr;  // i1: run-time decision by the strides of b
  bool rows_outer = false;        // all of b stays in L1: loop over rows of c outside

  std::int64_t panel_lines = 1;  // cache lines of a panel of b per group of k
  bool prefetch_b = false;       // into L2, beside the work on the panel before
  int ahead = 0;                 // as in MicroKernel, like those that follow
  int next_lines = 0;
  bool far_rows_of_b = false, far_c = false;
  bool whole_unrolls = false, whole_k = false;  // as in MicroKernel and Packer
  TripCount trip_count = TripCount::Any;
  std::optional<bool> accumulate;  // none: differs between blocks of k

  std::int64_t rest_rows = -1;  // after the last whole panel; -1: any
  std::optional<EvenRows> even = {};
  /// Partial column panels: of the remainder of the largest extent, and of any other number of
  /// columns.
  Columns exact, padded;
  bool partial_tiles = false;  // they go through scratch
  /// Columns that the epilogue can process: whole vectors only, where one block covers all of k and
  /// no row is half of a pair.
  std::int64_t epilogue_columns = 0;

 private:
  void choose_packing(llvm::IRBuilder<>& ir, const DotCall& call, const machine::Machine& machine,
                      const DotArguments& in);
  void choose_prefetching(const DotCall& call, const machine::Machine& machine);
  void choose_edges(const DotCall& call, const DotArguments& in);
  std::int64_t column_bytes_of_b(const DotCall& call) const;
};

}  // namespace tessera::codegen
