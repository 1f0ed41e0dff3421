#include "tessera/onnx/graph_reader.h"

#include <algorithm>
#include <cmath>

#include "onnx.pb.h"
#include "tessera/onnx/data_type.h"
#include "tessera/onnx/operator_table.h"
#include "tessera/onnx/tensor_proto.h"
#include "tessera/onnx/type_proto.h"

namespace tessera::onnx {
namespace {

using ::onnx::AttributeProto;
using ::onnx::FunctionProto;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

/// Longer names inside of functions are dropped: they repeat with every call.
constexpr std::size_t kLongestInnerName = 512;

Diagnostic unsupported_operator(const NodeProto& node, const Opsets& opsets) {
  Diagnostic diagnostic{
      .id = "onnx-unsupported-operator",
      .message = fmt::format("operator {} is not supported", operator_name(node, opsets)),
      .note = "docs/operators.md lists the supported operators"};
  if (node.domain() != "ai.onnx.ml") return diagnostic;
  if (node.op_type() == "ZipMap") {
    diagnostic.note = "it makes maps, and values are tensors, sequences and optionals";
    diagnostic.help = "export the model with zipmap=False: the scores are a tensor then";
  } else if (node.op_type() == "DictVectorizer" || node.op_type() == "CastMap") {
    diagnostic.note = "it takes maps, and values are tensors, sequences and optionals";
    diagnostic.help = "vectorize dictionaries before the model and export the rest";
  }
  return diagnostic;
}

/// Normalizes attributes to the kinds of the catalog: dtypes by name, whole numbers as integers.
Expected<Done> normalize_attrs(Call& call) {
  if (call.opset < 6) call.attrs.erase("consumed_inputs");
  for (const AttrSpec& spec : call.op->attrs) {
    const Attr* attr = call.attrs.find(spec.name);
    if (attr == nullptr) continue;
    if (const auto* number = std::get_if<std::int64_t>(attr);
        number != nullptr && std::holds_alternative<std::string>(spec.value) &&
        is_dtype_attribute(spec.name)) {
      if (*number == 0) {
        call.attrs.erase(spec.name);
        continue;
      }
      TESSERA_TRY(const DType dtype, dtype_of(*number));
      call.attrs.set(spec.name, std::string(to_string(dtype)));
    } else if (const auto* real = std::get_if<double>(attr);
               real != nullptr && std::holds_alternative<std::int64_t>(spec.value) &&
               std::abs(*real) < 1e15 && *real == std::trunc(*real)) {
      call.attrs.set(spec.name, static_cast<std::int64_t>(*real));
    }
  }
  return Done{};
}

}  // namespace

std::string plain_domain(const std::string& domain) {
  return domain == "ai.onnx" ? std::string() : domain;
}

std::string function_id(const std::string& domain, const std::string& name) {
  return plain_domain(domain) + "::" + name;
}

Opsets opsets_in_function(const FunctionProto& function, Opsets opsets) {
  for (const auto& import : function.opset_import())
    opsets.insert_or_assign(plain_domain(import.domain()), import.version());
  return opsets;
}

Operator find_operator(const NodeProto& node, const Opsets& opsets) {
  const std::string domain = plain_domain(node.domain());
  Operator found;
  if (const auto version = opsets.find(domain); version != opsets.end())
    found.opset = version->second;
  found.row = import_row(domain, node.op_type(), found.opset);
  if (found.row == nullptr || found.row->op.empty()) return found;
  found.op = find_op(found.row->op);
  if (found.op == nullptr) found.row = nullptr;
  return found;
}

std::string operator_name(const NodeProto& node, const Opsets& opsets) {
  const std::string domain = node.domain().empty() ? "ai.onnx" : node.domain();
  return fmt::format("{}.{} of opset {}", domain, node.op_type(),
                     find_operator(node, opsets).opset);
}

GraphReader::GraphReader(ImportContext& reading, GraphBuilder& g, Place place)
    : context_(reading), g_(g), place_(std::move(place)), names_(std::make_shared<UniqueNames>()) {}

GraphReader::GraphReader(GraphReader& around, Place place)
    : context_(around.context_), g_(around.g_), place_(std::move(place)), names_(around.names_) {}

Val* GraphReader::find(const std::string& name) {
  if (const auto found = values_.find(name); found != values_.end()) return &found->second;
  return around_ != nullptr ? around_->find(name) : nullptr;
}

bool GraphReader::has_name(const Val& value) const {
  return named_.contains(value.id()) || (around_ != nullptr && around_->has_name(value));
}

Expected<Val> GraphReader::use(const std::string& name) {
  if (name.empty()) return Val{};
  if (Val* value = find(name)) return *value;
  return Diagnostic{.id = "onnx-dangling-input",
                    .message = fmt::format(
                        "value {} is undefined: no input, initializer or node defines it", name)};
}

std::string GraphReader::unique_name(const std::string& name) {
  const std::string wanted = place_.prefix + name;
  if (!place_.prefix.empty() && wanted.size() > kLongestInnerName) return {};
  return names_->unique(wanted);
}

Expected<Done> GraphReader::define(const std::string& name, Val value) {
  if (value.present()) named_.insert(value.id());
  if (!values_.emplace(name, value).second)
    return Diagnostic{.id = "onnx-duplicate-name",
                      .message = fmt::format("value {} is defined twice", name)};
  return refine(name, value);
}

void GraphReader::declare(const GraphProto& graph) {
  for (const auto& info : graph.value_info()) declared_.emplace(info.name(), &info.type());
  for (const auto& info : graph.output()) declared_.emplace(info.name(), &info.type());
}

Expected<Done> GraphReader::refine(const std::string& name, const Val& value) {
  const auto found = declared_.find(name);
  if (found == declared_.end() || !value.present()) return Done{};
  TESSERA_TRY(const Type type, type_of(*found->second, place_.prefix + name));
  if (type.kind != Type::Kind::Unknown) g_.refine(value, type);
  return Done{};
}

Diagnostic GraphReader::placed(Diagnostic diagnostic, const std::string& label) const {
  // A diagnostic with a file was located by an inner reader already.
  if (!diagnostic.where.file.empty()) return diagnostic;
  diagnostic.where = {.file = context_.file.path.string(), .item = place_.prefix + label};
  if (diagnostic.id == "op-attribute") diagnostic.id = "onnx-unsupported-attribute";
  return diagnostic;
}

Expected<Done> GraphReader::read_inputs(const GraphProto& graph, const ImportOptions& options) {
  std::set<std::string_view> defaults;
  for (const auto& initializer : graph.initializer()) defaults.insert(initializer.name());
  for (const auto& input : graph.input()) {
    if (defaults.contains(input.name())) {
      if (!options.keep_defaults) continue;
      replaced_.insert(input.name());
    }
    auto type = type_of(input.type(), input.name());
    if (!type) return placed(std::move(type).error(), input.name());
    const Val value = g_.input(input.name(), ValueInfo{.type = *std::move(type)});
    names_->take(input.name());
    if (auto defined = define(input.name(), value); !defined)
      return placed(std::move(defined).error(), input.name());
  }
  return Done{};
}

Expected<Done> GraphReader::read_initializers(const GraphProto& graph) {
  const auto add = [&](const std::string& name, Expected<Tensor> tensor) -> Expected<Done> {
    if (!tensor) return placed(std::move(tensor).error(), name);
    if (tensor->shape.size() > kMaxRank)
      return placed(
          {.id = "onnx-invalid-shape",
           .message = fmt::format("{} axes are more than {}", tensor->shape.size(), kMaxRank)},
          name);
    const bool small = tensor->count() <= kSmallTensor;
    const Val value = g_.constant(*tensor, unique_name(name));
    if (small) small_constants_.emplace(value.id(), *std::move(tensor));
    if (auto defined = define(name, value); !defined)
      return placed(std::move(defined).error(), name);
    return Done{};
  };
  for (const auto& initializer : graph.initializer()) {
    if (replaced_.contains(initializer.name())) continue;
    TESSERA_TRY_DONE(add(initializer.name(), tensor_of(initializer, context_.file)));
  }
  for (const auto& initializer : graph.sparse_initializer())
    TESSERA_TRY_DONE(add(initializer.values().name(), dense(initializer, context_.file)));
  return Done{};
}

Expected<Vals> GraphReader::read_body(const GraphProto& graph) {
  declare(graph);
  TESSERA_TRY_DONE(read_initializers(graph));
  TESSERA_TRY_DONE(read_nodes(graph.node()));
  Vals outputs;
  for (const auto& output : graph.output()) {
    auto value = use(output.name());
    if (!value) return placed(std::move(value).error(), output.name());
    if (!value->present())
      return placed({.id = "onnx-dangling-input", .message = "an output has no name"},
                    graph.name());
    outputs.push_back(*value);
  }
  return outputs;
}

Expected<Done> GraphReader::read_nodes(const Nodes& nodes) {
  auto order = order_of(nodes);
  if (!order) {
    const std::string item = order.error().where.item;
    return placed(std::move(order).error(), item);
  }
  for (const int index : *order) {
    const NodeProto& node = nodes[index];
    const std::string label = label_of(node, index);
    int wanted = node.output_size();
    while (wanted > 0 && node.output(wanted - 1).empty()) --wanted;
    if (wanted == 0) continue;  // nothing of it is used

    auto results = read_node(node, wanted);
    if (!results) return placed(std::move(results).error(), label);
    if (g_.failed()) return placed(*g_.error(), label);
    if (static_cast<int>(results->size()) < wanted)
      return placed({.id = "onnx-unsupported-form",
                     .message = fmt::format("{} has {} outputs", node.op_type(), wanted),
                     .note = fmt::format("{} are known", results->size())},
                    label);
    results->resize(static_cast<std::size_t>(node.output_size()));
    if (auto named = name_results(node, *results); !named)
      return placed(std::move(named).error(), label);
  }
  return Done{};
}

Expected<Vals> GraphReader::read_node(const NodeProto& node, int wanted) {
  if (++context_.nodes > context_.node_limit)
    return Diagnostic{
        .id = "onnx-too-large",
        .message = fmt::format("the model expands to more than {} nodes", context_.node_limit)};
  Vals inputs;
  for (const std::string& input : node.input()) {
    TESSERA_TRY(Val value, use(input));
    inputs.push_back(value);
  }
  while (!inputs.empty() && !inputs.back().present()) inputs.pop_back();

  if (const auto function = context_.functions.find(function_id(node.domain(), node.op_type()));
      function != context_.functions.end()) {
    if (plain_domain(node.domain()).empty() && find_operator(node, *place_.opsets))
      return Diagnostic{
          .id = "onnx-ambiguous-operator",
          .message =
              fmt::format("{} is a function of the model and an operator of ONNX", node.op_type()),
          .note = "runtimes differ in which of the two they call",
          .help = "give the function a domain of its own"};
    return call_function(function->second, node, inputs);
  }

  const auto [opset, row, op] = find_operator(node, *place_.opsets);
  if (row == nullptr) return unsupported_operator(node, *place_.opsets);

  Call call{.g = g_,
            .name = node.op_type(),
            .op = op,
            .opset = opset,
            .inputs = std::move(inputs),
            .outputs = wanted,
            .listed_outputs = node.output_size()};
  TESSERA_TRY(call.attrs, attrs_of(node, *place_.env, context_.file));
  if (op != nullptr) TESSERA_TRY_DONE(normalize_attrs(call));
  if (row->adapt != nullptr) return row->adapt(call);
  if (op == nullptr || op->kind() == OpDef::Kind::Control) return read_control(node, call);
  return call.emit();
}

Expected<Done> GraphReader::name_results(const NodeProto& node, const Vals& results) {
  if (const std::string name = place_.prefix + node.name();
      !node.name().empty() && (place_.prefix.empty() || name.size() <= kLongestInnerName))
    g_.name_last_node(name);
  for (int i = 0; i < node.output_size(); ++i) {
    const std::string& name = node.output(i);
    if (name.empty()) continue;
    const Val& value = results[static_cast<std::size_t>(i)];
    if (value.present() && !has_name(value)) {  // what is only passed on keeps its name
      g_.name(value, unique_name(name));
      if (node.op_type() == "Constant" && g_.known(value).content)
        small_constants_.emplace(value.id(), *g_.known(value).content);
    }
    TESSERA_TRY_DONE(define(name, value));
  }
  return Done{};
}

Expected<Vals> GraphReader::call_function(const Function& called, const NodeProto& node,
                                          const Vals& inputs) {
  const FunctionProto& function = *called.proto;
  const std::string id = function_id(function.domain(), function.name());
  if (std::ranges::find(context_.calls, id) != context_.calls.end())
    return Diagnostic{.id = "onnx-recursive-function",
                      .message = fmt::format("function {} calls itself", function.name())};
  TESSERA_TRY_DONE(check_depth());
  if (static_cast<int>(inputs.size()) > function.input_size())
    return Diagnostic{
        .id = "onnx-function-arity",
        .message = fmt::format("function {} is given {} inputs", function.name(), inputs.size()),
        .note = fmt::format("it has {}", function.input_size())};

  Environment env;
  for (const auto& attribute : called.defaults) env.emplace(attribute->name(), attribute.get());
  for (const AttributeProto& attribute : node.attribute())
    if (const AttributeProto* given = resolved(attribute, *place_.env))
      env.insert_or_assign(attribute.name(), given);
  const Opsets opsets = opsets_in_function(function, *place_.opsets);
  const std::string prefix =
      place_.prefix + (node.name().empty() ? function.name() : node.name()) + "/";
  GraphReader body(*this, {.opsets = &opsets,
                           .env = &env,
                           .prefix = prefix.size() > kLongestInnerName ? place_.prefix : prefix,
                           .depth = place_.depth + 1});
  for (int i = 0; i < function.input_size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    TESSERA_TRY_DONE(body.define(function.input(i), at < inputs.size() ? inputs[at] : Val{}));
  }
  context_.calls.push_back(id);
  auto read = body.read_nodes(function.node());
  context_.calls.pop_back();
  TESSERA_TRY_DONE(std::move(read));
  Vals results;
  for (const std::string& output : function.output()) {
    TESSERA_TRY(Val value, body.use(output));
    results.push_back(value);
  }
  return results;
}

}  // namespace tessera::onnx
