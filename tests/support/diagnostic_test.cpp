#include "tessera/support/diagnostic.h"

#include <gtest/gtest.h>

#include <string>

#include "tessera/support/expected.h"

namespace tessera {
namespace {

Expected<int> parse_digit(char letter) {
  if (letter < '0' || letter > '9')
    return Diagnostic{.id = "digit", .message = std::string(1, letter) + " is not a digit"};
  return letter - '0';
}

Expected<int> sum_of_digits(const std::string& text) {
  int sum = 0;
  for (const char letter : text) {
    TESSERA_TRY(const int digit, parse_digit(letter));
    sum += digit;
  }
  return sum;
}

TEST(Diagnostic, PrintsPlaceIdMessageNoteAndHelp) {
  const Diagnostic diagnostic{
      .id = "onnx-unsupported-attribute",
      .where = {.file = "resnet.onnx", .item = "Conv_12"},
      .message = "auto_pad=SAME_LOWER is not supported",
      .note = "tessera reads NOTSET, VALID and SAME_UPPER",
      .help = "export the model with explicit pads",
  };
  EXPECT_EQ(to_string(diagnostic),
            "resnet.onnx: Conv_12: error[onnx-unsupported-attribute]: auto_pad=SAME_LOWER is not "
            "supported\n"
            "  note: tessera reads NOTSET, VALID and SAME_UPPER\n"
            "  help: export the model with explicit pads");
}

TEST(Diagnostic, LeavesOutWhatIsEmpty) {
  EXPECT_EQ(to_string(Diagnostic{.id = "a", .message = "b"}), "error[a]: b");
}

TEST(Diagnostic, KeepsItsPlaceWhenLocated) {
  const Diagnostic diagnostic{.id = "a", .where = {.item = "inner"}, .message = "b"};
  const Diagnostic placed = located(diagnostic, {.file = "m.onnx", .item = "outer"});
  EXPECT_EQ(placed.where, (Diagnostic::Where{.file = "m.onnx", .item = "inner"}));
}

TEST(Expected, HoldsAValue) {
  const auto sum = sum_of_digits("123");
  ASSERT_TRUE(sum.has_value());
  EXPECT_EQ(*sum, 6);
}

TEST(Expected, PassesTheFirstDiagnosticOn) {
  const auto sum = sum_of_digits("1xy");
  ASSERT_FALSE(sum.has_value());
  EXPECT_EQ(sum.error().message, "x is not a digit");
}

TEST(Expected, ReadWithoutAValueIsOurBug) {
  const auto sum = sum_of_digits("x");
  EXPECT_THROW(static_cast<void>(*sum), InternalError);
}

}  // namespace
}  // namespace tessera
