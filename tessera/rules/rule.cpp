#include "tessera/rules/rule.h"

#include <algorithm>
#include <set>

#include "tessera/ir/bind.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/literal.h"
#include "tessera/rules/meaning.h"

namespace tessera::rules {
namespace {

constexpr std::size_t kMostAxes = 4;  // that `*s` stands for

Diagnostic invalid(const Rule& rule, std::string message) {
  return {.id = "rule-invalid", .where = {.item = rule.name}, .message = std::move(message)};
}

void collect(const Type& type, std::set<std::string>& into) {
  if (type.shape)
    for (const Dim& dim : *type.shape) dim.collect_symbols(into);
}

/// The names that attributes of a graph are given by.
std::set<std::string> attr_symbols(const Graph& graph) {
  std::set<std::string> names;
  for (const GraphNode& node : graph.nodes())
    for (const auto& [name, attr] : node.attrs->entries())
      if (const auto* symbol = std::get_if<Symbol>(&attr)) names.insert(symbol->name);
  return names;
}

/// Inputs whose content counts.
std::set<ValueId> read_inputs(const Graph& graph) {
  std::set<ValueId> read(graph.outputs().begin(), graph.outputs().end());
  for (const GraphNode& node : graph.nodes()) {
    std::vector<ValueInfo> operands;
    for (const ValueId id : graph.inputs(node)) {
      const Tensor* constant = id.present() ? graph.constant(id) : nullptr;
      operands.push_back(constant != nullptr ? constant_info(*constant)
                         : id.present()      ? ValueInfo{.type = graph.type(id)}
                                             : ValueInfo{.present = false});
    }
    const std::vector<bool> reads = read_operands(*node.op, *node.attrs, operands);
    for (std::size_t i = 0; i < reads.size(); ++i)
      if (reads[i]) read.insert(graph.inputs(node)[i]);
  }
  return read;
}

/// What the symbols `*s` of a rule are called.
std::set<std::string> any_rank_symbols(const Rule& rule) {
  std::set<std::string> symbols;
  for (const ValueId id : rule.source.inputs()) collect(rule.source.type(id), symbols);
  std::erase_if(symbols, [](const std::string& name) { return !name.starts_with('*'); });
  return symbols;
}

/// What the symbols `*s` of a rule stand for.
using Shapes = std::map<std::string, Shape, std::less<>>;

/// Shapes that broadcast to this one.
std::vector<Shape> broadcasting_to(const Shape& shape) {
  std::vector<Shape> all;
  for (auto first = shape.begin();; ++first) {
    std::vector<Shape> made{{}};
    for (auto axis = first; axis != shape.end(); ++axis) {
      std::vector<Shape> next;
      for (const Shape& start : made)
        for (const Dim& size : axis->is(1) ? Shape{1} : Shape{*axis, 1}) {
          next.push_back(start);
          next.back().push_back(size);
        }
      made = std::move(next);
    }
    all.insert(all.end(), made.begin(), made.end());
    if (first == shape.end()) return all;
  }
}

/// All that the symbols `*s` of a rule may stand for together.
std::vector<Shapes> shapes_of_symbols(const Rule& rule) {
  std::vector<Shapes> all{{}};
  const auto extend = [&](const std::string& symbol, const auto& choices) {
    std::vector<Shapes> more;
    for (const Shapes& shapes : all)
      for (const Shape& choice : choices(shapes)) {
        more.push_back(shapes);
        more.back()[symbol] = choice;
      }
    all = std::move(more);
  };
  for (const std::string& symbol : any_rank_symbols(rule)) {
    if (std::ranges::find(rule.shapes, symbol, &ShapeCondition::shape) != rule.shapes.end())
      continue;
    extend(symbol, [&](const Shapes&) {
      std::vector<Shape> choices{{}};
      while (choices.size() <= kMostAxes) {
        choices.push_back(choices.back());
        choices.back().push_back(entry_symbol(symbol.substr(1), choices.size() - 2));
      }
      return choices;
    });
  }
  for (const ShapeCondition& condition : rule.shapes)
    extend(condition.shape,
           [&](const Shapes& shapes) { return broadcasting_to(shapes.at(condition.to)); });
  return all;
}

/// A graph with `*s` replaced by axes; nothing where an operator does not take them.
Expected<Graph> with_shapes(const Graph& graph, const Shapes& shapes) {
  GraphBuilder out;
  Vals inputs;
  for (const ValueId id : graph.inputs()) {
    Type type = graph.type(id);
    Shape shape;
    for (const Dim& dim : type.shape.value_or(Shape{})) {
      const Shape axes = is_any_rank(dim) ? shapes.find(*dim.as_symbol())->second : Shape{dim};
      shape.insert(shape.end(), axes.begin(), axes.end());
    }
    if (type.shape) type.shape = std::move(shape);
    inputs.push_back(out.input(graph.is_named(id) ? graph.name(id) : "", {.type = type}));
  }
  TESSERA_TRY(const Vals outputs, placed(out, graph, inputs, {}));
  return out.finish(outputs);
}

/// Whether all float types have these numbers.
bool is_same_in_all(const Tensor& tensor) {
  for (const DType dtype : {DType::F16, DType::BF16}) {
    Binding binding;
    binding.bind_real(dtype);
    const Tensor other = binding.constant(tensor);
    for (std::int64_t i = 0; tensor.dtype == DType::F32 && i < tensor.count(); ++i)
      if (number_at(tensor, i) != number_at(other, i)) return false;
  }
  return true;
}

}  // namespace

std::optional<ValueId> attribute_input(const Graph& graph, const OpDef& op,
                                       const Attrs::Entry& attribute) {
  if (!is_named_real(op, attribute)) return std::nullopt;
  const std::string& name = std::get<Symbol>(attribute.second).name;
  const auto inputs = graph.inputs();
  const auto input = std::ranges::find(inputs, name, [&](ValueId id) { return graph.name(id); });
  return input == inputs.end() ? std::nullopt : std::optional(*input);
}

std::set<ValueId> used_inputs(const Graph& graph) {
  std::set<ValueId> used(graph.outputs().begin(), graph.outputs().end());
  for (const GraphNode& node : graph.nodes()) {
    for (const ValueId id : graph.inputs(node)) used.insert(id);
    for (const Attrs::Entry& attribute : node.attrs->entries())
      if (const auto input = attribute_input(graph, *node.op, attribute)) used.insert(*input);
  }
  std::erase_if(used, [&](ValueId id) {
    return !id.present() || graph.producer(id) != nullptr || graph.constant(id) != nullptr;
  });
  return used;
}

bool is_any_rank(const Dim& dim) {
  return dim.as_symbol() && dim.as_symbol()->starts_with('*');
}

Rule reversed(const Rule& rule) {
  Rule other = rule;
  std::swap(other.source, other.target);
  other.mutant.reset();
  return other;
}

namespace {

/// A float attribute that the source names is an input of rank 0 that is no operand there: a match
/// tells its value in one way. Its name is not that of a size.
Expected<Done> check_attribute_inputs(const Rule& rule) {
  const Graph& source = rule.source;
  std::set<std::string> sizes;
  for (const ValueId id : source.inputs()) collect(source.type(id), sizes);
  for (const GraphNode& node : source.nodes())
    for (const Attrs::Entry& attribute : node.attrs->entries()) {
      const auto input = attribute_input(source, *node.op, attribute);
      if (!input && is_named_real(*node.op, attribute))
        return invalid(rule, fmt::format("the source says nothing of the value of {}",
                                         to_text(attribute.second)));
      if (!input) continue;
      const std::string name = source.name(*input);
      if (!source.type(*input).shape->empty() || !is_float(source.type(*input).dtype))
        return invalid(rule, fmt::format("the input {} is an attribute, so its rank is 0", name));
      if (sizes.contains(name))
        return invalid(rule, fmt::format("{} is a size and an attribute", name));
      for (const GraphNode& user : source.nodes())
        if (std::ranges::count(source.inputs(user), *input) != 0)
          return invalid(rule, fmt::format("the source has {} as attribute and operand", name));
    }
  return Done{};
}

/// Each shape broadcasts to one that no condition is about, or that one before is.
Expected<Done> check_shapes(const Rule& rule) {
  std::set<std::string> open = any_rank_symbols(rule);
  for (const ShapeCondition& condition : rule.shapes)
    if (!open.contains(condition.shape))
      return invalid(rule, fmt::format("no input has the axes {}", condition.shape));
  std::set<std::string> told = open;
  for (const ShapeCondition& condition : rule.shapes) told.erase(condition.shape);
  for (const ShapeCondition& condition : rule.shapes)
    if (!told.contains(condition.to) || !told.insert(condition.shape).second)
      return invalid(rule,
                     fmt::format("nothing tells what the shape {} broadcasts to", condition.shape));
  return Done{};
}

}  // namespace

Expected<Done> check(const Rule& rule) {
  const auto inputs = rule.source.inputs();
  if (!std::ranges::equal(inputs, rule.target.inputs(), [&](ValueId a, ValueId b) {
        return rule.source.name(a) == rule.target.name(b) &&
               rule.source.type(a) == rule.target.type(b);
      }))
    return invalid(rule, "source and target have different inputs");
  if (rule.source.outputs().size() != rule.target.outputs().size())
    return invalid(rule, fmt::format("the source has {} outputs, the target {}",
                                     rule.source.outputs().size(), rule.target.outputs().size()));
  if (rule.source.outputs().empty()) return invalid(rule, "it has no outputs");

  TESSERA_TRY_DONE(check_attribute_inputs(rule));
  TESSERA_TRY_DONE(check_shapes(rule));
  const std::set<ValueId> bound = used_inputs(rule.source);
  std::set<ValueId> untold = used_inputs(rule.target);
  std::erase_if(untold, [&](ValueId id) { return bound.contains(id); });
  const std::set<ValueId> read = untold.empty() ? untold : read_inputs(rule.target);
  for (const ValueId id : untold)
    if (read.contains(id))
      return invalid(rule,
                     fmt::format("the source says nothing of the input {}", rule.source.name(id)));
  const std::set<std::string> attrs = attr_symbols(rule.source);
  std::set<std::string> sizes = attrs;
  for (const ValueId id : inputs)
    if (bound.contains(id)) collect(rule.source.type(id), sizes);
  const auto is_told = [&](const std::string& name) {
    const std::size_t digits = name.find_last_not_of("0123456789") + 1;
    return sizes.contains(name) || attrs.contains(name.substr(0, digits)) ||
           sizes.contains("*" + name.substr(0, digits));
  };
  std::set<std::string> needed = attr_symbols(rule.target);
  for (const ValueId id : untold) collect(rule.target.type(id), needed);
  for (const Condition& condition : rule.guard) {
    condition.left.collect_symbols(needed);
    condition.right.collect_symbols(needed);
  }
  for (const std::string& name : needed)
    if (!is_told(name))
      return invalid(rule, fmt::format("the source says nothing of the size {}", name));
  for (const std::string& name : rule.constants)
    if (std::ranges::none_of(inputs, [&](ValueId id) { return rule.source.name(id) == name; }))
      return invalid(rule, fmt::format("there is no input {}", name));
  return Done{};
}

bool is_generic(const Rule& rule) {
  for (const Graph* graph : {&rule.source, &rule.target}) {
    for (std::uint32_t i = 0; i < graph->value_count(); ++i) {
      const DType dtype = graph->type(ValueId{i}).dtype;
      if (is_float(dtype) && dtype != DType::F32) return false;
      if (const Tensor* constant = graph->constant(ValueId{i});
          constant != nullptr && !is_same_in_all(*constant))
        return false;
    }
    for (const GraphNode& node : graph->nodes())
      for (const auto& [name, attr] : node.attrs->entries())
        if (const auto* text = std::get_if<std::string>(&attr); text && parse_dtype(*text))
          return false;
  }
  return true;
}

std::vector<Rule> instances(const Rule& rule) {
  std::vector<Rule> made;
  for (const Shapes& shapes : shapes_of_symbols(rule)) {
    if (shapes.empty()) return {rule};
    Expected<Graph> source = with_shapes(rule.source, shapes);
    Expected<Graph> target = with_shapes(rule.target, shapes);
    if (!source || !target) continue;
    Rule instance = rule;
    instance.source = *std::move(source);
    instance.target = *std::move(target);
    instance.shapes.clear();
    instance.mutant.reset();
    made.push_back(std::move(instance));
  }
  return made;
}

}  // namespace tessera::rules
