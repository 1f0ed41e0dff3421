#include "tessera/onnx/operator_table.h"

#include <gtest/gtest.h>

namespace tessera::onnx {
namespace {

TEST(Rows, SpeakOfOperatorsInTheCatalog) {
  for (const OperatorRow& row : operator_table())
    if (!row.op.empty()) {
      EXPECT_NE(find_op(row.op), nullptr) << row.name;
    }
}

TEST(Rows, SpellEveryOperatorWithoutABodyOfOurOwn) {
  for (const OpDef& op : catalog())
    if (!op.expand) {
      EXPECT_NE(export_row(op.name), nullptr) << op.name;
    }
}

TEST(Rows, HaveTheNewestFormFirst) {
  for (std::size_t i = 1; i < operator_table().size(); ++i)
    if (operator_table()[i].name == operator_table()[i - 1].name &&
        operator_table()[i].domain == operator_table()[i - 1].domain) {
      EXPECT_LT(operator_table()[i].since, operator_table()[i - 1].since)
          << operator_table()[i].name;
    }
}

TEST(Rows, TellTheFormByTheOpset) {
  EXPECT_EQ(import_row("", "Softmax", 13)->adapt, nullptr);
  EXPECT_NE(import_row("", "Softmax", 12)->adapt, nullptr);
  EXPECT_EQ(import_row("", "LayerNormalization", 16), nullptr);
  EXPECT_EQ(import_row("com.microsoft", "Softmax", 1), nullptr);
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
