#include "tessera/onnx/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>

#include <filesystem>

#include "onnx.pb.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/text.h"
#include "tests/onnx/build_model.h"

namespace tessera::onnx {
namespace {

using testing::add_floats;
using testing::add_node;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::import_proto;
using testing::model;
using testing::set_info;

/// What is written for a graph.
ModelFile written(const Graph& graph, const ExportOptions& options = {}) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "export_test";
  std::filesystem::create_directories(folder);
  const auto done = export_model(graph, folder / "m.onnx", options);
  EXPECT_TRUE(done) << to_string(done.error());
  auto file = read_model(folder / "m.onnx");
  EXPECT_TRUE(file) << to_string(file.error());
  return file ? *file : ModelFile{{}, std::make_shared<::onnx::ModelProto>()};
}

ModelFile written(const std::string& text) {
  const auto graph = parse_graph(text);
  EXPECT_TRUE(graph) << to_string(graph.error());
  return graph ? written(*graph) : ModelFile{{}, std::make_shared<::onnx::ModelProto>()};
}

std::int64_t opset_of(const ModelFile& file) {
  return file.proto->opset_import(0).version();
}

TEST(Export, WritesOperatorsUnderTheirOnnxNames) {
  const ModelFile file = written("graph(x: f32[2, 3]) { a = softmax(x) {axis=1}  return relu(a) }");
  const auto& graph = file.proto->graph();
  ASSERT_EQ(graph.node_size(), 2);
  EXPECT_EQ(graph.node(0).op_type(), "Softmax");
  EXPECT_EQ(graph.node(0).attribute(0).i(), 1);
  EXPECT_EQ(graph.node(1).op_type(), "Relu");
  EXPECT_EQ(graph.node(1).input(0), "a");
  EXPECT_EQ(graph.value_info(0).name(), "a");
  EXPECT_EQ(file.proto->ir_version(), 8);
}

TEST(Export, WritesABoxOverATensorAsAChoiceBetweenPaddedTensors) {
  const ModelFile file =
      written("graph(x: f32[4, 5], y: f32[2, 2]) { return update_slice(x, y, [1, 3]) }");
  std::vector<std::string> types;
  for (const auto& node : file.proto->graph().node()) types.push_back(node.op_type());
  EXPECT_EQ(std::ranges::count(types, "Pad"), 2);
  EXPECT_EQ(std::ranges::count(types, "Where"), 1);
}

TEST(Export, LeavesOutAttributesThatAreDefaults) {
  const ModelFile file = written("graph(x: f32[2, 3]) { return softmax(x) }");
  EXPECT_EQ(file.proto->graph().node(0).attribute_size(), 0);
}

TEST(Export, TakesTheSmallestOpsetThatHasAllOperators) {
  EXPECT_EQ(opset_of(written("graph(x: f32[2]) { return relu(x) }")), 17);
  EXPECT_EQ(opset_of(written("graph(x: f32[2]) { return reduce_max(x) }")), 18);
  const ModelFile gelu = written("graph(x: f32[2]) { return gelu(x) }");
  EXPECT_EQ(opset_of(gelu), 20);
  EXPECT_EQ(written("graph(x: f32[2, 4], s: f32[4]) { return rms_normalization(x, s) }")
                .proto->ir_version(),
            10);
}

TEST(Export, TakesAnOpsetInWhichOperatorsHaveTheirTypes) {
  EXPECT_EQ(opset_of(written("graph(x: f32[2]) { return acos(x) }")), 17);
  EXPECT_EQ(opset_of(written("graph(x: bf16[2]) { return acos(x) }")), 22);
  EXPECT_EQ(opset_of(written("graph(x: bf16[2]) { return cos(x) }")), 22);
  EXPECT_EQ(opset_of(written("graph(x: bf16[2]) { return relu(x) }")), 17);
  EXPECT_EQ(opset_of(written("graph(x: bool[2]) { return reduce_max(x) }")), 20);
  EXPECT_EQ(opset_of(written("graph(x: f32[2]) { return cast_string(x) {round_mode=\"down\", "
                             "to=\"string\"} }")),
            24);
}

TEST(Export, NamesTheResultsThatOnnxRequires) {
  const ModelFile top =
      written("graph(x: f32[4], unused: i64[1]) { a = top_k(x, unused)  return a }");
  EXPECT_THAT(top.proto->graph().node(0).output(), ElementsAre("a", "unused_1"));
  const ModelFile norm = written(
      "graph(x: f32[2, 3], c: f32[3]) { a = batch_normalization(x, c, c, c, c) {training_mode=1}  "
      "return a }");
  EXPECT_EQ(norm.proto->graph().node(0).output_size(), 3);
  EXPECT_EQ(written("graph(x: f32[2, 3, 4]) { return max_pool(x) {kernel_shape=[2]} }")
                .proto->graph()
                .node(0)
                .output_size(),
            1);
}

TEST(Export, KeepsSmallTypes) {
  struct Case {
    const char* dtype;
    const char* elements;
    std::int64_t opset;
  };
  for (const Case& c : std::to_array<Case>({{"i4", "[-8, 7, 3]", 21},
                                            {"u4", "[0, 15, 3]", 21},
                                            {"f8e4m3fn", "[-448.0, nan, 0.5]", 21},
                                            {"f8e5m2", "[inf, -0.0, 0.5]", 21},
                                            {"f4e2m1", "[-6.0, 0.5, 1.5]", 23},
                                            {"f8e8m0", "[2.0, 0.25, nan]", 24},
                                            {"i2", "[-2, 1, 0]", 25},
                                            {"u2", "[3, 1, 0]", 25}})) {
    const std::string text = fmt::format(
        "graph(x: {0}[n]) {{\n  w = const {0}[3] {1}\n  y: {0}[n + 3] = concat(x, w) {{axis=0}}\n"
        "  return y\n}}\n",
        c.dtype, c.elements);
    const ModelFile file = written(text);
    EXPECT_EQ(opset_of(file), c.opset) << c.dtype;
    const auto read = import_model(file);
    ASSERT_TRUE(read) << to_string(read.error());
    EXPECT_THAT(to_text(read->graph), HasSubstr(text.substr(text.find('\n')))) << c.dtype;
  }
}

TEST(Export, WritesTheVersionOfADomainThatHasAllParts) {
  const auto version = [](const Attrs& attrs) {
    GraphBuilder g;
    const Val x = g.input("x", DType::I64, {2});
    const auto graph = g.finish(Vals{g.op("ml_label_encoder", {x}, attrs)});
    EXPECT_TRUE(graph) << to_string(graph.error());
    const ModelFile file = written(*graph);
    EXPECT_EQ(file.proto->opset_import(1).domain(), "ai.onnx.ml");
    return file.proto->opset_import(1).version();
  };
  EXPECT_EQ(version({{"keys_int64s", Ints{1}}, {"values_int64s", Ints{2}}}), 2);
  const Tensor list = Tensor::of<std::int64_t>(DType::I64, {1}, Ints{1});
  EXPECT_EQ(version({{"keys_tensor", list}, {"values_tensor", list}}), 4);
}

TEST(Export, WritesSymbolicSizesAsParameters) {
  const ModelFile file = written("graph(x: f32[n, 3]) { return concat(x, x) {axis=0} }");
  const auto& graph = file.proto->graph();
  const auto dim = [](const ::onnx::ValueInfoProto& info, int axis) {
    return info.type().tensor_type().shape().dim(axis);
  };
  EXPECT_EQ(dim(graph.input(0), 0).dim_param(), "n");
  EXPECT_EQ(dim(graph.input(0), 1).dim_value(), 3);
  EXPECT_EQ(dim(graph.output(0), 0).dim_param(), "2*n");
}

TEST(Export, WritesDataTypesByNumber) {
  const ModelFile file = written("graph(x: f32[2]) { return cast(x) {to=\"i64\"} }");
  EXPECT_EQ(file.proto->graph().node(0).attribute(0).i(), 7);
}

TEST(Export, CopiesOutputsThatAreInputsOrConstantsOrTwice) {
  ::onnx::ModelProto proto = model(17, {2});
  add_floats(*proto.mutable_graph(), "w", {1, 2});
  add_node(*proto.mutable_graph(), "Relu", {"x"}, {"y"});
  proto.mutable_graph()->add_output()->set_name("w");
  proto.mutable_graph()->add_output()->set_name("x");
  proto.mutable_graph()->add_output()->set_name("y");
  const auto imported = import_proto(proto);
  ASSERT_TRUE(imported) << to_string(imported.error());
  const ModelFile file = written(imported->graph, {.output_names = imported->output_names});
  std::vector<std::string> names;
  for (const auto& output : file.proto->graph().output()) names.push_back(output.name());
  EXPECT_THAT(names, ElementsAre("y", "w", "x_1", "y_1"));
  EXPECT_TRUE(import_model(file)) << to_string(import_model(file).error());
}

TEST(Export, WritesCapturesAsNamesOfTheGraphAround) {
  ::onnx::ModelProto proto = model(17, {2});
  set_info(*proto.mutable_graph()->add_input(), "c", {}, ::onnx::TensorProto::BOOL);
  ::onnx::GraphProto branch;
  branch.set_name("b");
  add_node(branch, "Relu", {"x"}, {"r"});
  branch.add_output()->set_name("r");
  add_node(*proto.mutable_graph(), "If", {"c"}, {"y"})
      .graph("then_branch", branch)
      .graph("else_branch", branch);
  const auto imported = import_proto(proto);
  ASSERT_TRUE(imported) << to_string(imported.error());
  const ModelFile file = written(imported->graph);
  const auto& node = file.proto->graph().node(0);
  EXPECT_EQ(node.op_type(), "If");
  EXPECT_EQ(node.input_size(), 1);
  const auto& then_branch = node.attribute(0).g();
  EXPECT_EQ(then_branch.input_size(), 0);
  EXPECT_EQ(then_branch.node(0).input(0), "x");
  EXPECT_NE(then_branch.output(0).name(), node.attribute(1).g().output(0).name());
}

TEST(Export, ReadsBackWhatItWrote) {
  const auto graph = parse_graph(
      "graph net(x: f32[n, 4], w: f32[4, 5]) {\n"
      "  a = matmul(x, w)  b = layer_normalization(a, const f32[5] [1.0, 1.0, 1.0, 1.0, 1.0])\n"
      "  c, d = split(b) {axis=0, num_outputs=2}  return add(c, d), b\n}");
  ASSERT_TRUE(graph) << to_string(graph.error());
  const auto again = import_model(written(*graph));
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_EQ(again->graph.hash(), graph->hash());
}

TEST(Export, RefusesToWriteWhereItCannot) {
  const auto graph = parse_graph("graph(x: f32[2]) { return relu(x) }");
  ASSERT_TRUE(graph);
  const auto done = export_model(*graph, "/nonexistent/folder/m.onnx");
  ASSERT_FALSE(done);
  EXPECT_THAT(to_string(done.error()), HasSubstr("/nonexistent/folder"));
}

}  // namespace
}  // namespace tessera::onnx
