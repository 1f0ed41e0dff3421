#include "tests/runtime/host/call.h"

namespace tessera::host {
namespace {

Attrs normalized(std::string action, std::int64_t sensitive, Strings stopwords) {
  return {{"case_change_action", std::move(action)},
          {"is_case_sensitive", sensitive},
          {"stopwords", std::move(stopwords)}};
}

TEST(StringNormalizer, RemovesStopwordsAndChangesTheCase) {
  const Tensor week = texts({4}, {"monday", "tuesday", "wednesday", "thursday"});
  expect_result({"string_normalizer", {week}, normalized("UPPER", 1, {"monday"})},
                texts({3}, {"TUESDAY", "WEDNESDAY", "THURSDAY"}));
  expect_result({"string_normalizer", {week}, normalized("NONE", 1, {"Monday"})}, week);
}

TEST(StringNormalizer, ComparesStopwordsWithoutCaseIfAskedTo) {
  expect_result({"string_normalizer",
                 {texts({1, 3}, {"Monday", "ÄRGER", "Straße"})},
                 normalized("LOWER", 0, {"mONDAY", "ärger"})},
                texts({1, 1}, {"straße"}));
}

TEST(StringNormalizer, LeavesOneEmptyTextWhereAllAreRemoved) {
  expect_result({"string_normalizer", {texts({2}, {"a", "a"})}, normalized("UPPER", 1, {"a"})},
                texts({1}, {""}));
  expect_result({"string_normalizer", {texts({1, 1}, {"a"})}, normalized("UPPER", 1, {"a"})},
                texts({1, 1}, {""}));
}

TEST(StringNormalizer, ChangesTheCaseOfLettersBeyondAscii) {
  expect_result({"string_normalizer",
                 {texts({3}, {"éàþÿ ŀž", "Ωμέγα жЁ ș", "\xC3 \xFF \xE2\x82\xAC"})},
                 normalized("UPPER", 1, {})},
                texts({3}, {"ÉÀÞŸ ĿŽ", "ΩΜΈΓΑ ЖЁ Ș", "\xC3 \xFF \xE2\x82\xAC"}));
  expect_result(
      {"string_normalizer", {texts({1}, {"ÉÀÞŸ ĿŽ ΩΜΈΓΑ ЖЁ Ș×"})}, normalized("LOWER", 1, {})},
      texts({1}, {"éàþÿ ŀž ωμέγα жё ș×"}));
}

TEST(StringNormalizer, RefusesBadInput) {
  const Attrs attrs = normalized("NONE", 1, {});
  expect_refused({"string_normalizer", {texts({2, 1}, {"a", "b"})}, attrs}, "shape [2, 1]");
  expect_refused({"string_normalizer", {texts({}, {"a"})}, attrs}, "shape []");
  expect_refused({"string_normalizer", {floats({1}, {1})}, attrs}, "input 0 has dtype f32");
  expect_refused({"string_normalizer", {texts({1}, {"a"})}, normalized("Upper", 1, {})},
                 "case_change_action=Upper");
}

TEST(StringConcat, JoinsElementByElement) {
  expect_result({"string_concat", {texts({2}, {"abc", "def"}), texts({2}, {".com", ".net"})}},
                texts({2}, {"abc.com", "def.net"}));
}

TEST(StringConcat, Broadcasts) {
  expect_result({"string_concat", {texts({2, 1}, {"a", "b"}), texts({3}, {"x", "y", "z"})}},
                texts({2, 3}, {"ax", "ay", "az", "bx", "by", "bz"}));
  expect_result({"string_concat", {texts({}, {"a"}), texts({0, 2}, {})}}, texts({0, 2}, {}));
}

TEST(StringConcat, RefusesBadInput) {
  expect_refused({"string_concat", {texts({2}, {"a", "b"}), texts({3}, {"x", "y", "z"})}},
                 "shapes [2] and [3] do not broadcast");
  const Tensor row = texts({1, 100}, std::vector<std::string>(100, std::string(100, 'x')));
  const Tensor column = texts({100, 1}, std::vector<std::string>(100, ""));
  expect_too_large({.name = "string_concat", .inputs = {row, column}, .memory_limit = 500'000},
                   "500100 elements of 1 bytes");
}

TEST(StringSplit, SplitsAtADelimiter) {
  const auto out = results_of({"string_split",
                               {texts({2, 2}, {"a-b", "", "--", "abc"})},
                               {{"delimiter", std::string("-")}},
                               2});
  expect_tensor(out[0], texts({2, 2, 3}, {"a", "b", "", "", "", "", "", "", "", "abc", "", ""}));
  expect_tensor(out[1], integers({2, 2}, {2, 1, 3, 1}));
}

TEST(StringSplit, SplitsAtBlanksByDefault) {
  const auto out = results_of({"string_split", {texts({3}, {" a  b\tc ", "", "x"})}, {}, 2});
  expect_tensor(out[0], texts({3, 3}, {"a", "b", "c", "", "", "", "x", "", ""}));
  expect_tensor(out[1], integers({3}, {3, 0, 1}));
}

TEST(StringSplit, KeepsTheRestAfterTheLastSplit) {
  expect_result({"string_split",
                 {texts({1}, {"a::b::c"})},
                 {{"delimiter", std::string("::")}, {"maxsplit", std::int64_t{1}}}},
                texts({1, 2}, {"a", "b::c"}));
  expect_result({"string_split", {texts({1}, {" a  b  c "})}, {{"maxsplit", std::int64_t{1}}}},
                texts({1, 2}, {"a", "b  c "}));
}

TEST(StringSplit, RefusesAPaddingThatIsTooLarge) {
  std::vector<std::string> lines(1000, "x");
  lines[0] = std::string(1000, '-');
  expect_too_large({.name = "string_split",
                    .inputs = {texts({1000}, lines)},
                    .attrs = {{"delimiter", std::string("-")}},
                    .outputs = 2},
                   "1001000 elements of 32 bytes");
}

}  // namespace
}  // namespace tessera::host
