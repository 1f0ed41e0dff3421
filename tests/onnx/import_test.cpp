#include "tessera/onnx/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tessera/ir/text.h"
#include "tests/onnx/build_model.h"

namespace tessera::onnx {
namespace {

using testing::add_floats;
using testing::add_node;
using ::testing::HasSubstr;
using testing::import_proto;
using testing::model;
using testing::set_info;

/// The body of the text form, or the diagnostic.
std::string text_of(const ::onnx::ModelProto& proto, const ImportOptions& options = {}) {
  const auto imported = import_proto(proto, options);
  return imported ? to_text(imported->graph, {.types = false}) : to_string(imported.error());
}

/// A model of one operator on an f32 input.
std::string text_of_op(std::int64_t opset, const std::vector<std::int64_t>& shape,
                       const std::string& op,
                       const std::function<void(testing::NodeBuilder&)>& with_attrs = {}) {
  ::onnx::ModelProto proto = model(opset, shape);
  testing::NodeBuilder node = add_node(*proto.mutable_graph(), op, {"x"}, {"y"});
  if (with_attrs) with_attrs(node);
  return text_of(proto);
}

TEST(Import, KeepsTheNamesOfInputsOutputsValuesAndNodes) {
  ::onnx::ModelProto proto = model(17, {2, 3});
  add_node(*proto.mutable_graph(), "Relu", {"x"}, {"hidden"}).proto().set_name("first");
  add_node(*proto.mutable_graph(), "Exp", {"hidden"}, {"y"});
  const auto imported = import_proto(proto);
  ASSERT_TRUE(imported) << to_string(imported.error());
  const Graph& graph = imported->graph;
  EXPECT_EQ(graph.name(graph.inputs()[0]), "x");
  EXPECT_EQ(graph.name(graph.outputs()[0]), "y");
  EXPECT_EQ(graph.name(graph.inputs(graph.nodes()[1])[0]), "hidden");
  EXPECT_EQ(graph.node_name(0), "first");
  EXPECT_EQ(to_string(graph.type(graph.outputs()[0])), "f32[2, 3]");
}

TEST(Import, GivesNamesOfSizesToSymbols) {
  ::onnx::ModelProto proto = model(17, {2, 3});
  auto& shape = *proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type();
  shape.mutable_shape()->mutable_dim(0)->set_dim_param("batch");
  add_node(*proto.mutable_graph(), "Relu", {"x"}, {"y"});
  const auto imported = import_proto(proto);
  ASSERT_TRUE(imported) << to_string(imported.error());
  EXPECT_EQ(to_string(imported->graph.type(imported->graph.outputs()[0])), "f32[batch, 3]");
}

TEST(Import, MakesAttributesInputsWhereTheyBecameInputs) {
  EXPECT_THAT(text_of_op(11, {2, 1}, "Squeeze", [](auto& n) { n.ints("axes", {1}); }),
              HasSubstr("i64[1] [1]"));
  EXPECT_THAT(text_of_op(6, {2, 1}, "Clip", [](auto& n) { n.f("min", 0).f("max", 6); }),
              HasSubstr("f32[] 6"));
  EXPECT_THAT(text_of_op(2, {2, 1}, "Pad",
                         [](auto& n) {
                           n.ints("pads", {0, 1, 0, 1});
                         }),
              HasSubstr("i64[4] [0, 1, 0, 1]"));
  EXPECT_THAT(
      text_of_op(1, {2, 3}, "Slice", [](auto& n) { n.ints("starts", {0}).ints("ends", {1}); }),
      HasSubstr("slice(x, "));
  EXPECT_THAT(text_of_op(1, {4, 3}, "ReduceMean", [](auto& n) { n.ints("axes", {0}); }),
              HasSubstr("i64[1] [0]"));
}

TEST(Import, TakesOneSoftmaxWhereTheOldFormIsOne) {
  EXPECT_THAT(text_of_op(11, {2, 3}, "Softmax"), HasSubstr("y = softmax(x) {axis=1}"));
}

TEST(Import, FlattensForASoftmaxOverSeveralAxes) {
  const std::string text = text_of_op(11, {2, 3, 4}, "Softmax");
  EXPECT_THAT(text, HasSubstr("flatten(x)"));
  EXPECT_THAT(text, HasSubstr("y = reshape("));
}

TEST(Import, AlignsTheSecondOperandAsOldBroadcastsSay) {
  ::onnx::ModelProto proto = model(6, {2, 3, 4});
  add_floats(*proto.mutable_graph(), "b", {1, 2, 3});
  add_node(*proto.mutable_graph(), "Add", {"x", "b"}, {"y"}).i("broadcast", 1).i("axis", 1);
  EXPECT_THAT(text_of(proto), HasSubstr("unsqueeze(b, "));
}

TEST(Import, GivesTheStatisticsOfABatchThatOldTrainingNormalizationsHave) {
  ::onnx::ModelProto proto = model(13, {2, 3, 4});
  for (const char* name : {"scale", "bias", "mean", "var"})
    add_floats(*proto.mutable_graph(), name, {1, 2, 3});
  add_node(*proto.mutable_graph(), "BatchNormalization", {"x", "scale", "bias", "mean", "var"},
           {"n", "m", "v", "batch_mean", "y"});
  const std::string text = text_of(proto);
  EXPECT_THAT(text, HasSubstr("n, m, v = batch_normalization(x, scale, bias, mean, var) "
                              "{training_mode=1}"));
  EXPECT_THAT(text, HasSubstr("batch_mean, y = batch_normalization(x, scale, bias, mean, var) "
                              "{momentum=0.0, training_mode=1}"));
}

TEST(Import, ReadsDataTypesByNumberAndByName) {
  EXPECT_THAT(text_of_op(13, {2}, "Cast", [](auto& n) { n.i("to", 7); }), HasSubstr("to=\"i64\""));
  EXPECT_THAT(text_of_op(1, {2}, "Cast", [](auto& n) { n.s("to", "INT64"); }),
              HasSubstr("to=\"i64\""));
  EXPECT_THAT(text_of_op(19, {2}, "Cast", [](auto& n) { n.i("to", 17); }),
              HasSubstr("to=\"f8e4m3fn\""));
  EXPECT_THAT(text_of_op(19, {2}, "Cast", [](auto& n) { n.i("to", 14); }),
              HasSubstr("error[onnx-unsupported-dtype]: the data type COMPLEX64"));
}

TEST(Import, NamesWhatItDoesNotKnow) {
  EXPECT_THAT(text_of_op(17, {2}, "Frobnicate"),
              HasSubstr("m.onnx: Frobnicate #0: error[onnx-unsupported-operator]: operator "
                        "ai.onnx.Frobnicate of opset 17 is not supported"));
  EXPECT_THAT(text_of_op(17, {2}, "Relu", [](auto& n) { n.i("speed", 3); }),
              HasSubstr("error[onnx-unsupported-attribute]: relu has no attribute speed"));
  EXPECT_THAT(text_of_op(99, {2}, "Relu"), HasSubstr("error[onnx-unsupported-opset]"));
}

TEST(Import, NamesAllThatItDoesNotKnow) {
  ::onnx::ModelProto proto = model(17, {2});
  auto& opset = *proto.add_opset_import();
  opset.set_domain("com.x");
  opset.set_version(3);
  ::onnx::GraphProto branch;
  add_node(branch, "Inner", {"x"}, {"b"});
  set_info(*branch.add_output(), "b", {2});
  ::onnx::FunctionProto& function = *proto.add_functions();
  function.set_domain("local");
  function.set_name("F");
  function.add_input("v");
  function.add_output("w");
  add_node(function, "Foo", {"v"}, {"w"}).proto().set_domain("com.x");
  auto& graph = *proto.mutable_graph();
  add_node(graph, "Frobnicate", {"x"}, {"a"});
  add_node(graph, "Foo", {"a"}, {"c"}).proto().set_domain("com.x");
  add_node(graph, "Foo", {"c"}, {"d"}).proto().set_domain("com.x");
  for (const char* name : {"e", "f"})
    add_node(graph, "F", {"d"}, {name}).proto().set_domain("local");
  add_node(graph, "If", {"c"}, {"g"}).graph("then_branch", branch).graph("else_branch", branch);
  add_node(graph, "Unused", {"x"}, {""});
  add_node(graph, "Relu", {"d"}, {"y"});
  EXPECT_THAT(text_of(proto),
              HasSubstr("m.onnx: Frobnicate #0: error[onnx-unsupported-operator]: 3 operators are "
                        "not supported: com.x.Foo of opset 3 (3 nodes), ai.onnx.Inner of opset 17 "
                        "(2 nodes), ai.onnx.Frobnicate of opset 17 (1 node)"));
}

TEST(Import, CountsTheNodesOfTheOperatorThatItDoesNotKnow) {
  ::onnx::ModelProto proto = model(17, {2});
  add_node(*proto.mutable_graph(), "Frobnicate", {"x"}, {"a"});
  add_node(*proto.mutable_graph(), "Frobnicate", {"a"}, {"y"});
  EXPECT_THAT(text_of(proto),
              HasSubstr("operator ai.onnx.Frobnicate of opset 17 is not supported (2 nodes)"));
}

TEST(Import, NamesTheMostFrequentOfManyOperatorsThatItDoesNotKnow) {
  ::onnx::ModelProto proto = model(17, {2});
  for (int i = 0; i < 40; ++i)
    add_node(*proto.mutable_graph(), "Op" + std::to_string(i), {"x"}, {"v" + std::to_string(i)});
  EXPECT_THAT(text_of(proto), HasSubstr("(1 node) and 16 more"));
}

TEST(Import, SortsNodesThatAreOutOfOrder) {
  ::onnx::ModelProto proto = model(17, {2});
  add_node(*proto.mutable_graph(), "Exp", {"h"}, {"y"});
  add_node(*proto.mutable_graph(), "Relu", {"x"}, {"h"});
  EXPECT_THAT(text_of(proto), HasSubstr("h = relu(x)\n  y = exp(h)"));
}

TEST(Import, RefusesCyclesDanglingAndDuplicateNames) {
  ::onnx::ModelProto cycle = model(17, {2});
  add_node(*cycle.mutable_graph(), "Add", {"x", "y"}, {"h"});
  add_node(*cycle.mutable_graph(), "Relu", {"h"}, {"y"});
  EXPECT_THAT(text_of(cycle), HasSubstr("Add #0: error[onnx-cycle]"));

  ::onnx::ModelProto dangling = model(17, {2});
  add_node(*dangling.mutable_graph(), "Add", {"x", "nowhere"}, {"y"});
  EXPECT_THAT(text_of(dangling), HasSubstr("error[onnx-dangling-input]: value nowhere"));

  ::onnx::ModelProto twice = model(17, {2});
  add_node(*twice.mutable_graph(), "Relu", {"x"}, {"y"});
  add_node(*twice.mutable_graph(), "Exp", {"x"}, {"y"});
  EXPECT_THAT(text_of(twice), HasSubstr("error[onnx-duplicate-name]: value y is defined twice"));

  ::onnx::ModelProto weights = model(17, {2});
  add_floats(*weights.mutable_graph(), "w", {1, 2});
  add_floats(*weights.mutable_graph(), "w", {3, 4});
  add_node(*weights.mutable_graph(), "Add", {"x", "w"}, {"y"});
  EXPECT_THAT(text_of(weights), HasSubstr("w: error[onnx-duplicate-name]"));
}

TEST(Import, RefusesNegativeSizes) {
  ::onnx::ModelProto proto = model(17, {2, -3});
  add_node(*proto.mutable_graph(), "Relu", {"x"}, {"y"});
  EXPECT_THAT(text_of(proto), HasSubstr("error[onnx-invalid-shape]: axis 1 has the size -3"));
}

TEST(Import, MakesInputsWithADefaultConstantsUnlessAskedNotTo) {
  ::onnx::ModelProto proto = model(17, {2});
  set_info(*proto.mutable_graph()->add_input(), "w", {2});
  add_floats(*proto.mutable_graph(), "w", {1, 2});
  add_node(*proto.mutable_graph(), "Add", {"x", "w"}, {"y"});
  EXPECT_EQ(import_proto(proto)->graph.inputs().size(), 1);
  EXPECT_EQ(import_proto(proto, {.keep_defaults = true})->graph.inputs().size(), 2);
}

/// A function leaky(a; slope) that another one calls.
::onnx::ModelProto model_with_functions() {
  ::onnx::ModelProto proto = model(17, {2});
  ::onnx::FunctionProto& inner = *proto.add_functions();
  inner.set_domain("my");
  inner.set_name("Inner");
  inner.add_input("a");
  inner.add_output("b");
  inner.add_attribute("which");
  add_node(inner, "ReduceSum", {"a"}, {"s"}).ref("keepdims", "which");
  add_node(inner, "Relu", {"s"}, {"b"});
  ::onnx::FunctionProto& outer = *proto.add_functions();
  outer.set_domain("my");
  outer.set_name("Outer");
  outer.add_input("p");
  outer.add_output("q");
  add_node(outer, "Inner", {"p"}, {"q"}).i("which", 0).proto().set_domain("my");
  auto& call = add_node(*proto.mutable_graph(), "Outer", {"x"}, {"y"}).proto();
  call.set_domain("my");
  call.set_name("call");
  return proto;
}

TEST(Import, ExpandsFunctionsWithTheirAttributes) {
  const std::string text = text_of(model_with_functions());
  EXPECT_THAT(text, HasSubstr("= reduce_sum(x) {keepdims=0}"));
  EXPECT_THAT(text, HasSubstr("y = relu('call/Inner/s')"));
}

TEST(Import, RefusesFunctionsThatAreCalledAsOperatorsAre) {
  ::onnx::ModelProto proto = model(17, {2, 3});
  ::onnx::FunctionProto& function = *proto.add_functions();
  function.set_name("Relu");
  function.add_input("a");
  function.add_output("b");
  add_node(function, "Neg", {"a"}, {"b"});
  add_node(*proto.mutable_graph(), "Relu", {"x"}, {"y"});
  EXPECT_THAT(text_of(proto), HasSubstr("error[onnx-ambiguous-operator]"));
  function.set_domain("mine");
  proto.mutable_graph()->mutable_node(0)->set_domain("mine");
  EXPECT_THAT(text_of(proto), HasSubstr("neg(x)"));
}

TEST(Import, KeepsNamesOfSizesApartFromThoseItMakesUp) {
  ::onnx::ModelProto proto = model(17, {2, 3});
  auto& shape = *proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type();
  shape.mutable_shape()->mutable_dim(0)->set_dim_param("_x_d1");
  shape.mutable_shape()->mutable_dim(1)->clear_dim_value();
  add_node(*proto.mutable_graph(), "Relu", {"x"}, {"y"});
  const auto imported = import_proto(proto);
  ASSERT_TRUE(imported) << to_string(imported.error());
  EXPECT_EQ(to_string(imported->graph.type(imported->graph.outputs()[0])), "f32['$_x_d1', _x_d1]");
}

TEST(Import, CountsOutputsWithoutNames) {
  ::onnx::ModelProto proto = model(13, {6});
  add_node(*proto.mutable_graph(), "Split", {"x"}, {"y", "b", ""});
  EXPECT_THAT(text_of(proto), HasSubstr("num_outputs=3"));
}

TEST(Import, RoundsNearestNeighboursUpWhereAnImageOfOpset10Shrinks) {
  const auto resized = [](const std::vector<float>& scales) {
    ::onnx::ModelProto proto = model(10, {2, 8});
    add_floats(*proto.mutable_graph(), "scales", scales);
    add_node(*proto.mutable_graph(), "Resize", {"x", "scales"}, {"y"});
    return text_of(proto);
  };
  EXPECT_THAT(resized({1, 2}), HasSubstr("nearest_mode=\"floor\""));
  EXPECT_THAT(resized({1, 0.5F}), HasSubstr("nearest_mode=\"ceil\""));
  const std::string both = resized({2, 0.5F});
  EXPECT_THAT(both, HasSubstr("nearest_mode=\"floor\""));
  EXPECT_THAT(both, HasSubstr("nearest_mode=\"ceil\""));
}

TEST(Import, RefusesFunctionsThatCallThemselves) {
  ::onnx::ModelProto proto = model_with_functions();
  auto& again = add_node(*proto.mutable_functions(0), "Outer", {"a"}, {"c"}).proto();
  again.set_domain("my");
  EXPECT_THAT(text_of(proto), HasSubstr("error[onnx-recursive-function]: function Outer"));
}

/// Function 0 is an operator; each further one calls the one before `calls` times.
::onnx::ModelProto functions_that_call(int count, int calls) {
  ::onnx::ModelProto proto = model(17, {2});
  for (int f = 0; f < count; ++f) {
    ::onnx::FunctionProto& function = *proto.add_functions();
    function.set_name("f" + std::to_string(f));
    function.add_input("v0");
    function.add_output("v" + std::to_string(calls));
    for (int i = 0; i < calls; ++i)
      add_node(function, f == 0 ? "Relu" : "f" + std::to_string(f - 1), {"v" + std::to_string(i)},
               {"v" + std::to_string(i + 1)});
  }
  add_node(*proto.mutable_graph(), "f" + std::to_string(count - 1), {"x"}, {"y"});
  return proto;
}

TEST(Import, EndsWhereFunctionsExpandToTooMuch) {
  EXPECT_THAT(text_of(functions_that_call(40, 2)), HasSubstr("error[onnx-too-large]"));
  EXPECT_THAT(text_of(functions_that_call(70, 1)), HasSubstr("error[onnx-too-deep]"));
  EXPECT_THAT(text_of(functions_that_call(50, 1)), HasSubstr("y = relu(x)"));
}

::onnx::GraphProto branch(const std::string& op, const std::string& output) {
  ::onnx::GraphProto graph;
  graph.set_name(op);
  add_node(graph, op, {"x"}, {output});
  graph.add_output()->set_name(output);
  return graph;
}

TEST(Import, PassesWhatBranchesUseOfTheGraphAround) {
  ::onnx::ModelProto proto = model(17, {2});
  set_info(*proto.mutable_graph()->add_input(), "c", {}, ::onnx::TensorProto::BOOL);
  add_node(*proto.mutable_graph(), "If", {"c"}, {"y"})
      .graph("then_branch", branch("Relu", "t"))
      .graph("else_branch", branch("Exp", "e"));
  const auto imported = import_proto(proto);
  ASSERT_TRUE(imported) << to_string(imported.error());
  const Graph& graph = imported->graph;
  const GraphNode& node = graph.nodes()[0];
  EXPECT_EQ(node.op->name, "if_else");
  EXPECT_EQ(graph.inputs(node).size(), 2);
  EXPECT_EQ(graph.subgraphs(node)[0]->inputs().size(), 1);
  EXPECT_EQ(graph.subgraphs(node)[1]->nodes()[0].op->name, "exp");
  EXPECT_EQ(to_string(graph.type(graph.outputs()[0])), "f32[2]");
}

TEST(Import, TakesTheBranchThatIsKnownToBeTaken) {
  ::onnx::ModelProto proto = model(17, {2});
  ::onnx::TensorProto& condition = *proto.mutable_graph()->add_initializer();
  condition.set_name("c");
  condition.set_data_type(::onnx::TensorProto::BOOL);
  condition.add_int32_data(0);
  add_node(*proto.mutable_graph(), "If", {"c"}, {"y"})
      .graph("then_branch", branch("Relu", "t"))
      .graph("else_branch", branch("Exp", "e"));
  EXPECT_THAT(text_of(proto), HasSubstr("y = exp(x)"));
}

/// A loop over `state` whose body applies `op` to it and to the outer x.
::onnx::ModelProto loop_with(const std::string& op) {
  ::onnx::ModelProto proto = model(17, {2});
  ::onnx::GraphProto body;
  body.set_name("body");
  set_info(*body.add_input(), "i", {}, ::onnx::TensorProto::INT64);
  set_info(*body.add_input(), "go", {}, ::onnx::TensorProto::BOOL);
  body.add_input()->set_name("state");
  auto node = add_node(body, op, {"state", "x"}, {"next"});
  if (op == "Concat") node.i("axis", 0);
  for (const char* name : {"go", "next", "next"}) body.add_output()->set_name(name);
  set_info(*proto.mutable_graph()->add_input(), "trips", {}, ::onnx::TensorProto::INT64);
  add_node(*proto.mutable_graph(), "Loop", {"trips", "", "x"}, {"last", "y"}).graph("body", body);
  proto.mutable_graph()->add_output()->set_name("last");
  return proto;
}

TEST(Import, KeepsTheShapeOfAStateThatALoopDoesNotChange) {
  const auto imported = import_proto(loop_with("Add"));
  ASSERT_TRUE(imported) << to_string(imported.error());
  EXPECT_EQ(to_string(imported->graph.type(imported->graph.outputs()[1])), "f32[2]");
}

TEST(Import, ForgetsTheSizesThatALoopChanges) {
  const auto imported = import_proto(loop_with("Concat"));
  ASSERT_TRUE(imported) << to_string(imported.error());
  const Type& last = imported->graph.type(imported->graph.outputs()[1]);
  ASSERT_TRUE(last.shape);
  ASSERT_EQ(last.shape->size(), 1);
  EXPECT_FALSE(last.shape->front().constant());
}

TEST(Import, SpreadsOutSparseInitializers) {
  ::onnx::ModelProto proto = model(17, {4});
  ::onnx::SparseTensorProto& sparse = *proto.mutable_graph()->add_sparse_initializer();
  sparse.add_dims(4);
  sparse.mutable_values()->set_name("w");
  sparse.mutable_values()->set_data_type(::onnx::TensorProto::FLOAT);
  sparse.mutable_values()->add_dims(1);
  sparse.mutable_values()->add_float_data(5);
  sparse.mutable_indices()->set_data_type(::onnx::TensorProto::INT64);
  sparse.mutable_indices()->add_dims(1);
  sparse.mutable_indices()->add_int64_data(2);
  add_node(*proto.mutable_graph(), "Add", {"x", "w"}, {"y"});
  EXPECT_THAT(text_of(proto), HasSubstr("w = const f32[4] [0.0, 0.0, 5.0, 0.0]"));
  sparse.mutable_indices()->set_int64_data(0, 4);
  EXPECT_THAT(text_of(proto), HasSubstr("a position is out of range"));
}

/// Attention of x with itself, with these modifiers.
::onnx::ModelProto flex_attention(const std::vector<std::pair<std::string, std::string>>& mods,
                                  const std::string& second = "outer") {
  ::onnx::ModelProto proto = model(25, {1, 2, 3, 4});
  auto& preview = *proto.add_opset_import();
  preview.set_domain("ai.onnx.preview");
  preview.set_version(1);
  set_info(*proto.mutable_graph()->add_input(), "outer", {3, 3});
  auto node = add_node(*proto.mutable_graph(), "FlexAttention", {"x", "x", "x"}, {"y"});
  node.proto().set_domain("ai.onnx.preview");
  for (const auto& [name, op] : mods) {
    ::onnx::GraphProto body;
    body.add_input()->set_name("s");
    add_node(body, op, {"s", second}, {"t"});
    body.add_output()->set_name("t");
    node.graph(name, body);
  }
  return proto;
}

TEST(Import, PutsTheModifiersOfFlexAttentionInPlace) {
  const std::string text = text_of(flex_attention({{"score_mod", "Add"}, {"prob_mod", "Mul"}}));
  const auto at = [&](const char* part) { return text.find(part); };
  EXPECT_LT(at("t = add("), at("softmax(t)")) << text;
  EXPECT_LT(at("softmax(t)"), at("t_1 = mul(")) << text;
  EXPECT_NE(at(", outer)"), std::string::npos) << text;
  EXPECT_EQ(text_of(flex_attention({})).find("outer)"), std::string::npos);
}

TEST(Import, RefusesModifiersThatDoNotKeepTheType) {
  EXPECT_THAT(text_of(flex_attention({{"score_mod", "Equal"}})),
              HasSubstr("a modifier gives bool with 4 axes"));
  ::onnx::ModelProto two = flex_attention({{"score_mod", "Add"}});
  two.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_g()->add_input()->set_name(
      "u");
  EXPECT_THAT(text_of(two), HasSubstr("a modifier has 2 inputs and 1 results"));
}

TEST(Import, CountsAxesOfOperatorsWithoutADefinitionFromTheStart) {
  for (const std::int64_t axis : {1, -1}) {
    ::onnx::ModelProto proto = model(13, {2, 3});
    add_node(*proto.mutable_graph(), "Unique", {"x"}, {"y"}).i("axis", axis);
    EXPECT_THAT(text_of(proto), HasSubstr("unique(x) {axis=1}"));
  }
}

TEST(Import, ReinterpretsIntegersByWrapping) {
  const auto bits = [](int from, int to) {
    ::onnx::ModelProto proto = model(26, {2});
    proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
        from);
    add_node(*proto.mutable_graph(), "BitCast", {"x"}, {"y"}).i("to", to);
    return text_of(proto);
  };
  EXPECT_THAT(bits(::onnx::TensorProto::INT32, ::onnx::TensorProto::UINT32), HasSubstr("= cast("));
  EXPECT_THAT(bits(::onnx::TensorProto::FLOAT, ::onnx::TensorProto::INT32),
              HasSubstr("= bit_cast("));
  EXPECT_THAT(bits(::onnx::TensorProto::FLOAT, ::onnx::TensorProto::INT64),
              HasSubstr("the types have to have the same width"));
}

/// A node of the classic machine-learning domain on an f32 input.
::onnx::ModelProto classic(const std::string& op, std::int64_t version) {
  ::onnx::ModelProto proto = model(18, {2, 3});
  auto& import = *proto.add_opset_import();
  import.set_domain("ai.onnx.ml");
  import.set_version(version);
  add_node(*proto.mutable_graph(), op, {"x"}, {"y"}).proto().set_domain("ai.onnx.ml");
  return proto;
}

TEST(Import, NamesTheWayOutOfMaps) {
  EXPECT_THAT(text_of(classic("ZipMap", 1)), HasSubstr("export the model with zipmap=False"));
  EXPECT_THAT(text_of(classic("DictVectorizer", 1)), HasSubstr("it takes maps"));
}

TEST(Import, AddsBaseValuesAndTransformsAfterTrees) {
  ::onnx::ModelProto proto = classic("TreeEnsembleRegressor", 3);
  testing::NodeBuilder node(*proto.mutable_graph()->mutable_node(0));
  node.s("post_transform", "LOGISTIC").i("n_targets", 1);
  auto& base = *node.proto().add_attribute();
  base.set_name("base_values");
  base.set_type(::onnx::AttributeProto::FLOATS);
  base.add_floats(0.5F);
  const std::string text = text_of(proto);
  EXPECT_THAT(text, HasSubstr("= ml_tree_ensemble_regressor(x)"));
  EXPECT_THAT(text, HasSubstr("y = ml_post_transform("));
}

TEST(Import, TellsKeysFromValuesByTheInput) {
  for (const bool text : {false, true}) {
    ::onnx::ModelProto proto = classic("LabelEncoder", 1);
    if (text)
      proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
          ::onnx::TensorProto::STRING);
    auto& classes = *proto.mutable_graph()->mutable_node(0)->add_attribute();
    classes.set_name("classes_strings");
    classes.set_type(::onnx::AttributeProto::STRINGS);
    classes.add_strings("a");
    EXPECT_THAT(text_of(proto), HasSubstr(text ? "keys_strings" : "keys_int64s"));
  }
}

}  // namespace
}  // namespace tessera::onnx
