#include "tessera/onnx/tensor_proto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "onnx.pb.h"
#include "tessera/onnx/data_type.h"
#include "tests/onnx/build_model.h"

namespace tessera::onnx {
namespace {

using ::onnx::TensorProto;
using testing::bytes_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A tensor as a file would state it: `raw_data` is the content.
TensorProto proto_of(int data_type, const std::vector<std::int64_t>& shape) {
  TensorProto proto;
  proto.set_name("w");
  proto.set_data_type(data_type);
  proto.mutable_dims()->Assign(shape.begin(), shape.end());
  return proto;
}

::onnx::TypeProto tensor_type() {
  ::onnx::TypeProto type;
  type.mutable_tensor_type();
  return type;
}

Expected<Tensor> decoded(const TensorProto& proto) {
  TESSERA_TRY(const Datum datum,
              parse_datum(bytes_of(proto.SerializeAsString()), "t.pb", tensor_type()));
  return datum.tensor();
}

std::string error_of(const TensorProto& proto) {
  const auto tensor = decoded(proto);
  return tensor ? "no error" : to_string(tensor.error());
}

TEST(TensorProto, ReadsRawData) {
  TensorProto proto = proto_of(TensorProto::INT16, {2});
  proto.set_raw_data(std::string("\1\0\xff\xff", 4));
  const auto tensor = decoded(proto);
  ASSERT_TRUE(tensor) << to_string(tensor.error());
  EXPECT_THAT(tensor->shape, ElementsAre(2));
  EXPECT_THAT(integers_of(*tensor), ElementsAre(1, -1));
}

TEST(TensorProto, AlignsSmallRawData) {
  for (std::size_t name = 0; name < 16; ++name) {
    TensorProto proto = proto_of(TensorProto::DOUBLE, {1});
    proto.set_name(std::string(name, 'n'));
    proto.set_raw_data(std::string(8, '\0'));
    const auto tensor = decoded(proto);
    ASSERT_TRUE(tensor);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor->bytes.data()) % alignof(double), 0);
  }
}

TEST(TensorProto, ReadsEveryTypedField) {
  struct Case {
    int data_type;
    std::function<void(TensorProto&, int)> add;
  };
  const auto add_int32 = [](TensorProto& proto, int x) { proto.add_int32_data(x); };
  const auto add_uint64 = [](TensorProto& proto, int x) {
    proto.add_uint64_data(static_cast<std::uint64_t>(x));
  };
  const Case cases[] = {
      {TensorProto::FLOAT, [](TensorProto& proto, int x) { proto.add_float_data(float(x)); }},
      {TensorProto::DOUBLE, [](TensorProto& proto, int x) { proto.add_double_data(x); }},
      {TensorProto::INT64, [](TensorProto& proto, int x) { proto.add_int64_data(x); }},
      {TensorProto::UINT64, add_uint64},
      {TensorProto::UINT32, add_uint64},
      {TensorProto::INT32, add_int32},
      {TensorProto::INT16, add_int32},
      {TensorProto::INT8, add_int32},
      {TensorProto::UINT16, add_int32},
      {TensorProto::UINT8, add_int32},
  };
  for (const Case& test : cases) {
    TensorProto proto = proto_of(test.data_type, {3});
    for (const int x : {1, 0, 7}) test.add(proto, x);
    const auto tensor = decoded(proto);
    ASSERT_TRUE(tensor) << to_string(tensor.error());
    EXPECT_THAT(integers_of(*tensor), ElementsAre(1, 0, 7)) << data_type_name(test.data_type);
  }
}

TEST(TensorProto, ReadsSixteenBitFloatsFromTheirBits) {
  for (const auto& [data_type, one] :
       {std::pair{TensorProto::FLOAT16, 0x3c00}, {TensorProto::BFLOAT16, 0x3f80}}) {
    TensorProto proto = proto_of(data_type, {});
    proto.add_int32_data(one);
    const auto tensor = decoded(proto);
    ASSERT_TRUE(tensor);
    EXPECT_EQ(number_at(*tensor, 0), 1.0);
  }
}

TEST(TensorProto, ReadsEightBitFloatsFromTheirBits) {
  for (const auto& [data_type, one] :
       {std::pair{17, 0x38}, {18, 0x40}, {19, 0x3c}, {20, 0x40}, {24, 0x7f}}) {
    TensorProto typed = proto_of(data_type, {}), raw = typed;
    typed.add_int32_data(one);
    raw.set_raw_data(std::string(1, static_cast<char>(one)));
    for (const TensorProto& proto : {typed, raw}) {
      const auto tensor = decoded(proto);
      ASSERT_TRUE(tensor) << to_string(tensor.error());
      EXPECT_EQ(number_at(*tensor, 0), 1.0) << data_type_name(data_type);
    }
  }
}

struct PackedCase {
  int data_type;
  std::vector<std::int64_t> shape;
  std::string bytes;
  std::vector<double> numbers;
};
const PackedCase kPacked[] = {
    {21, {5}, "\x21\xf3\x04", {1, 2, 3, 15, 4}},     {22, {5}, "\x21\xf3\x08", {1, 2, 3, -1, -8}},
    {23, {3}, "\x91\x07", {0.5, -0.5, 6}},           {25, {5}, "\xe4\x02", {0, 1, 2, 3, 2}},
    {26, {2, 3}, "\xe4\x06", {0, 1, -2, -1, -2, 1}}, {22, {0, 3}, "", {}},
};

TEST(TensorProto, UnpacksElementsOfLessThanAByte) {
  for (const PackedCase& test : kPacked) {
    TensorProto typed = proto_of(test.data_type, test.shape), raw = typed;
    for (const char byte : test.bytes) typed.add_int32_data(static_cast<unsigned char>(byte));
    raw.set_raw_data(test.bytes);
    for (const TensorProto& proto : {typed, raw}) {
      const auto tensor = decoded(proto);
      ASSERT_TRUE(tensor) << to_string(tensor.error());
      std::vector<double> numbers;
      for (std::int64_t i = 0; i < tensor->count(); ++i) numbers.push_back(number_at(*tensor, i));
      EXPECT_EQ(numbers, test.numbers) << data_type_name(test.data_type);
    }
  }
}

TEST(TensorProto, PacksElementsOfLessThanAByte) {
  for (const PackedCase& test : kPacked) {
    TensorProto raw = proto_of(test.data_type, test.shape), written;
    raw.set_raw_data(test.bytes);
    Payloads payloads;
    set_tensor(written, *decoded(raw), payloads);
    EXPECT_EQ(written.data_type(), test.data_type);
    const Bytes bytes = payloads.at(written.raw_data());
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), test.bytes);
  }
}

TEST(TensorProto, CountsThePackedBytes) {
  TensorProto proto = proto_of(22, {5});
  proto.set_raw_data("12");
  EXPECT_THAT(error_of(proto), HasSubstr("2 bytes are stored, but the shape requires 3"));
}

TEST(TensorProto, MakesTruthValuesZeroOrOne) {
  TensorProto typed = proto_of(TensorProto::BOOL, {1}), raw = typed;
  typed.add_int32_data(256);
  raw.set_raw_data("\7");
  EXPECT_EQ(decoded(typed)->as<std::uint8_t>()[0], 1);
  EXPECT_EQ(decoded(raw)->as<std::uint8_t>()[0], 1);
}

TEST(TensorProto, ReadsStrings) {
  TensorProto proto = proto_of(TensorProto::STRING, {2});
  proto.add_string_data("a");
  EXPECT_THAT(error_of(proto), HasSubstr("1 strings are stored, but the shape requires 2"));
  proto.add_string_data("b");
  EXPECT_THAT(*decoded(proto)->strings, ElementsAre("a", "b"));
}

TEST(TensorProto, ReadsAnEmptyTensor) {
  const auto tensor = decoded(proto_of(TensorProto::FLOAT, {0, 3}));
  ASSERT_TRUE(tensor) << to_string(tensor.error());
  EXPECT_EQ(tensor->count(), 0);
}

TEST(TensorProto, NamesADataTypeThatItDoesNotRead) {
  EXPECT_THAT(error_of(proto_of(27, {1})),
              HasSubstr("t.pb: w: error[onnx-unsupported-dtype]: the data type FLOAT6E2M3 is not"));
  EXPECT_THAT(error_of(proto_of(TensorProto::COMPLEX64, {1})), HasSubstr("COMPLEX64"));
  EXPECT_THAT(error_of(proto_of(-5, {1})), HasSubstr("number -5"));
}

TEST(TensorProto, KnowsTheNumberOfEveryDtype) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(*dtype_of(data_type_of(dtype)), dtype);
  }
}

TEST(TensorProto, RefusesASizeThatIsNotThatOfTheShape) {
  EXPECT_EQ(error_of(proto_of(TensorProto::FLOAT, {1 << 30, 1 << 30})),
            "t.pb: w: error[onnx-invalid-tensor]: 0 elements are stored, but the shape requires "
            "1152921504606846976");
  TensorProto proto = proto_of(TensorProto::FLOAT, {1});
  proto.set_raw_data("12345");
  EXPECT_THAT(error_of(proto), HasSubstr("5 bytes are stored, but the shape requires 4"));
  proto.mutable_dims()->Set(0, 0);
  EXPECT_THAT(error_of(proto), HasSubstr("5 bytes are stored, but the shape requires 0"));
}

TEST(TensorProto, RefusesAShapeWithoutACount) {
  constexpr std::int64_t huge = std::int64_t{1} << 61;
  EXPECT_THAT(error_of(proto_of(TensorProto::FLOAT, {-1})), HasSubstr("[-1] is negative"));
  EXPECT_THAT(error_of(proto_of(TensorProto::FLOAT, {huge, huge})), HasSubstr("too large"));
  EXPECT_THAT(error_of(proto_of(TensorProto::DOUBLE, {huge})), HasSubstr("onnx-invalid-tensor"));
  EXPECT_THAT(error_of(proto_of(TensorProto::FLOAT, std::vector<std::int64_t>(99999, 2))),
              HasSubstr("[2, 2, 2, 2, 2, 2, 2, 2, ...]"));
}

TEST(TensorProto, RefusesSegments) {
  TensorProto proto = proto_of(TensorProto::FLOAT, {1});
  proto.mutable_segment()->set_begin(0);
  EXPECT_THAT(error_of(proto), HasSubstr("onnx-unsupported-segment"));
}

TEST(TensorProto, ReadsWhatItWrites) {
  const Tensor tensor = Tensor::of<float>(DType::F32, {2, 1}, std::vector<float>{1.5f, 2.5f});
  TensorStore store{.path = "m.onnx"};
  TensorProto proto;
  set_tensor(proto, tensor, store.payloads);
  const auto again = tensor_of(proto, store);
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_EQ(again->shape, tensor.shape);
  EXPECT_EQ(again->bytes.data(), tensor.bytes.data());
}

TEST(Datum, ReadsSequencesAndOptionals) {
  TensorProto proto = proto_of(TensorProto::UINT8, {1});
  proto.set_raw_data("\5");
  const std::string tensor = proto.SerializeAsString();
  const std::string field =
      std::string("\x1a") + static_cast<char>(tensor.size()) + tensor;  // field 3

  ::onnx::TypeProto sequence, optional;
  *sequence.mutable_sequence_type()->mutable_elem_type() = tensor_type();
  *optional.mutable_optional_type()->mutable_elem_type() = sequence;

  const auto two = parse_datum(bytes_of(field + field), "s.pb", sequence);
  ASSERT_TRUE(two) << to_string(two.error());
  ASSERT_EQ(two->elements().size(), 2);
  EXPECT_THAT(integers_of(two->elements()[1].tensor()), ElementsAre(5));

  const std::string wrapped =
      std::string("\x2a") + static_cast<char>(field.size()) + field;  // field 5
  const auto present = parse_datum(bytes_of(wrapped), "o.pb", optional);
  ASSERT_TRUE(present) << to_string(present.error());
  EXPECT_EQ(present->elements().at(0).elements().size(), 1);
  const auto absent = parse_datum(Bytes{}, "o.pb", optional);
  ASSERT_TRUE(absent);
  EXPECT_TRUE(absent->elements().empty());
}

TEST(Datum, RefusesOtherTypes) {
  ::onnx::TypeProto type;
  type.mutable_map_type();
  EXPECT_EQ(parse_datum(Bytes{}, "m.pb", type).error().id, "onnx-unsupported-type");
}

/// A folder with a model's external data: `w` holds 1, 2, 3, 4.
class ExternalDataTest : public ::testing::Test {
 protected:
  ExternalDataTest()
      : root_(std::filesystem::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name()),
        store_{.path = root_ / "model" / "m.onnx",
               .external = std::make_shared<ExternalData>(root_ / "model" / "m.onnx")} {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_ / "model" / "folder");
    for (const char* name : {"secret", "model/w", "model/folder/w"})
      std::ofstream(root_ / name) << "\1\2\3\4";
    std::filesystem::create_symlink("../secret", root_ / "model" / "link");
    std::filesystem::create_directory_symlink("folder", root_ / "model" / "linked_folder");
  }
  ~ExternalDataTest() override { std::filesystem::remove_all(root_); }

  using Entries = std::vector<std::pair<std::string, std::string>>;

  Expected<Tensor> read(const Entries& entries) {
    TensorProto proto = proto_of(TensorProto::UINT8, {2});
    proto.set_data_location(TensorProto::EXTERNAL);
    for (const auto& [key, value] : entries) {
      auto* entry = proto.add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    return tensor_of(proto, store_);
  }

  std::string error(const Entries& entries) {
    const auto tensor = read(entries);
    return tensor ? "no error" : to_string(tensor.error());
  }

  std::filesystem::path root_;
  TensorStore store_;
};

TEST_F(ExternalDataTest, ReadsAPartOfAFile) {
  EXPECT_THAT(integers_of(*read({{"location", "w"}})), ElementsAre(1, 2));
  EXPECT_THAT(integers_of(*read({{"location", "folder/w"}, {"offset", "2"}, {"length", "2"}})),
              ElementsAre(3, 4));
  EXPECT_THAT(integers_of(*read({{"location", "./w"}, {"offset", "1"}})), ElementsAre(2, 3));
}

TEST_F(ExternalDataTest, MapsAFileOnce) {
  EXPECT_EQ(read({{"location", "w"}})->bytes.data(), read({{"location", "w"}})->bytes.data());
}

TEST_F(ExternalDataTest, StaysInsideTheFolderOfTheModel) {
  const std::string outside = "lies outside of the model's folder";
  EXPECT_THAT(error({{"location", "../secret"}}), HasSubstr(outside));
  EXPECT_THAT(error({{"location", "folder/../../secret"}}), HasSubstr(outside));
  EXPECT_THAT(error({{"location", "folder/.."}}), HasSubstr(outside));
  EXPECT_THAT(error({{"location", (root_ / "secret").string()}}), HasSubstr(outside));
}

TEST_F(ExternalDataTest, FollowsLinksInsideTheFolderOfTheModel) {
  EXPECT_THAT(integers_of(*read({{"location", "linked_folder/w"}})), ElementsAre(1, 2));
  const std::string outside = "is a symbolic link that leads to";
  EXPECT_THAT(error({{"location", "link"}}), HasSubstr(outside));
  std::filesystem::create_directory_symlink("..", root_ / "model" / "above");
  EXPECT_THAT(error({{"location", "above/secret"}}), HasSubstr(outside));
  std::filesystem::create_symlink("/dev/zero", root_ / "model" / "device");
  EXPECT_THAT(error({{"location", "device"}}), HasSubstr(outside));
  std::filesystem::create_symlink("itself", root_ / "model" / "itself");
  EXPECT_THAT(error({{"location", "itself"}}), HasSubstr("Too many levels of symbolic links"));
}

// The cache of Hugging Face: snapshots/REVISION/NAME is a link to ../../blobs/HASH.
TEST_F(ExternalDataTest, FollowsALinkIntoTheFolderThatTheModelIsALinkInto) {
  std::filesystem::create_directories(root_ / "blobs");
  std::filesystem::rename(root_ / "model" / "w", root_ / "blobs" / "5ca1ab1e");
  std::filesystem::create_symlink("../blobs/5ca1ab1e", root_ / "model" / "w");
  std::ofstream(root_ / "blobs" / "deadbeef") << "model";
  EXPECT_THAT(error({{"location", "w"}}), HasSubstr("leads to"));
  std::filesystem::create_symlink("../blobs/deadbeef", root_ / "model" / "m.onnx");
  EXPECT_THAT(integers_of(*read({{"location", "w"}})), ElementsAre(1, 2));
  EXPECT_THAT(error({{"location", "link"}}), HasSubstr("leads to"));
  EXPECT_THAT(error({{"location", "../blobs/5ca1ab1e"}}), HasSubstr("lies outside"));
}

TEST_F(ExternalDataTest, RefusesWhatIsNoFile) {
  EXPECT_THAT(error({{"location", "missing"}}), HasSubstr("No such file"));
  EXPECT_THAT(error({{"location", "w/deeper"}}), HasSubstr("Not a directory"));
  EXPECT_THAT(error({{"location", "folder"}}), HasSubstr("not a regular file"));
  EXPECT_THAT(error({{"location", "."}}), HasSubstr("not a regular file"));
  EXPECT_THAT(error({{"location", std::string("w\0x", 3)}}), HasSubstr("zero byte"));
  EXPECT_THAT(error({}), HasSubstr("has no location"));
}

TEST_F(ExternalDataTest, RefusesARangeOutsideOfTheFile) {
  EXPECT_THAT(error({{"location", "w"}, {"offset", "3"}}),
              HasSubstr("2 bytes at offset 3 exceed \"w\", which has 4"));
  EXPECT_THAT(error({{"location", "w"}, {"offset", "18446744073709551615"}}), HasSubstr("exceed"));
  EXPECT_THAT(error({{"location", "w"}, {"length", "4"}}),
              HasSubstr("has 4 bytes, but its shape requires 2"));
  for (const char* text : {"-1", "one", "", "1x", " 1", "99999999999999999999"})
    EXPECT_THAT(error({{"location", "w"}, {"offset", text}}), HasSubstr("not a number of bytes"));
}

}  // namespace
}  // namespace tessera::onnx
