#include <gmock/gmock.h>

#include "dot_case.h"

namespace tessera::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* amx = "sapphirerapids";
constexpr Types amx_types[] = {{DType::BF16, DType::BF16, DType::F32},
                               {DType::I8, DType::I8, DType::I32},
                               {DType::U8, DType::U8, DType::I32},
                               {DType::U8, DType::I8, DType::I32},
                               {DType::I8, DType::U8, DType::I32}};

TEST(AmxDot, MultipliesEveryCombinationOfTypes) {
  Rng rng(11);
  for (const Types& types : amx_types) {
    expect_right({.shape = {types.a, types.b, types.c, 37, 41, 143}, .machine = amx}, 30, rng);
    if (HasFatalFailure()) return;
  }
}

TEST(AmxDot, ReadsMatricesInEveryLayout) {
  Rng rng(12);
  for (const Layout a : {Layout::Rows, Layout::PaddedRows, Layout::Columns, Layout::Scattered}) {
    for (const Layout b : layouts) {
      const Types& types = pick(amx_types, rng);
      expect_right(
          {.shape = {types.a, types.b, types.c, 50, 70, 67}, .a = a, .b = b, .machine = amx}, 10,
          rng);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(AmxDot, AddsUpBlocks) {
  Rng rng(13);
  for (const bool accumulate : {false, true}) {
    for (const Layout b : {Layout::Rows, Layout::Panels}) {
      expect_right({.shape = {DType::BF16, DType::BF16, DType::F32, 70, 100, 150},
                    .b = b,
                    .accumulate = accumulate,
                    .blocks = Extents{1, 2, 32},
                    .machine = amx},
                   20, rng);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(AmxDot, TakesRowsThatDoNotComeOutEven) {
  Rng rng(14);
  for (const std::int64_t m : {2, 3, 15, 16, 17, 31, 32, 33, 49, 64, 65, 100}) {
    const Types& types = pick(amx_types, rng);
    expect_right({.shape = {types.a, types.b, types.c, m, 48, 64},
                  .b = m % 2 == 0 ? Layout::Panels : Layout::Rows,
                  .constant_extents = true,
                  .machine = amx},
                 0, rng);
    if (HasFatalFailure()) return;
  }
}

TEST(AmxDot, FinishesSums) {
  Rng rng(15);
  for (const std::int64_t n : {16, 32, 40, 48, 80, 100}) {
    for (const std::int64_t m : {5, 32, 49}) {
      const Types& types = pick(amx_types, rng);
      Case c{.shape = {types.a, types.b, types.c, m, n, 70},
             .b = pick(layouts, rng),
             .constant_extents = true,
             .machine = amx,
             .finish = true};
      if (m > 16 && n > 40) c.blocks = Extents{1, 1, 128};
      expect_right(c, 0, rng);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(SlowVnniDot, MultipliesByVectorsWhereThereAreNoTiles) {
  Rng rng(17);
  for (const Types& types : amx_types) {
    for (const std::int64_t m : {1, 14}) {
      expect_right({.shape = {types.a, types.b, types.c, m, 41, 43},
                    .b = m == 1 ? Layout::Panels : pick(layouts, rng),
                    .constant_extents = true,
                    .without = {"amx-bf16", "amx-int8"},
                    .machine = amx},
                   0, rng);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(SlowAmxDot, MultipliesAnything) {
  Rng rng(16);
  for (int i = 0; i < 100; ++i) {
    Case c = any_case(amx_types, rng);
    c.machine = amx;
    c.shape.k += 32 * static_cast<std::int64_t>(rng.below(3));  // and more than a tile
    c.finish = c.constant_extents && !c.accumulate && rng.below(2) == 0;
    expect_right(c, 10, rng);
    if (HasFatalFailure()) return;
  }
}

/// The assembly of a dot of matrices that lie by rows.
std::string assembly(const DotShape& shape, const machine::Machine& machine) {
  OpenFunction open;
  emit_dot(open.ir, open.dense(shape, machine), machine);
  open.ir.CreateRetVoid();
  auto text = assembly_of(open.module, machine);
  EXPECT_TRUE(text.has_value());
  return *text;
}

TEST(AmxDot, UsesTheInstructionsOfTheMachine) {
  machine::Machine machine = *machine::named(amx);
  const DotShape bf16{DType::BF16, DType::BF16, DType::F32, 64, 64, 64},
      i8{DType::I8, DType::I8, DType::I32, 64, 64, 64};
  for (const auto& [shape, instruction] : {std::pair{bf16, "tdpbf16ps"}, {i8, "tdpbssd"}}) {
    const std::string text = assembly(shape, machine);
    for (const char* needed : {instruction, "ldtilecfg", "tileloadd", "tilestored", "tilerelease"})
      EXPECT_THAT(text, HasSubstr(needed));
  }
  DotShape one_row = bf16;
  one_row.m = 1;
  EXPECT_THAT(assembly(one_row, machine), Not(HasSubstr("tile")));
  std::erase(machine.features, "amx-bf16");
  EXPECT_THAT(assembly(bf16, machine), Not(HasSubstr("tile")));
  EXPECT_THAT(assembly(i8, machine), HasSubstr("tdpbssd"));
}

}  // namespace
}  // namespace tessera::codegen
