#include "tessera/onnx/graph_writer.h"

#include <algorithm>

#include "onnx.pb.h"
#include "tessera/ir/literal.h"
#include "tessera/onnx/attribute.h"
#include "tessera/onnx/data_type.h"
#include "tessera/onnx/operator_table.h"
#include "tessera/onnx/tensor_proto.h"
#include "tessera/onnx/type_proto.h"

namespace tessera::onnx {
namespace {

using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::ValueInfoProto;

/// The attribute that states a type, written as to_string(Type) has it.
constexpr std::string_view kTypeAttribute = "type";

Diagnostic inexpressible(const GraphNode& node, std::string message) {
  return {.id = "onnx-inexpressible",
          .where = {.item = node.op->name},
          .message = std::move(message),
          .help = "write the graph as text"};
}

void set_info(ValueInfoProto& info, const std::string& name, const Type& type) {
  info.set_name(name);
  if (type.kind != Type::Kind::Unknown) set_type(*info.mutable_type(), type);
}

AttributeProto& add_attribute(NodeProto& node, const std::string& name) {
  AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  return attribute;
}

/// Name of a catalog input without its suffix (`?`, `*`, `+`).
std::string_view plain_input(const OpDef& op, std::size_t i) {
  if (op.inputs.empty()) return {};
  std::string_view name = op.inputs[std::min(i, op.inputs.size() - 1)];
  while (name.ends_with('?') || name.ends_with('*') || name.ends_with('+')) name.remove_suffix(1);
  return name;
}

bool contains(std::span<const ValueId> list, ValueId value) {
  return std::ranges::find(list, value) != list.end();
}

}  // namespace

void GraphWriter::bind_captures(const std::vector<std::string>& outer) {
  captures_ = outer.size();
  names_.resize(graph_.value_count());
  const std::size_t first = graph_.inputs().size() - outer.size();
  for (std::size_t i = 0; i < outer.size(); ++i)
    names_[graph_.inputs()[first + i].index] = outer[i];
}

void GraphWriter::name_values(const std::vector<std::string>& output_names) {
  names_.resize(graph_.value_count());
  const auto name = [&](ValueId value) {
    std::string& mine = names_[value.index];
    if (!mine.empty()) return;
    mine = context_.names.unique(graph_.is_named(value) ? graph_.name(value)
                                                        : fmt::format("value_{}", value.index));
  };
  // Names of inputs and outputs take precedence, since users refer to them.
  for (const ValueId input : graph_.inputs()) name(input);
  for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
    const ValueId value = graph_.outputs()[i];
    // A value can be an output once and must be a node result; others are copied.
    const auto before = graph_.outputs().first(i);
    const bool own_name = graph_.producer(value) != nullptr && !contains(before, value);
    if (own_name) name(value);
    output_names_.push_back(own_name                  ? names_[value.index]
                            : i < output_names.size() ? context_.names.unique(output_names[i])
                                                      : context_.names.unique(graph_.name(value)));
  }
  for (const bool named : {true, false})
    for (std::uint32_t i = 0; i < names_.size(); ++i)
      if (graph_.is_named({i}) == named) name({i});
}

Expected<Done> GraphWriter::write(GraphProto& into, const std::vector<std::string>& output_names) {
  name_values(output_names);
  into.set_name(graph_.name().empty() ? "graph" : graph_.name());
  for (std::uint32_t i = 0; i < names_.size(); ++i)
    if (const Type& type = graph_.type({i}); type.kind != Type::Kind::Unknown)
      context_.opset = std::max(context_.opset, first_opset(type.dtype));
  for (const ValueId input : graph_.inputs().first(graph_.inputs().size() - captures_))
    set_info(*into.add_input(), names_[input.index], graph_.type(input));
  for (std::uint32_t i = 0; i < names_.size(); ++i) {
    if (const Tensor* constant = graph_.constant({i})) {
      auto& initializer = *into.add_initializer();
      initializer.set_name(names_[i]);
      set_tensor(initializer, *constant, context_.payloads);
    }
  }
  for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
    if (auto written = write_node(i, *into.add_node()); !written)
      return located(std::move(written).error(), {.item = graph_.node_name(i)});
    for (const ValueId value : graph_.outputs(graph_.nodes()[i]))
      if (graph_.type(value).kind != Type::Kind::Unknown && !contains(graph_.outputs(), value))
        set_info(*into.add_value_info(), names_[value.index], graph_.type(value));
  }
  write_outputs(into);
  return Done{};
}

void GraphWriter::write_outputs(GraphProto& into) {
  for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
    const ValueId value = graph_.outputs()[i];
    if (output_names_[i] != names_[value.index]) {
      NodeProto& copy = *into.add_node();
      copy.set_op_type("Identity");
      copy.add_input(names_[value.index]);
      copy.add_output(output_names_[i]);
    }
    set_info(*into.add_output(), output_names_[i], graph_.type(value));
  }
}

void GraphWriter::require(std::string_view domain, std::int64_t version) {
  std::int64_t& needed = domain.empty() ? context_.opset : context_.domains[std::string(domain)];
  needed = std::max(needed, version);
}

void GraphWriter::require(const GraphNode& node, std::string_view part) {
  for (const LaterPart& later : later_parts())
    if (later.op == node.op->name && later.part == part)
      require(export_row(later.op)->domain, later.since);
}

Expected<Done> GraphWriter::write_node(std::size_t index, NodeProto& into) {
  const GraphNode& node = graph_.nodes()[index];
  const OperatorRow* row = export_row(node.op->name);
  if (row == nullptr)
    return inexpressible(node, fmt::format("onnx has no operator like {}", node.op->name));
  into.set_name(graph_.node_name(index));
  into.set_op_type(std::string(row->name));
  if (!row->domain.empty()) into.set_domain(std::string(row->domain));
  require(row->domain, row->since);
  const auto inputs = graph_.inputs(node);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    into.add_input(inputs[i].present() ? names_[inputs[i].index] : std::string());
    if (!inputs[i].present()) continue;
    require(node, plain_input(*node.op, i));
    if (const Type& type = graph_.type(inputs[i]); type.kind != Type::Kind::Unknown)
      require(row->domain, first_opset(node.op->name, type.dtype));
  }
  while (into.input_size() > 0 && into.input(into.input_size() - 1).empty())
    into.mutable_input()->RemoveLast();
  for (const ValueId output : graph_.outputs(node)) into.add_output(names_[output.index]);
  // Adds required outputs that our nodes omit because nothing reads them.
  while (into.output_size() < required_outputs(node.op->name, *node.attrs))
    into.add_output(context_.names.unique("unused"));
  return node.op->kind() == OpDef::Kind::Control ? write_control(node, into)
                                                 : write_attrs(node, into);
}

Expected<Done> GraphWriter::write_attrs(const GraphNode& node, NodeProto& into) {
  if (const Attrs::Entry* open = node.attrs->symbolic(); open != nullptr)
    return inexpressible(node, fmt::format("attribute {} has no value", open->first));
  for (const auto& [name, value] : node.attrs->entries()) {
    const auto spec = std::ranges::find(node.op->attrs, name, &AttrSpec::name);
    if (spec != node.op->attrs.end() && spec->need == AttrSpec::Need::Default &&
        equal(spec->value, value))
      continue;
    require(node, name);
    const auto* text = std::get_if<std::string>(&value);
    if (text != nullptr && is_dtype_attribute(name)) {
      const std::optional<DType> dtype = parse_dtype(*text);
      if (!dtype) continue;  // none is given
      set_attr(add_attribute(into, name), std::int64_t{data_type_of(*dtype)}, context_.payloads);
    } else if (text != nullptr && name == kTypeAttribute) {
      Lexer lexer(*text);
      TESSERA_TRY(const Type type, parse_type(lexer));
      AttributeProto& attribute = add_attribute(into, name);
      attribute.set_type(AttributeProto::TYPE_PROTO);
      set_type(*attribute.mutable_tp(), type);
    } else {
      set_attr(add_attribute(into, name), value, context_.payloads);
    }
  }
  return Done{};
}

Expected<Done> GraphWriter::write_subgraph(const GraphNode& node, std::size_t index,
                                           std::size_t own_inputs, GraphProto& into) {
  std::vector<std::string> captures;
  for (const ValueId outer : graph_.inputs(node).subspan(own_inputs))
    captures.push_back(names_[outer.index]);
  GraphWriter writer(context_, *graph_.subgraphs(node)[index]);
  writer.bind_captures(captures);
  return writer.write(into);
}

Expected<Done> GraphWriter::write_control(const GraphNode& node, NodeProto& into) {
  const Attrs& attrs = *node.attrs;
  std::vector<std::string> graphs = {"body"};
  std::int64_t own_inputs = 1;
  if (node.op->control == OpDef::Control::If) {
    graphs = {"then_branch", "else_branch"};
  } else if (node.op->control == OpDef::Control::Loop) {
    own_inputs = attrs.i("states") + 2;
  } else {
    own_inputs = attrs.i("states") + attrs.i("elements");
    set_attr(add_attribute(into, "num_scan_inputs"), attrs.i("elements"), context_.payloads);
    for (const char* name : {"input_axes", "input_directions", "output_axes", "output_directions"})
      if (!attrs.ints(name).empty())
        set_attr(add_attribute(into, std::string("scan_") + name), attrs.ints(name),
                 context_.payloads);
  }
  TESSERA_CHECK(own_inputs <= static_cast<std::int64_t>(graph_.inputs(node).size()),
                "{} has too few inputs", node.op->name);
  while (into.input_size() > own_inputs) into.mutable_input()->RemoveLast();
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    AttributeProto& attribute = add_attribute(into, graphs[i]);
    attribute.set_type(AttributeProto::GRAPH);
    TESSERA_TRY_DONE(
        write_subgraph(node, i, static_cast<std::size_t>(own_inputs), *attribute.mutable_g()));
  }
  return Done{};
}

}  // namespace tessera::onnx
