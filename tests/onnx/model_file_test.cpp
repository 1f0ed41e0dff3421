#include "tessera/onnx/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "onnx.pb.h"
#include "tessera/onnx/tensor_proto.h"
#include "tessera/support/file.h"
#include "tests/onnx/build_model.h"

namespace tessera::onnx {
namespace {

using testing::bytes_of;
using ::testing::HasSubstr;

std::filesystem::path scratch(const std::string& name) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "model_file_test";
  std::filesystem::create_directories(folder);
  return folder / name;
}

std::string characters_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Adds a float tensor whose raw data is `count` times the byte `fill`.
void fill_tensor(::onnx::TensorProto* tensor, const std::string& name, int count, char fill) {
  tensor->set_name(name);
  tensor->set_data_type(::onnx::TensorProto::UINT8);
  tensor->add_dims(count);
  tensor->set_raw_data(std::string(static_cast<std::size_t>(count), fill));
}

/// A model that has a tensor in each place where a tensor can be.
::onnx::ModelProto model_with_tensors_everywhere() {
  ::onnx::ModelProto model;
  model.set_ir_version(8);
  auto* graph = model.mutable_graph();
  fill_tensor(graph->add_initializer(), "w", 5000, 'w');
  fill_tensor(graph->add_initializer(), "small", 3, 's');
  auto* attribute = graph->add_node()->add_attribute();
  fill_tensor(attribute->mutable_t(), "t", 2000, 't');
  fill_tensor(attribute->add_tensors(), "ts", 200, 'u');
  fill_tensor(attribute->mutable_g()->add_initializer(), "inner", 2000, 'i');
  fill_tensor(attribute->add_graphs()->add_initializer(), "inner2", 200, 'j');
  fill_tensor(attribute->mutable_sparse_tensor()->mutable_values(), "v", 200, 'v');
  fill_tensor(attribute->add_sparse_tensors()->mutable_indices(), "x", 200, 'x');
  auto* sparse = graph->add_sparse_initializer();
  fill_tensor(sparse->mutable_values(), "sv", 200, 'a');
  fill_tensor(sparse->mutable_indices(), "si", 200, 'b');
  fill_tensor(model.add_functions()->add_node()->add_attribute()->mutable_t(), "f", 200, 'f');
  fill_tensor(model.add_training_info()->mutable_algorithm()->add_initializer(), "tr", 200, 'r');
  return model;
}

Expected<ModelFile> parse(const ::onnx::ModelProto& model) {
  return parse_model(bytes_of(model.SerializeAsString()), "m.onnx");
}

std::string parse_error_of(const std::string& file) {
  const auto model = parse_model(bytes_of(file), "m.onnx");
  return model ? "no error" : to_string(model.error());
}

TEST(ModelFile, KeepsRawDataOutOfTheMessage) {
  const auto file = parse(model_with_tensors_everywhere());
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(file->payloads.size(), 12);
  EXPECT_LT(file->proto->ByteSizeLong(), 600);
  const auto& initializer = file->proto->graph().initializer(0);
  EXPECT_EQ(initializer.name(), "w");
  EXPECT_EQ(characters_of(file->payloads.at(initializer.raw_data())), std::string(5000, 'w'));
}

TEST(ModelFile, MapsRawDataInPlace) {
  const Bytes source = bytes_of(model_with_tensors_everywhere().SerializeAsString());
  const auto file = parse_model(source, "m.onnx");
  ASSERT_TRUE(file);
  const Bytes& payload = file->payloads.at(file->proto->graph().initializer(0).raw_data());
  EXPECT_GE(payload.data(), source.data());
  EXPECT_LE(payload.data() + payload.size(), source.data() + source.size());
}

TEST(ModelFile, TakesNoContentForAToken) {
  ::onnx::ModelProto model;
  auto* tensor = model.mutable_graph()->add_initializer();
  fill_tensor(tensor, "eight", 8, '\0');  // what the token of the first payload looks like
  tensor->set_raw_data(std::string("\1\0\0\0\0\0\0\0", 8));
  const auto file = parse(model);
  ASSERT_TRUE(file);
  const Bytes& payload = file->payloads.at(file->proto->graph().initializer(0).raw_data());
  EXPECT_EQ(characters_of(payload), tensor->raw_data());
}

TEST(ModelFile, WritesByteForByteWhatItRead) {
  const std::string written = model_with_tensors_everywhere().SerializeAsString();
  const auto file = parse_model(bytes_of(written), "m.onnx");
  ASSERT_TRUE(file);
  const auto path = scratch("again.onnx");
  ASSERT_TRUE(write_model(*file->proto, file->payloads, path));
  EXPECT_EQ(*read_text(path), written);
}

TEST(ModelFile, KeepsFieldsThatTheSchemaDoesNotKnow) {
  ::onnx::ModelProto model = model_with_tensors_everywhere();
  std::string written = model.SerializeAsString();
  written += std::string("\xfa\x3f\x03new", 6);  // field 1023
  const auto file = parse_model(bytes_of(written), "m.onnx");
  ASSERT_TRUE(file) << to_string(file.error());
  const auto path = scratch("unknown.onnx");
  ASSERT_TRUE(write_model(*file->proto, file->payloads, path));
  EXPECT_EQ(*read_text(path), written);
}

TEST(ModelFile, WritesLargeInitializersBesideTheModel) {
  const auto file = parse(model_with_tensors_everywhere());
  ASSERT_TRUE(file);
  const auto path = scratch("external.onnx");
  ASSERT_TRUE(write_model(*file->proto, file->payloads, path, {.external = true}));
  // Nodes come before initializers in a file: the 2000 bytes inside an attribute, then the 5000.
  EXPECT_EQ(std::filesystem::file_size(scratch("external.weights")), 4096 + 5000);

  const auto again = read_model(path);
  ASSERT_TRUE(again) << to_string(again.error());
  const auto& weights = again->proto->graph().initializer(0);
  EXPECT_EQ(weights.data_location(), ::onnx::TensorProto::EXTERNAL);
  EXPECT_FALSE(again->proto->graph().initializer(1).has_data_location());
  const auto tensor = tensor_of(weights, *again);
  ASSERT_TRUE(tensor) << to_string(tensor.error());
  EXPECT_EQ(characters_of(tensor->bytes), std::string(5000, 'w'));
}

TEST(ModelFile, WritesAModelThatIsTooLargeForOneFileAsTwo) {
  const auto file = parse(model_with_tensors_everywhere());
  ASSERT_TRUE(file);
  const auto path = scratch("large.onnx");
  ASSERT_TRUE(write_model(*file->proto, file->payloads, path, {.inline_limit = 6000}));
  EXPECT_TRUE(std::filesystem::exists(scratch("large.weights")));
  const auto refused = write_model(*file->proto, file->payloads, path, {.inline_limit = 1000});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().id, "onnx-too-large");
}

TEST(ModelFile, WritesASharedPayloadOnce) {
  Payloads payloads;
  ::onnx::ModelProto model;
  const std::string token = payloads.add(bytes_of(std::string(4096, 'p')));
  for (const char* name : {"a", "b"}) {
    auto* tensor = model.mutable_graph()->add_initializer();
    fill_tensor(tensor, name, 4096, 0);
    tensor->set_raw_data(token);
  }
  const auto path = scratch("shared.onnx");
  ASSERT_TRUE(write_model(model, payloads, path, {.external = true}));
  EXPECT_EQ(std::filesystem::file_size(scratch("shared.weights")), 4096);
}

TEST(ModelFile, SaysWhatAFileSeemsToBeInstead) {
  EXPECT_EQ(parse_error_of(""),
            "m.onnx: error[onnx-malformed]: the file is empty\n"
            "  help: it may have been cut off while it was copied");
  EXPECT_THAT(parse_error_of("once upon a time"), HasSubstr("note: the file looks like text"));
  EXPECT_THAT(parse_error_of("version https://git-lfs.github.com/spec/v1\n"),
              HasSubstr("git lfs pull"));
  EXPECT_THAT(parse_error_of("PK\3\4...."), HasSubstr("PyTorch"));
  EXPECT_THAT(parse_error_of("<!DOCTYPE html>"), HasSubstr("web page"));
  EXPECT_THAT(parse_error_of(std::string("\x08\x08", 2)), HasSubstr("the file holds no graph"));
}

TEST(ModelFile, RefusesFieldsThatEndBehindTheFile) {
  EXPECT_THAT(parse_error_of(std::string("\x3a\x7f\x0a\x00", 4)),
              HasSubstr("field 7 at byte 0 has 127 bytes, but only 2 remain"));
  EXPECT_THAT(parse_error_of("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
              HasSubstr("onnx-malformed"));
  EXPECT_THAT(parse_error_of("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
              HasSubstr("is cut off"));
  EXPECT_THAT(parse_error_of("\x3b"), HasSubstr("wire type 3"));
  EXPECT_THAT(parse_error_of(std::string(1, '\0')), HasSubstr("no field at byte 0"));
}

TEST(ModelFile, RefusesDeepNesting) {
  ::onnx::ModelProto model;
  ::onnx::GraphProto* graph = model.mutable_graph();
  for (int depth = 0; depth < 200; ++depth) graph = graph->add_node()->add_attribute()->mutable_g();
  EXPECT_THAT(parse_error_of(model.SerializeAsString()), HasSubstr("nested more than 100 deep"));
}

TEST(ModelFile, SurvivesEveryBeginningAndEveryFlippedByte) {
  const std::string whole = model_with_tensors_everywhere().SerializeAsString();
  const auto survive = [](const std::string& text) {
    const auto file = parse_model(bytes_of(text), "m.onnx");
    if (!file) return;
    for (const auto& tensor : file->proto->graph().initializer()) (void)tensor_of(tensor, *file);
  };
  for (std::size_t i = 0; i < whole.size(); i += i < 200 ? 1 : 37) survive(whole.substr(0, i));
  for (std::size_t i = 0; i < whole.size(); i += i < 200 ? 1 : 7) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      survive(damaged);
    }
  }
}

}  // namespace
}  // namespace tessera::onnx
