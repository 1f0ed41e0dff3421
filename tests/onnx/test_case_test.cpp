#include "tessera/onnx/test_case.h"

#include <gtest/gtest.h>
#include <onnx.pb.h>

#include <filesystem>

#include "tessera/onnx/tensor_proto.h"

namespace tessera::onnx {
namespace {

Tensor numbers(std::int64_t first) {
  const std::vector<std::int64_t> values = {first, first + 1};
  return {DType::I64, {2}, Bytes::copy(std::as_bytes(std::span(values)))};
}

TEST(TestCase, IsReadAsItWasWritten) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "test_case_test" / "deeper";
  std::filesystem::remove_all(folder);
  const Tensor text = Tensor::of_strings({1}, {"ab"});
  const Tensor empty{DType::F32, {0, 3}, Bytes::copy({})};
  ASSERT_TRUE(write_test_case({.inputs = {numbers(1), empty}, .outputs = {text}}, folder));
  const auto read = read_test_case(folder, 2, 1);
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(integer_at(read->inputs[0].tensor(), 1), 2);
  EXPECT_EQ(read->inputs[1].tensor().shape, (std::vector<std::int64_t>{0, 3}));
  EXPECT_EQ(*read->outputs[0].tensor().strings, std::vector<std::string>{"ab"});
}

Datum encoded_and_parsed(const Datum& datum, const ::onnx::TypeProto& type) {
  const std::string message = encode(datum);
  return *parse_datum(Bytes::copy(std::as_bytes(std::span(message))), "datum", type);
}

TEST(TestCase, EncodesSequencesAndOptionals) {
  ::onnx::TypeProto sequence, optional;
  sequence.mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type();
  *optional.mutable_optional_type()->mutable_elem_type() = sequence;
  const Datum pair = Datum::sequence({numbers(1), numbers(5)});
  EXPECT_EQ(integer_at(encoded_and_parsed(pair, sequence).elements().at(1).tensor(), 0), 5);
  EXPECT_TRUE(encoded_and_parsed(Datum::sequence({}), sequence).elements().empty());
  EXPECT_TRUE(encoded_and_parsed(Datum::optional(), optional).elements().empty());
  const Datum full = encoded_and_parsed(Datum::optional(pair), optional);
  EXPECT_EQ(full.elements().at(0).elements().size(), 2u);
}

// What onnx.numpy_helper makes of a sequence of one tensor: elem_type is TENSOR.
TEST(TestCase, SaysWhichKindASequenceHas) {
  EXPECT_EQ(encode(Datum::sequence({Tensor::of_strings({}, {"a"})})),
            std::string("\x10\x01\x1a\x05\x10\x08\x32\x01") + "a");
}

}  // namespace
}  // namespace tessera::onnx
