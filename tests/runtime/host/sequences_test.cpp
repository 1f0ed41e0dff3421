#include "tests/runtime/host/call.h"

namespace tessera::host {
namespace {

Datum sequence(std::vector<Datum> elements) {
  return Datum::sequence(std::move(elements));
}

/// The first elements of the tensors of the sequence that a call has as its result.
std::vector<float> heads_of(const Request& request) {
  std::vector<float> heads;
  const Datum result = results_of(request).front();
  if (result.kind() != Datum::Kind::Sequence) {
    ADD_FAILURE() << "no sequence";
    return heads;
  }
  for (const Datum& element : result.elements())
    heads.push_back(static_cast<float>(number_at(element.tensor(), 0)));
  return heads;
}

const Tensor kOne = floats({1}, {1}), kTwo = floats({1}, {2}), kThree = floats({1}, {3});

TEST(Sequence, IsConstructedInOrder) {
  EXPECT_EQ(heads_of({"sequence_construct", {kOne, kTwo, kThree}}), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(heads_of({"sequence_empty"}), std::vector<float>{});
}

TEST(Sequence, HasALength) {
  expect_result({"sequence_length", {sequence({kOne, kTwo})}}, scalar(2));
  expect_result({"sequence_length", {sequence({})}}, scalar(0));
}

TEST(Sequence, IsInsertedIntoAtAnyPlace) {
  const Datum both = sequence({kOne, kTwo});
  EXPECT_EQ(heads_of({"sequence_insert", {both, kThree}}), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(heads_of({"sequence_insert", {both, kThree, scalar(0)}}),
            (std::vector<float>{3, 1, 2}));
  EXPECT_EQ(heads_of({"sequence_insert", {both, kThree, scalar(2)}}),
            (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(heads_of({"sequence_insert", {both, kThree, scalar(-1)}}),
            (std::vector<float>{1, 3, 2}));
  EXPECT_EQ(heads_of({"sequence_insert", {sequence({}), kThree}}), (std::vector<float>{3}));
}

TEST(Sequence, LosesOneElement) {
  const Datum all = sequence({kOne, kTwo, kThree});
  EXPECT_EQ(heads_of({"sequence_erase", {all}}), (std::vector<float>{1, 2}));
  EXPECT_EQ(heads_of({"sequence_erase", {all, scalar(0)}}), (std::vector<float>{2, 3}));
  EXPECT_EQ(heads_of({"sequence_erase", {all, scalar(-2)}}), (std::vector<float>{1, 3}));
}

TEST(Sequence, GivesAnElement) {
  const Datum all = sequence({kOne, texts({1}, {"x"})});
  expect_result({"sequence_at", {all, scalar(0)}}, kOne);
  expect_result({"sequence_at", {all, scalar(-1)}}, texts({1}, {"x"}));
}

TEST(Sequence, RefusesBadInput) {
  const Datum both = sequence({kOne, kTwo});
  expect_refused({"sequence_construct"}, "no inputs");
  expect_refused({"sequence_construct", {kOne, scalar(1)}}, "a sequence of f32 and i64");
  expect_refused({"sequence_insert", {both, scalar(1)}}, "a sequence of f32 and i64");
  expect_refused({"sequence_insert", {both, kOne, scalar(3)}}, "position 3 is out of range");
  expect_refused({"sequence_insert", {both, kOne, scalar(-3)}}, "position -3 is out of range");
  expect_refused({"sequence_erase", {sequence({})}}, "position -1 is out of range");
  expect_refused({"sequence_at", {both, scalar(2)}}, "position 2 is out of range");
  expect_refused({"sequence_at", {kOne, scalar(0)}}, "input 0 is not a sequence");
  expect_refused({"sequence_length", {sequence({Datum::optional()})}},
                 "input 0 holds something else than tensors");
}

Attrs split(std::int64_t axis, std::int64_t keepdims = 1) {
  return {{"axis", axis}, {"keepdims", keepdims}};
}

std::vector<Datum> pieces_of(const Request& request) {
  const Datum result = results_of(request).front();
  return result.present() ? result.elements() : std::vector<Datum>{};
}

TEST(SplitToSequence, CutsPiecesOfOneLength) {
  const auto pieces =
      pieces_of({"split_to_sequence", {floats({2, 3}, {1, 2, 3, 4, 5, 6}), scalar(2)}, split(1)});
  ASSERT_EQ(pieces.size(), 2U);
  expect_tensor(pieces[0], floats({2, 2}, {1, 2, 4, 5}));
  expect_tensor(pieces[1], floats({2, 1}, {3, 6}));
}

TEST(SplitToSequence, CutsPiecesOfGivenLengths) {
  const auto pieces = pieces_of(
      {"split_to_sequence", {texts({3}, {"a", "b", "c"}), integers({3}, {2, 0, 1})}, split(-1)});
  ASSERT_EQ(pieces.size(), 3U);
  expect_tensor(pieces[0], texts({2}, {"a", "b"}));
  expect_tensor(pieces[1], texts({0}, {}));
  expect_tensor(pieces[2], texts({1}, {"c"}));
}

TEST(SplitToSequence, DropsTheAxisIfAskedTo) {
  const Tensor x = floats({2, 2}, {1, 2, 3, 4});
  const auto pieces = pieces_of({"split_to_sequence", {x}, split(0, 0)});
  ASSERT_EQ(pieces.size(), 2U);
  expect_tensor(pieces[1], floats({2}, {3, 4}));
  expect_tensor(pieces_of({"split_to_sequence", {x}, split(0)})[1], floats({1, 2}, {3, 4}));
}

TEST(SplitToSequence, RefusesBadInput) {
  const Tensor x = floats({3}, {1, 2, 3});
  expect_refused({"split_to_sequence", {x, scalar(0)}, split(0)}, "split=0");
  expect_refused({"split_to_sequence", {x, integers({2}, {2, 2})}, split(0)},
                 "a piece of 2 where 1 are left");
  expect_refused({"split_to_sequence", {x, integers({1}, {2})}, split(0)}, "split leaves 1 of 3");
  expect_refused({"split_to_sequence", {x, integers({2}, {4, -1})}, split(0)},
                 "a piece of 4 where 3 are left");
  expect_refused({"split_to_sequence", {x}, split(1)}, "axis 1 is out of range");
  const Results endless =
      result_of({"split_to_sequence", {floats({std::int64_t{1} << 40, 0}, {})}, split(0)});
  EXPECT_FALSE(endless.has_value());
}

Attrs concat(std::int64_t axis, std::int64_t new_axis = 0) {
  return {{"axis", axis}, {"new_axis", new_axis}};
}

TEST(ConcatFromSequence, JoinsAlongAnAxis) {
  const Datum both = sequence({floats({2, 1}, {1, 4}), floats({2, 2}, {2, 3, 5, 6})});
  expect_result({"concat_from_sequence", {both}, concat(1)}, floats({2, 3}, {1, 2, 3, 4, 5, 6}));
}

TEST(ConcatFromSequence, StacksAlongANewAxis) {
  const Datum both = sequence({texts({2}, {"a", "b"}), texts({2}, {"c", "d"})});
  expect_result({"concat_from_sequence", {both}, concat(-1, 1)},
                texts({2, 2}, {"a", "c", "b", "d"}));
  expect_result({"concat_from_sequence", {sequence({scalar(7), scalar(8)})}, concat(0, 1)},
                integers({2}, {7, 8}));
}

TEST(ConcatFromSequence, RefusesBadInput) {
  const Tensor a = floats({1, 2}, {1, 2}), b = floats({2, 1}, {1, 2});
  expect_refused({"concat_from_sequence", {sequence({})}, concat(0)}, "the sequence is empty");
  expect_refused({"concat_from_sequence", {sequence({a, b})}, concat(0)},
                 "shapes [1, 2] and [2, 1] differ");
  expect_refused({"concat_from_sequence", {sequence({a, kOne})}, concat(0)},
                 "shapes [1, 2] and [1] differ");
  expect_refused({"concat_from_sequence", {sequence({a, scalar(1)})}, concat(0)},
                 "a sequence of f32 and i64");
  expect_refused({"concat_from_sequence", {sequence({a})}, concat(2)}, "axis 2 is out of range");
  const Tensor huge = floats({std::int64_t{1} << 62, 0}, {});
  expect_refused({"concat_from_sequence", {sequence({huge, huge})}, concat(0)},
                 "the sequence is too long");
  const Tensor long_text = texts({1}, {std::string(1000, 'x')});
  expect_too_large({.name = "concat_from_sequence",
                    .inputs = {sequence({long_text, long_text})},
                    .attrs = concat(0),
                    .memory_limit = 1500},
                   "2000 elements of 1 bytes");
}

TEST(Optional, WrapsWhatItIsGiven) {
  const Datum full = results_of({"optional", {kOne}}).front();
  expect_result({"optional_has_element", {full}}, bools({}, {1}));
  expect_result({"optional_get_element", {full}}, kOne);
}

TEST(Optional, MayBeEmpty) {
  const Datum empty = results_of({"optional"}).front();
  EXPECT_EQ(empty.kind(), Datum::Kind::Optional);
  expect_result({"optional_has_element", {empty}}, bools({}, {0}));
  expect_refused({"optional_get_element", {empty}}, "the optional is empty");
}

TEST(Optional, TakesTensorsAndSequencesForFull) {
  expect_result({"optional_has_element", {kOne}}, bools({}, {1}));
  expect_result({"optional_has_element", {sequence({})}}, bools({}, {1}));
  expect_result({"optional_has_element", {Datum()}}, bools({}, {0}));
  expect_result({"optional_get_element", {kOne}}, kOne);
  EXPECT_EQ(heads_of({"optional_get_element", {sequence({kTwo})}}), (std::vector<float>{2}));
}

}  // namespace
}  // namespace tessera::host
