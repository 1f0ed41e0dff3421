#include "tessera/support/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tessera/support/file.h"
#include "tessera/support/half.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string npy(const std::string& header, const std::string& data, char version = 1) {
  std::string file = "\x93NUMPY";
  file += {version, '\0', static_cast<char>(header.size()), static_cast<char>(header.size() >> 8)};
  if (version > 1) file += std::string(2, '\0');
  return file + header + data;
}

std::string header(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }          \n";
}

Expected<Tensor> parse(const std::string& text) {
  return parse_npy(Bytes::copy(std::as_bytes(std::span(text))), "a.npy");
}

std::string error_of(const std::string& text) {
  const auto tensor = parse(text);
  return tensor ? "no error" : to_string(tensor.error());
}

std::filesystem::path scratch(const std::string& name) {
  return std::filesystem::path(::testing::TempDir()) / name;
}

TEST(Npy, ReadsAnArrayInRowMajorOrder) {
  const auto tensor = parse(npy(header("|u1", "(2, 3)"), "\1\2\3\4\5\6"));
  ASSERT_TRUE(tensor) << to_string(tensor.error());
  EXPECT_EQ(tensor->dtype, DType::U8);
  EXPECT_THAT(tensor->shape, ElementsAre(2, 3));
  EXPECT_THAT(integers_of(*tensor), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Npy, TransposesAnArrayInColumnMajorOrder) {
  const auto tensor = parse(npy(header("|u1", "(2, 3)", true), "\1\4\2\5\3\6"));
  ASSERT_TRUE(tensor) << to_string(tensor.error());
  EXPECT_THAT(integers_of(*tensor), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Npy, ReadsBothByteOrders) {
  const std::string little("\1\2", 2), big("\2\1", 2);
  EXPECT_EQ(integers_of(*parse(npy(header("<i2", "()"), little)))[0], 0x201);
  EXPECT_EQ(integers_of(*parse(npy(header(">i2", "()"), big)))[0], 0x201);
}

TEST(Npy, ReadsEveryFormatVersion) {
  for (const char version : {'\1', '\2', '\3'})
    EXPECT_TRUE(parse(npy(header("|i1", "(1,)"), "\7", version)));
}

TEST(Npy, MakesTruthValuesZeroOrOne) {
  const auto tensor = parse(npy(header("|b1", "(3,)"), std::string("\0\1\7", 3)));
  ASSERT_TRUE(tensor);
  EXPECT_EQ(tensor->as<std::uint8_t>()[2], 1);
}

TEST(Npy, ReadsAnEmptyArrayWithALargeExtent) {
  EXPECT_TRUE(parse(npy(header("<f8", "(0, 9223372036854775807)", true), "")));
}

TEST(Npy, ReadsWhatItWrites) {
  const std::vector<std::int32_t> numbers = {1, -2, 3, 4, 5, 6};
  const auto path = scratch("written.npy");
  for (const auto& shape : {std::vector<std::int64_t>{6}, {2, 3}, {1, 6, 1}}) {
    ASSERT_TRUE(write_npy(path, Tensor::of<std::int32_t>(DType::I32, shape, numbers)));
    const auto tensor = read_npy(path);
    ASSERT_TRUE(tensor) << to_string(tensor.error());
    EXPECT_EQ(tensor->shape, shape);
    EXPECT_THAT(integers_of(*tensor), ElementsAre(1, -2, 3, 4, 5, 6));
  }
}

TEST(Npy, AlignsWhatItWrites) {
  const auto path = scratch("aligned.npy");
  ASSERT_TRUE(write_npy(path, Tensor::of<double>(DType::F64, {1}, std::vector<double>{1.5})));
  EXPECT_EQ(read_text(path)->size() % 64, sizeof(double));
}

TEST(Npy, WritesBf16AsF4) {
  const auto path = scratch("bf16.npy");
  const std::vector<BFloat16> numbers = {to_bfloat16(1.5), to_bfloat16(-2)};
  ASSERT_TRUE(write_npy(path, Tensor::of<BFloat16>(DType::BF16, {2}, numbers)));
  const auto tensor = read_npy(path);
  ASSERT_TRUE(tensor) << to_string(tensor.error());
  EXPECT_EQ(tensor->dtype, DType::F32);
  EXPECT_THAT(tensor->as<float>(), ElementsAre(1.5f, -2.0f));
}

TEST(Npy, WritesSmallTypesAsTheirNumbers) {
  const auto path = scratch("small.npy");
  const std::vector<std::uint8_t> floats = {0x38, 0x7f}, integers = {0xf8, 0x07};
  ASSERT_TRUE(write_npy(path, Tensor::of<std::uint8_t>(DType::F8E4M3FN, {2}, floats)));
  auto tensor = read_npy(path);
  ASSERT_TRUE(tensor) << to_string(tensor.error());
  EXPECT_EQ(tensor->dtype, DType::F32);
  EXPECT_EQ(tensor->as<float>()[0], 1);
  EXPECT_TRUE(std::isnan(tensor->as<float>()[1]));
  ASSERT_TRUE(write_npy(path, Tensor::of<std::uint8_t>(DType::I4, {2}, integers)));
  tensor = read_npy(path);
  ASSERT_TRUE(tensor) << to_string(tensor.error());
  EXPECT_EQ(tensor->dtype, DType::I8);
  EXPECT_THAT(integers_of(*tensor), ElementsAre(-8, 7));
}

TEST(Npy, ReadsBytesWithoutANameAsTheTypeThatIsAskedFor) {
  const std::string file = npy(header("<V1", "(3,)"), "\x0f\xf8\x07");
  const auto read = [&](DType dtype) {
    return parse_npy(Bytes::copy(std::as_bytes(std::span(file))), "a.npy", dtype);
  };
  EXPECT_THAT(integers_of(*read(DType::I4)), ElementsAre(-1, -8, 7));
  EXPECT_THAT(integers_of(*read(DType::U4)), ElementsAre(15, 8, 7));
  EXPECT_EQ(number_at(*read(DType::F4E2M1), 2), 6);
  EXPECT_EQ(number_at(*read(DType::F8E8M0), 2), 0x1p-120);
  EXPECT_FALSE(read(DType::BF16));
  const std::string named = npy(header("<f1", "(1,)"), "\x3c");
  const auto one = parse_npy(Bytes::copy(std::as_bytes(std::span(named))), "a.npy", DType::F8E5M2);
  ASSERT_TRUE(one) << to_string(one.error());
  EXPECT_EQ(number_at(*one, 0), 1);
  EXPECT_THAT(error_of(file), HasSubstr("the element type \"<V1\" is not supported"));
}

TEST(Npy, RefusesToWriteText) {
  const auto written = write_npy(scratch("text.npy"), Tensor::of_strings({1}, {"a"}));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().id, "npy-unsupported");
}

TEST(Npy, NamesAnElementTypeThatItDoesNotRead) {
  for (const char* type : {"<U4", "|O", "|S3", "<c8", "<M8[s]", "f4", ""}) {
    const std::string error = error_of(npy(header(type, "(1,)"), "....", 1));
    EXPECT_THAT(error, HasSubstr("a.npy: error[npy-unsupported]"));
    EXPECT_THAT(error, HasSubstr("\"" + std::string(type) + "\""));
  }
  EXPECT_THAT(
      error_of(npy("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,), }", "....")),
      HasSubstr("npy-unsupported"));
}

TEST(Npy, RefusesASizeThatIsNotThatOfTheShape) {
  const std::string shapes[] = {"(2,)",
                                "(0,)",
                                "(4611686018427387904, 4)",
                                "(-1,)",
                                "(1152921504606846976,)",
                                "(99999999999999999999,)"};
  for (const std::string& shape : shapes)
    EXPECT_THAT(error_of(npy(header("<f4", shape), "....")), HasSubstr("npy-malformed")) << shape;
}

TEST(Npy, RefusesAHeaderThatIsNotItsDictionary) {
  for (const char* text : {
           "",
           "{",
           "{}",
           "{'descr': '<f4'}",
           "{'descr: '<f4', 'fortran_order': False, 'shape': (1,)}",
           "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1,}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'shape': (1,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} and more",
       })
    EXPECT_THAT(error_of(npy(text, "....")), HasSubstr("npy-malformed")) << text;
}

TEST(Npy, RefusesEveryBeginningOfAFile) {
  const std::string whole = npy(header("<f4", "(2,)"), "........");
  ASSERT_TRUE(parse(whole));
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parse(whole.substr(0, size)));
}

}  // namespace
}  // namespace tessera
