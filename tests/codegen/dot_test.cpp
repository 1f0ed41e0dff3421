#include <llvm/IR/Instructions.h>

#include <algorithm>

#include "dot_case.h"
#include "tessera/codegen/llvm/dot_parts.h"

namespace tessera::codegen {
namespace {

TEST(Dot, MultipliesEveryCombinationOfTypes) {
  Rng rng(1);
  for (const Types& types : all_types) {
    expect_right({.shape = {types.a, types.b, types.c, 37, 41, 43}}, 40, rng);
    if (HasFatalFailure()) return;
  }
}

TEST(Dot, DoesWithoutMatrixInstructions) {
  Rng rng(6);
  for (const std::vector<std::string>& without :
       {std::vector<std::string>{"bf16", "i8mm", "amx-bf16", "amx-int8"},
        {"bf16", "i8mm", "amx-bf16", "amx-int8", "avx512bf16", "avx512vnni"},
        {"bf16", "i8mm", "amx-bf16", "amx-int8", "avx512bf16", "avx512vnni", "dotprod",
         "avxvnni"}}) {
    for (const DType dtype : {DType::BF16, DType::I8, DType::U8}) {
      const DType sum = dtype == DType::BF16 ? DType::F32 : DType::I32;
      expect_right({.shape = {dtype, dtype, sum, 37, 41, 43}, .without = without}, 40, rng);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Dot, MultipliesBytesOfBothSigns) {
  Rng rng(9);
  for (const auto& [a, b] : {std::pair{DType::U8, DType::I8}, {DType::I8, DType::U8}}) {
    for (const std::int64_t m : {1, 5, 16}) {
      for (const std::int64_t n : {1, 7, 20, 24, 64}) {
        for (const std::int64_t k : {3, 32}) {
          expect_right({.shape = {a, b, DType::I32, m, n, k},
                        .accumulate = n == 7,
                        .constant_extents = n != 20,
                        .without = {"i8mm", "amx-int8"}},
                       0, rng);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Dot, ReadsMatricesInEveryLayout) {
  Rng rng(2);
  for (const Layout a : {Layout::Rows, Layout::PaddedRows, Layout::Columns, Layout::Scattered}) {
    for (const Layout b : layouts) {
      Case c{.shape = {.m = 37, .n = 41, .k = 43}, .a = a, .b = b};
      c.in_place = rng.below(2) == 0;
      expect_right(c, 30, rng);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Dot, AddsUpBlocks) {
  Rng rng(3);
  for (const bool in_place : {false, true}) {
    for (const bool accumulate : {false, true}) {
      expect_right({.shape = {.m = 37, .n = 41, .k = 43},
                    .accumulate = accumulate,
                    .blocks = Extents{2, 2, 8},
                    .in_place = in_place},
                   40, rng);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Dot, KnowsItsExtentsAhead) {
  Rng rng(4);
  for (const std::int64_t n : {1, 4, 7, 24, 28, 64}) {
    for (const std::int64_t m : {1, 5, 16}) {
      Case c{.shape = {.m = m, .n = n, .k = 20}, .constant_extents = true};
      c.in_place = rng.below(2) == 0;
      expect_right(c, 0, rng);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Dot, TakesRowsThatDoNotComeOutEven) {
  Rng rng(8);
  for (const DType dtype : {DType::F32, DType::F64}) {
    for (const std::int64_t m : {2, 3, 9, 13, 26, 49, 55}) {
      for (const std::int64_t k : {20, 21, 22, 23}) {
        Case c{.shape = {dtype, dtype, dtype, m, 28, k},
               .a = pick(layouts, rng) == Layout::Columns ? Layout::Columns : Layout::Rows,
               .accumulate = k == 21,
               .constant_extents = true};
        if (m > 20 && k > 21) c.blocks = Extents{5, 2, 12};
        expect_right(c, 0, rng);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Dot, RunsAsOnX8664) {
  Rng rng(9);
  for (const char* machine : {"skylake-avx512", "haswell"}) {
    for (const DType dtype : {DType::F32, DType::F64}) {
      for (const Extents e : {Extents{32, 64, 40}, {41, 70, 43}, {130, 150, 20}}) {
        for (const Layout b : {Layout::Rows, Layout::Columns, Layout::Panels}) {
          Case c{.shape = {dtype, dtype, dtype, e.m, e.n, e.k}, .b = b, .machine = machine};
          c.a = rng.below(3) == 0 ? Layout::Columns : Layout::Rows;
          c.accumulate = rng.below(2) == 0;
          if (rng.below(2) == 0) c.blocks = Extents{2, 2, 12};
          expect_right(c, 8, rng);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Dot, StreamsAMatrixForOneRow) {
  Rng rng(7);
  for (const Layout b : layouts) {
    expect_right({.shape = {.m = 1, .n = 150, .k = 70}, .b = b}, 20, rng);
    if (HasFatalFailure()) return;
  }
}

TEST(Dot, ReadsAMatrixOfOnePanelInPlace) {
  Rng rng(10);
  expect_right({.shape = {.m = 50, .n = 32, .k = 400},
                .constant_extents = true,
                .machine = "skylake-avx512"},
               0, rng);
  const auto packs_b = [](std::int64_t n) {
    OpenFunction open;
    const machine::Machine machine = *machine::named("skylake-avx512");
    emit_dot(open.ir, open.dense({.m = 50, .n = n, .k = 400}, machine), machine);
    return std::ranges::any_of(open.module, [](const llvm::Function& function) {
      return function.getName().starts_with("dot.pack.f32f32.32x");
    });
  };
  EXPECT_FALSE(packs_b(32));
  EXPECT_TRUE(packs_b(64));
}

TEST(Dot, SharesTheFunctionsOfEqualDots) {
  OpenFunction open;
  const machine::Machine machine = machine::host();
  const DotCall call = open.dense({.m = 64, .n = 64, .k = 64}, machine);
  emit_dot(open.ir, call, machine);
  const std::size_t functions = open.module.size();
  emit_dot(open.ir, call, machine);
  EXPECT_EQ(open.module.size(), functions);
}

/// Prefetches in each block of a function that has some.
std::vector<int> prefetches_by_block(const llvm::Function& function) {
  std::vector<int> counts;
  for (const llvm::BasicBlock& block : function) {
    int count = 0;
    for (const llvm::Instruction& instruction : block) {
      const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      const bool is_named = call != nullptr && call->getCalledFunction() != nullptr;
      if (is_named && call->getCalledFunction()->getName().starts_with("llvm.prefetch")) ++count;
    }
    if (count > 0) counts.push_back(count);
  }
  return counts;
}

TEST(Dot, PrefetchesTheNextPanelAFewLinesPerLoopIteration) {
  OpenFunction open;
  for (const int ahead : {0, 1, 3, 8}) {
    const llvm::Function* kernel = micro_kernel(open.module, {.instruction = {},
                                                              .vector_bytes = 64,
                                                              .broadcast_loads = true,
                                                              .rows = 4,
                                                              .columns = 32,
                                                              .ahead = ahead});
    // The loop over single groups of k, after the unrolled one, has none.
    const std::vector<int> expected = ahead == 0 ? std::vector<int>{} : std::vector<int>{ahead};
    EXPECT_EQ(prefetches_by_block(*kernel), expected) << ahead;
  }
}

TEST(SlowDot, MultipliesAnything) {
  Rng rng(5);
  for (int i = 0; i < 600; ++i) {
    Case c = any_case(all_types, rng);
    c.in_place = rng.below(2) == 0;
    expect_right(c, 10, rng);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace tessera::codegen
