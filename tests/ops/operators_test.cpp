#include "tessera/ops/operators.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(Operators, AHandleIsTheEntryOfItsName) {
  EXPECT_EQ(op::abs, find_op("abs"));
  EXPECT_EQ(op::conv, find_op("conv"));
  EXPECT_EQ(op::where, find_op("where"));
  EXPECT_EQ(op::conv_transpose->name, "conv_transpose");
}

TEST(Operators, ThereIsAHandleForEveryEntry) {
  std::size_t count = 0;
#define TESSERA_OPERATOR(id)                    \
  EXPECT_EQ(op::id.get(), &catalog()[count++]); \
  EXPECT_EQ(op::id->name, #id);
#include "tessera/ops/catalog.def"
  EXPECT_EQ(count, catalog().size());
}

}  // namespace
}  // namespace tessera
