#include "tessera/rules/explain.h"

#include <algorithm>
#include <map>

#include "tessera/expr/grammar.h"
#include "tessera/expr/shape.h"
#include "tessera/expr/text.h"
#include "tessera/ir/infer.h"
#include "tessera/ir/literal.h"
#include "tessera/ir/text.h"
#include "tessera/rules/text.h"

namespace tessera::rules {
namespace {

/// The function that a node applies to the elements of its operands, in their order.
std::optional<Fn> function_of(const Definition& definition) {
  const auto* apply = std::get_if<node::Apply>(&definition.outputs[0].value.node());
  if (apply == nullptr || apply->args.size() != definition.inputs.size()) return {};
  for (std::size_t i = 0; i < apply->args.size(); ++i) {
    const auto* read = std::get_if<node::Read>(&apply->args[i].node());
    if (read == nullptr || read->operand != definition.inputs[i].name) return {};
  }
  return apply->fn;
}

/// Values as formulas: infix where the definition is one, calls elsewhere.
class Formula {
 public:
  explicit Formula(const Graph& graph) : graph_(graph) {}

  std::string of(ValueId id, int level = grammar::kLoose) const {
    if (!id.present()) return "_";
    if (const Tensor* constant = graph_.constant(id)) return constant_text(*constant);
    const GraphNode* node = graph_.producer(id);
    if (node == nullptr) return graph_.name(id);
    const auto inputs = graph_.inputs(*node);
    const std::optional<Definition> definition = definition_of(graph_, *node);
    const std::optional<Fn> fn = definition ? function_of(*definition) : std::nullopt;
    const auto sign = std::ranges::find_if(
        grammar::kInfix, [&](const grammar::Infix& infix) { return infix.fn == fn; });
    std::string text;
    int own = grammar::kAtom;
    if (fn && inputs.size() == 2 && sign != grammar::kInfix.end()) {
      own = sign->level;
      text = fmt::format("{} {} {}", of(inputs[0], own), sign->sign, of(inputs[1], own + 1));
    } else if (fn == Fn::Neg) {
      own = grammar::kUnary;
      text = "-" + of(inputs[0], own);
    } else {
      for (const ValueId input : inputs) text += (text.empty() ? "" : ", ") + of(input);
      text = fmt::format("{}({}){}", node->op->name, text, attrs_text(*node->op, *node->attrs));
      const auto results = graph_.outputs(*node);
      if (results.size() > 1) text += fmt::format(".{}", position(results, id));
    }
    return own < level ? "(" + text + ")" : text;
  }

 private:
  static std::size_t position(std::span<const ValueId> ids, ValueId id) {
    return static_cast<std::size_t>(std::ranges::find(ids, id) - ids.begin());
  }

  const Graph& graph_;
};

/// An expression over operands of other names.
class Renamed {
 public:
  explicit Renamed(std::map<std::string, std::string> names) : names_(std::move(names)) {}

  Scalar operator()(const Scalar& scalar) {
    if (const auto it = done_.find(scalar.id()); it != done_.end()) return it->second;
    Scalar made = scalar;
    if (const auto* read = std::get_if<node::Read>(&scalar.node())) {
      node::Read other{names_.at(read->operand), read->sort, all(read->at), nullptr};
      if (read->otherwise != nullptr)
        other.otherwise = std::make_shared<const Scalar>((*this)(*read->otherwise));
      made = Scalar(Node(std::move(other)));
    } else if (const auto* apply = std::get_if<node::Apply>(&scalar.node())) {
      made = Scalar(Node(node::Apply{apply->fn, all(apply->args)}));
    } else if (const auto* cast = std::get_if<node::Cast>(&scalar.node())) {
      made = tessera::cast(cast->to, (*this)(*cast->arg));
    } else if (const auto* component = std::get_if<node::Component>(&scalar.node())) {
      auto& fold = folds_[component->fold.get()];
      if (fold == nullptr) {
        const Fold& old = *component->fold;
        fold = std::make_shared<const Fold>(
            Fold{old.bounds, all(old.init), all(old.lift), all(old.combine)});
      }
      made = Scalar(Node(node::Component{fold, component->index}));
    }
    return done_.emplace(scalar.id(), made).first->second;
  }

 private:
  std::vector<Scalar> all(const std::vector<Scalar>& scalars) {
    std::vector<Scalar> made;
    for (const Scalar& scalar : scalars) made.push_back((*this)(scalar));
    return made;
  }

  std::map<std::string, std::string> names_;
  std::map<const void*, Scalar> done_;
  std::map<const Fold*, std::shared_ptr<const Fold>> folds_;
};

/// `  t[m, n] = sum(k) x[m, k] * y[k, n]`, a line for each node.
std::string elements_of(const Graph& graph) {
  std::map<ValueId, std::string> names;
  const auto name = [&](ValueId id) {
    if (const Tensor* constant = graph.constant(id)) return constant_text(*constant);
    if (graph.is_named(id)) return graph.name(id);
    return names.try_emplace(id, fmt::format("t{}", names.size())).first->second;
  };
  std::string text;
  for (const GraphNode& node : graph.nodes()) {
    const auto results = graph.outputs(node);
    const std::optional<Definition> definition = definition_of(graph, node);
    std::map<std::string, std::string> operands;
    std::string list;
    std::size_t present = 0;
    for (const ValueId id : graph.inputs(node)) {
      list += (list.empty() ? "" : ", ") + (id.present() ? name(id) : "_");
      if (id.present() && definition) operands[definition->inputs[present++].name] = name(id);
    }
    if (!definition) {
      text += fmt::format("  {} = {}({}){}\n", name(results[0]), node.op->name, list,
                          attrs_text(*node.op, *node.attrs));
      continue;
    }
    Renamed renamed(operands);
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Output& output = definition->outputs[i];
      std::string at;
      for (const MergedAxis& axis : output.axes)
        at += (at.empty() ? "" : ", ") + tessera::to_text(Scalar(axis));
      text += fmt::format("  {}[{}] = {}\n", name(results[i]), at,
                          tessera::to_text(renamed(output.value)));
    }
  }
  std::string outputs;
  for (const ValueId id : graph.outputs()) outputs += (outputs.empty() ? "" : ", ") + name(id);
  return text + "  and that is " + outputs + "\n";
}

/// One side of a rule as a cluster of a picture.
std::string cluster(const Graph& graph, const std::string& title) {
  std::string text = fmt::format("  subgraph cluster_{0} {{\n    label={0};\n", title);
  const auto vertex = [&](const std::string& id, const std::string& label,
                          const std::string& look) {
    text += fmt::format("    {}_{} [label={}, {}];\n", title, id, quoted_text(label), look);
  };
  const auto source_of = [&](ValueId id) {
    const GraphNode* node = graph.producer(id);
    if (node == nullptr) return fmt::format("{}_v{}", title, id.index);
    return fmt::format("{}_n{}", title, node - graph.nodes().data());
  };
  for (std::uint32_t i = 0; i < graph.value_count(); ++i) {
    const ValueId id{i};
    if (const Tensor* constant = graph.constant(id))
      vertex(fmt::format("v{}", i), constant_text(*constant), "shape=plaintext");
    else if (graph.producer(id) == nullptr)
      vertex(fmt::format("v{}", i), graph.name(id), "shape=ellipse");
  }
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const GraphNode& node = graph.nodes()[n];
    vertex(fmt::format("n{}", n), node.op->name + attrs_text(*node.op, *node.attrs), "shape=box");
    for (const ValueId id : graph.inputs(node))
      if (id.present()) text += fmt::format("    {} -> {}_n{};\n", source_of(id), title, n);
  }
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    vertex(fmt::format("out{}", i), "", "shape=doublecircle");
    text += fmt::format("    {} -> {}_out{};\n", source_of(graph.outputs()[i]), title, i);
  }
  return text + "  }\n";
}

std::string numerics_in_words(const Numerics& numerics) {
  switch (numerics.kind) {
    case Numerics::Kind::Exact: return "bit for bit";
    case Numerics::Kind::Reals: return "over the reals; each side rounds in its own way";
    case Numerics::Kind::Error: break;
  }
  return fmt::format("up to a relative error of {}", float_text(numerics.error));
}

}  // namespace

std::string equation(const Rule& rule) {
  const auto side = [](const Graph& graph) {
    const Formula formula(graph);
    std::string text;
    for (const ValueId id : graph.outputs()) text += (text.empty() ? "" : ", ") + formula.of(id);
    return text;
  };
  return side(rule.source) + " = " + side(rule.target);
}

std::string in_words(const Guard& guard) {
  std::string text;
  for (const auto& [kind, left, right] : guard)
    text += fmt::format("{}{} is {}{}", text.empty() ? "" : " and ", left.to_string(),
                        kind == Condition::Kind::AtMost ? "at most " : "", right.to_string());
  return text;
}

std::string explain(const Rule& rule) {
  std::string text = rule.name + ": " + rule.about + "\n\n  " + equation(rule) + "\n\n";
  text += fmt::format("for    {}\n", inputs_text(rule));
  if (!rule.guard.empty()) text += fmt::format("where  {}\n", in_words(rule.guard));
  text += fmt::format("holds  {}, {}\n", rule.both_ways ? "both ways" : "from left to right",
                      numerics_in_words(rule.numerics));
  if (!rule.found.empty()) text += fmt::format("found  {}\n", rule.found);
  return text + "\nsource\n" + elements_of(rule.source) + "\ntarget\n" + elements_of(rule.target);
}

std::optional<Definition> definition_of(const Graph& graph, const GraphNode& node) {
  if (node.op->kind() != OpDef::Kind::Core) return {};
  std::vector<ValueInfo> inputs;
  for (const ValueId id : graph.inputs(node)) {
    const Tensor* constant = id.present() ? graph.constant(id) : nullptr;
    inputs.push_back(!id.present()         ? ValueInfo{.present = false}
                     : constant != nullptr ? constant_info(*constant)
                                           : ValueInfo{.type = graph.type(id)});
  }
  const std::optional<Signature> in = signature_of(inputs);
  if (!in) return {};
  auto definition = node.op->define(*node.attrs, *in);
  return definition ? std::optional(*std::move(definition)) : std::nullopt;
}

std::string to_dot(const Rule& rule) {
  return fmt::format("digraph {} {{\n  rankdir=TB;\n", quoted_text(rule.name)) +
         cluster(rule.source, "source") + cluster(rule.target, "target") + "}\n";
}

std::vector<Row> rows(const std::vector<Rule>& rules) {
  std::vector<Row> made;
  for (const Rule& rule : rules)
    made.push_back({rule.name, rule.both_ways ? "=" : "->", to_text(rule.numerics),
                    to_text(rule.guard), rule.about});
  return made;
}

}  // namespace tessera::rules
