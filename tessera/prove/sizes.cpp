#include "tessera/prove/sizes.h"

#include <algorithm>

#include "tessera/ir/bind.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/expand.h"
#include "tessera/ops/operators.h"
#include "tessera/prove/size_solver.h"

namespace tessera::prove {
namespace {

/// The axes of a definition that a size of an operand is made of.
std::vector<std::string> axes_in(const Dim& pattern) {
  std::vector<std::string> axes;
  if (pattern.constant()) return axes;
  for (const std::string& symbol : symbols_in(pattern))
    if (symbol.starts_with('#')) axes.push_back(symbol);
  return axes;
}

using OperandAxis = std::pair<std::size_t, std::size_t>;

/// Whether an operator stretches an axis of an operand to that of another, if it is 1.
bool is_stretched(const OpDef& op, const Attrs& attrs, const Signature& signature,
                  const OperandAxis& at, const OperandAxis& other) {
  Signature one = signature;
  one[at.first].type.shape[at.second] = 1;
  const auto definition = defined(op, attrs, one);
  return definition && (*definition)->inputs[at.first].shape[at.second] !=
                           (*definition)->inputs[other.first].shape[other.second];
}

/// Axes of operands that are another operand's axis in the definition and have another size, which
/// the operator would stretch if it were 1.
std::set<OperandAxis> stretched_axes(const GraphNode& node, const Signature& signature,
                                     const Definition& definition, const Sizes& solved,
                                     Guard& broadcasts) {
  const auto stretches = [&](const OperandAxis& at, const OperandAxis& other) {
    return is_stretched(*node.op, *node.attrs, signature, at, other);
  };
  std::set<OperandAxis> found;
  // With an operand left out, the inputs of the definition are at other places.
  if (definition.inputs.size() != signature.size()) return found;
  for (std::size_t i = 0; i < signature.size(); ++i)
    if (!signature[i].present ||
        signature[i].type.shape.size() != definition.inputs[i].shape.size())
      return found;
  std::map<std::string, OperandAxis, std::less<>> first;
  for (std::size_t i = 0; i < signature.size(); ++i)
    for (std::size_t axis = 0; axis < definition.inputs[i].shape.size(); ++axis) {
      const auto symbol = definition.inputs[i].shape[axis].as_symbol();
      if (!symbol || !symbol->starts_with('#')) continue;
      const auto [it, fresh] = first.try_emplace(std::string(*symbol), i, axis);
      const auto size = [&](const OperandAxis& at) {
        return resolved(signature[at.first].type.shape[at.second], solved);
      };
      const OperandAxis here{i, axis};
      if (fresh || it->second.first == i || size(it->second) == size(here)) continue;
      if ((!size(here).constant() && stretches(here, it->second)) ||
          (!size(it->second).constant() && stretches(it->second, here))) {
        found.insert(here);
        broadcasts.push_back(equal(size(it->second), size(here)));
      }
    }
  return found;
}

/// Sizes that `expand` has to stretch where they differ from those of the shape that it is given.
Guard stretched_by_shape(const GraphNode& node, const std::vector<ValueInfo>& operands,
                         const Sizes& solved) {
  Guard stretched;
  if (node.op != op::expand || !operands[1].value) return stretched;
  const Shape &from = *operands[0].type.shape, &to = *operands[1].value;
  for (std::size_t back = 1; back <= std::min(from.size(), to.size()); ++back) {
    const Dim size = resolved(from[from.size() - back], solved),
              wanted = resolved(to[to.size() - back], solved);
    if (!size.is(1) && !wanted.is(1) && size != wanted) stretched.push_back(equal(size, wanted));
  }
  return stretched;
}

/// The operands of a definition, fitted to the shapes of its inputs.
class Fit {
 public:
  Fit(SizeSolver& solver, const Definition& definition, const std::vector<Shape>& shapes,
      const std::set<OperandAxis>& ignored)
      : solver_(solver) {
    for (std::size_t i = 0; i < shapes.size(); ++i)
      for (std::size_t axis = 0; axis < shapes[i].size(); ++axis)
        if (!ignored.contains({i, axis}))
          open_.push_back(equal(definition.inputs[i].shape[axis], shapes[i][axis]));
  }

  /// Axes that a shape gives plainly come first, so that where an axis is a part of another's size,
  /// its own name is used.
  Expected<Done> require() {
    for (bool plain = true; !open_.empty();) {
      TESSERA_TRY(const bool taken, take({.plain = plain}));
      if (!taken && !plain) break;
      plain = taken;
    }
    return Done{};
  }

 private:
  struct Which {
    bool plain;
  };
  /// Whether one was taken; of those that are not plain no more than one.
  Expected<bool> take(Which which) {
    bool taken = false;
    Guard later;
    for (Condition& condition : open_) {
      const Dim pattern = resolved(condition.left, sizes_);
      const std::vector<std::string> axes = axes_in(pattern);
      const auto linear = axes.size() == 1 ? pattern.linear_in(axes[0]) : std::nullopt;
      const bool solvable = linear && (which.plain ? linear->factor.is(1) : !taken);
      if (axes.empty()) {
        TESSERA_TRY_DONE(solver_.require(equal(pattern, condition.right)));
      } else if (solvable) {
        TESSERA_TRY(const Dim size, solver_.part(condition.right - linear->rest, linear->factor));
        sizes_.insert_or_assign(axes[0], size);
      } else {
        later.push_back(std::move(condition));
        continue;
      }
      taken = true;
    }
    open_ = std::move(later);
    return taken;
  }

  SizeSolver& solver_;
  Guard open_;  // a pattern with axes, and what is found there
  Sizes sizes_;
};

/// How many entries a list attribute of a node has to have: as many as its definition accepts.
std::size_t entry_count(const Graph& graph, const GraphNode& node, const std::string& name) {
  std::vector<ValueInfo> inputs;
  std::size_t most = 0;
  for (const ValueId id : graph.inputs(node)) {
    inputs.push_back(id.present() ? ValueInfo{.type = graph.type(id)}
                                  : ValueInfo{.present = false});
    most = std::max(most, 2 * inputs.back().type.shape.value_or(Shape{}).size());
  }
  const std::optional<Signature> signature = signature_of(inputs);
  if (!signature || !node.op->define) return 0;
  for (std::size_t count = 1; count <= most; ++count) {
    Attrs attrs = *node.attrs;
    attrs.set(name, Ints(count, 1));
    if (node.op->define(attrs, *signature)) return count;
  }
  return 0;
}

Binding binding_of(const Sizes& sizes, const GraphSymbols& symbols) {
  Binding binding;
  for (const auto& [name, size] : sizes) {
    if (const auto symbol = size.as_symbol(); symbol && symbols.attributes.contains(name))
      binding.bind_attr(name, Symbol{std::string(*symbol)}, 1);
    else
      binding.bind_size(name, size);
  }
  return binding;
}

/// One walk over a graph of core operators under the sizes solved so far.
Expected<Done> require_valid(SizeSolver& solver, const Graph& graph, const GraphSymbols& symbols,
                             Broadcasting broadcasting, Guard& broadcasts) {
  const Binding binding = binding_of(solver.solved(), symbols);
  GraphBuilder out;
  Vals inputs;
  for (const ValueId id : graph.inputs())
    inputs.push_back(out.input("", {.type = binding.type(graph.type(id))}));
  TESSERA_TRY(const Vals outputs, placed(out, graph, inputs, binding));
  TESSERA_TRY(const Graph made, out.finish(outputs));
  const auto known = [&](ValueId id) {
    return id.present() ? out.known(Val(out, id.index)) : ValueInfo{.present = false};
  };
  for (const GraphNode& node : made.nodes()) {
    if (!node.op->define) continue;
    std::vector<ValueInfo> operands;
    for (const ValueId id : made.inputs(node)) operands.push_back(known(id));
    const std::optional<Signature> signature = signature_of(operands);
    if (!signature) continue;
    const auto shared = defined(*node.op, *node.attrs, *signature);
    if (!shared) continue;  // a value that it needs is told by data
    const Definition& definition = **shared;
    std::set<OperandAxis> stretched =
        stretched_axes(node, *signature, definition, solver.solved(), broadcasts);
    if (broadcasting == Broadcasting::Equal) stretched.clear();
    TESSERA_TRY_DONE(Fit(solver, definition, shapes_of(*signature), stretched).require());
    for (Condition& condition : stretched_by_shape(node, operands, solver.solved())) {
      if (broadcasting == Broadcasting::Equal) TESSERA_TRY_DONE(solver.require(condition));
      broadcasts.push_back(std::move(condition));
    }
    for (const ValueId id : made.outputs(node))
      for (const Dim& dim : made.type(id).shape.value_or(Shape{}))
        TESSERA_TRY_DONE(solver.require_at_least(dim, 0));
  }
  return Done{};
}

}  // namespace

Guard asked_of_sizes(const OpDef& op, const Attrs& attrs, const Signature& signature) {
  Guard asked;
  const auto definition = op.define(attrs, signature);
  const bool all = std::ranges::all_of(signature, &Argument::present);
  if (!definition || !all || definition->inputs.size() != signature.size()) return asked;
  std::map<std::string, OperandAxis, std::less<>> first;
  for (std::size_t i = 0; i < signature.size(); ++i)
    for (std::size_t axis = 0; axis < definition->inputs[i].shape.size(); ++axis) {
      const auto symbol = definition->inputs[i].shape[axis].as_symbol();
      if (!symbol || !symbol->starts_with('#')) continue;
      const OperandAxis here{i, axis};
      const auto [it, fresh] = first.try_emplace(std::string(*symbol), here);
      const Dim &a = signature[it->second.first].type.shape[it->second.second],
                &b = signature[i].type.shape[axis];
      if (fresh || a == b || is_stretched(op, attrs, signature, here, it->second) ||
          is_stretched(op, attrs, signature, it->second, here))
        continue;
      asked.push_back(equal(a, b));
    }
  return asked;
}

void GraphSymbols::add(const GraphSymbols& more) {
  sizes.insert(more.sizes.begin(), more.sizes.end());
  axes.insert(more.axes.begin(), more.axes.end());
  attributes.insert(more.attributes.begin(), more.attributes.end());
  entries.insert(more.entries.begin(), more.entries.end());
}

bool GraphSymbols::contains(const std::string& name) const {
  return sizes.contains(name) || attributes.contains(name) || entries.contains(name);
}

GraphSymbols symbols_of(const Graph& graph) {
  GraphSymbols symbols;
  for (const ValueId id : graph.inputs()) {
    for (const Dim& dim : graph.type(id).shape.value_or(Shape{})) {
      dim.collect_symbols(symbols.sizes);
      if (dim.as_symbol()) dim.collect_symbols(symbols.axes);
    }
  }
  for (const GraphNode& node : graph.nodes()) {
    for (const auto& subgraph : graph.subgraphs(node)) symbols.add(symbols_of(*subgraph));
    for (const auto& [name, attr] : node.attrs->entries()) {
      const auto* symbol = std::get_if<Symbol>(&attr);
      if (symbol == nullptr) continue;
      const auto spec = std::ranges::find(node.op->attrs, name, &AttrSpec::name);
      if (std::holds_alternative<std::int64_t>(spec->value))
        symbols.attributes.insert(symbol->name);
      if (!std::holds_alternative<Ints>(spec->value)) continue;
      const std::size_t count = entry_count(graph, node, name);
      for (std::size_t i = 0; i < count; ++i)
        entry_symbol(symbol->name, i).collect_symbols(symbols.entries);
    }
  }
  return symbols;
}

Expected<SizeRelations> relate_sizes(const Graph& graph, const SizeRelations& given,
                                     Broadcasting broadcasting) {
  GraphSymbols symbols = symbols_of(graph);
  SizeSolver solver(given, symbols);
  const bool composite = std::ranges::any_of(
      graph.nodes(), [](const GraphNode& n) { return n.op->kind() == OpDef::Kind::Composite; });
  std::optional<Graph> core;
  if (composite) {
    // A body that asks for more than is known tells nothing of sizes.
    if (auto expanded = expand(graph, is_composite)) {
      core = *std::move(expanded);
      symbols = symbols_of(*core);
    }
  }
  Guard broadcasts;
  do {
    TESSERA_TRY_DONE(
        require_valid(solver, core ? *core : graph, symbols, broadcasting, broadcasts));
    TESSERA_TRY_DONE(solver.reopen());
  } while (solver.found_numbers());
  for (const ValueId id : graph.inputs())
    for (const Dim& dim : graph.type(id).shape.value_or(Shape{}))
      TESSERA_TRY_DONE(solver.require_at_least(dim, 1));
  TESSERA_TRY(SizeRelations relations, solver.finished());
  for (Condition& condition : broadcasts) relations.broadcasts.push_back(std::move(condition));
  return relations;
}

Expected<SizeRelations> relate_sizes(const Guard& conditions, const SizeRelations& given) {
  // What no graph mentions yet is an attribute of one that comes later.
  GraphSymbols more;
  for (const Condition& condition : conditions)
    for (const std::string& name : symbols_in(condition.left - condition.right))
      if (!given.symbols.contains(name) && !given.parts.contains(name))
        more.attributes.insert(name);
  SizeSolver solver(given, more);
  for (const Condition& condition : conditions) TESSERA_TRY_DONE(solver.require(condition));
  TESSERA_TRY_DONE(solver.reopen());
  return solver.finished();
}

Expected<SizeRelations> relate_outputs(const Graph& source, const Graph& target,
                                       const SizeRelations& given) {
  TESSERA_TRY(const Graph from, with_sizes(source, given.solved));
  TESSERA_TRY(const Graph to, with_sizes(target, given.solved));
  Guard equal_shapes;
  for (std::size_t i = 0; i < from.outputs().size(); ++i) {
    const Type &left = from.type(from.outputs()[i]), &right = to.type(to.outputs()[i]);
    if (!left.shape || !right.shape) continue;
    if (left.shape->size() != right.shape->size())
      return Diagnostic{
          .id = "sizes-contradict",
          .message = fmt::format("output {} has {} axes in the source, {} in the target", i,
                                 left.shape->size(), right.shape->size())};
    for (std::size_t axis = 0; axis < left.shape->size(); ++axis)
      equal_shapes.push_back(equal((*left.shape)[axis], (*right.shape)[axis]));
  }
  return relate_sizes(equal_shapes, given);
}

Guard beyond(const SizeRelations& given, const SizeRelations& all) {
  const auto told = [&](const Dim& dim) { return prove::told(dim, all.parts); };
  Sizes quotients;
  for (const auto& [name, part] : all.parts) quotients.insert_or_assign(name, part.quotient());
  Guard guard;
  for (const auto& [name, value] : all.solved) {
    if (given.solved.contains(name)) continue;
    if (!given.symbols.contains(name) && !given.parts.contains(name)) continue;
    Condition condition = equal(told(Dim::symbol(name)), told(value));
    // A multiple of its part: that there is no remainder.
    if (condition.left == condition.right) condition.right = resolved(value, quotients);
    guard.push_back(std::move(condition));
  }
  const Guard before = [&] {
    Guard known = given.open;
    for (Condition& condition : known)
      condition = {condition.kind, resolved(condition.left, all.solved),
                   resolved(condition.right, all.solved)};
    return known;
  }();
  for (const Condition& condition : all.open)
    if (std::ranges::find(before, condition) == before.end())
      guard.push_back({condition.kind, told(condition.left), told(condition.right)});
  return guard;
}

Expected<Graph> with_sizes(const Graph& graph, const Sizes& sizes) {
  if (sizes.empty()) return graph;
  return bound(graph, binding_of(sizes, symbols_of(graph)));
}

}  // namespace tessera::prove
