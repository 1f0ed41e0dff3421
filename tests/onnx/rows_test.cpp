#include "tessera/onnx/rows.h"

#include <gtest/gtest.h>

namespace tessera::onnx {
namespace {

TEST(Rows, SpeakOfOperatorsInTheCatalog) {
  for (const Row& row : rows())
    if (!row.op.empty()) {
      EXPECT_NE(find_op(row.op), nullptr) << row.name;
    }
}

TEST(Rows, SpellEveryOperatorThatIsNoCompositeOfOurOwn) {
  for (const OpDef& op : catalog())
    if (op.kind() != OpDef::Kind::Composite) {
      EXPECT_NE(spelling_of(op.name), nullptr) << op.name;
    }
}

TEST(Rows, HaveTheNewestFormFirst) {
  for (std::size_t i = 1; i < rows().size(); ++i)
    if (rows()[i].name == rows()[i - 1].name && rows()[i].domain == rows()[i - 1].domain) {
      EXPECT_LT(rows()[i].since, rows()[i - 1].since) << rows()[i].name;
    }
}

TEST(Rows, TellTheFormByTheOpset) {
  EXPECT_EQ(find_row("", "Softmax", 13)->adapt, nullptr);
  EXPECT_NE(find_row("", "Softmax", 12)->adapt, nullptr);
  EXPECT_EQ(find_row("", "LayerNormalization", 16), nullptr);
  EXPECT_EQ(find_row("com.microsoft", "Softmax", 1), nullptr);
}

TEST(Rows, NameLaterPartsThatExist) {
  for (const LaterPart& later : later_parts()) {
    const OpDef* op = find_op(later.op);
    ASSERT_NE(op, nullptr) << later.op;
    bool found = false;
    for (const AttrSpec& spec : op->attrs) found |= spec.name == later.part;
    for (const std::string& input : op->inputs) found |= input.starts_with(later.part);
    EXPECT_TRUE(found) << later.op << " has no " << later.part;
  }
}

}  // namespace
}  // namespace tessera::onnx
