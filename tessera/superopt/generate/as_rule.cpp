#include "tessera/superopt/generate/as_rule.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "tessera/ir/bind.h"
#include "tessera/ops/composite.h"
#include "tessera/rules/text.h"

namespace tessera::superopt {
namespace {

/// Value of an attribute for each choice of sizes.
using Quotients = std::vector<std::int64_t>;

class Side {
 public:
  Side(const Terms& terms, Form form) : terms_(terms), form_(form) {}

  void add_inputs(const std::vector<std::uint8_t>& variables) {
    for (const std::uint8_t variable : variables) {
      const OperatorSet::Input& input = terms_.set().inputs[terms_.kind(variable)];
      const std::string name = terms_.name(variable);
      Shape shape;
      for (std::size_t axis = 0; axis < input.general.size(); ++axis) {
        const Dim size = Dim::symbol(fmt::format("{}.{}", name, axis));
        places_.emplace(size, Place{variable, axis});
        const Dim& declared = (*input.type.shape)[axis];
        const Dim general =
            form_ == Form::Declared && declared.constant() ? declared : input.general[axis];
        shape.push_back(general.substituted([&](std::string_view symbol) {
          return symbol == "_" ? std::optional(size) : std::nullopt;
        }));
      }
      if (form_ == Form::AnyRank && !shape.empty()) shape = {Dim::symbol("*s")};
      order_.push_back(variable);
      inputs_[variable] = builder_.input(name, DType::F32, std::move(shape));
    }
  }

  /// Attributes that a source has are symbols; other ones are numbers.
  std::optional<Graph> built(const std::vector<NamedTerm>& outputs, std::set<Quotients>& symbols,
                             bool is_source) {
    symbols_ = &symbols;
    is_source_ = is_source;
    Vals results;
    for (const NamedTerm& output : outputs) {
      const std::optional<Val> made = value(output);
      if (!made || builder_.failed()) return std::nullopt;
      results.push_back(*made);
    }
    auto graph = builder_.finish(results);
    return graph ? std::optional(*std::move(graph)) : std::nullopt;
  }

 private:
  struct Place {
    std::uint8_t variable;
    std::size_t axis;
  };

  std::optional<Val> value(const NamedTerm& named) {
    const Term& term = terms_[named.term];
    if (term.op == Term::kVariable) return inputs_.at(named.naming[0]);
    const NamedTerm whole{named.term - term.result, named.naming};
    auto it = made_.find(whole);
    if (it == made_.end()) {
      const std::optional<Vals> results = applied(whole);
      if (!results) return std::nullopt;
      it = made_.emplace(whole, *results).first;
    }
    return it->second[term.result];
  }

  std::optional<Vals> applied(const NamedTerm& named) {
    const Term& term = terms_[named.term];
    const OperatorSet::Operator& op = terms_.set().operators[term.op];
    Vals args;
    std::vector<ShapeId> shapes;
    for (std::size_t i = 0; i < term.args; ++i) {
      const NamedTerm arg = terms_.arg(named, i);
      const std::optional<Val> made = value(arg);
      if (!made) return std::nullopt;
      args.push_back(*made);
      shapes.push_back(terms_[arg.term].shape);
    }
    if (op.cut && !add_parts(*op.cut, args)) return std::nullopt;
    Binding binding;
    for (const OperatorSet::Quotient& quotient : op.quotients) {
      const auto attr = attribute(quotient, shapes);
      if (!attr) return std::nullopt;
      binding.bind_attr(quotient.attr, *attr, 1);
    }
    auto results = placed(builder_, op.body, args, binding);
    if (!results || builder_.failed()) return std::nullopt;
    return *std::move(results);
  }

  /// The sizes that a sum of two sizes was made of, in the order of the inputs.
  bool add_parts(const OperatorSet::AxisOf& of, Vals& args) {
    const auto& shape = builder_.known(args[of.arg]).type.shape;
    if (!shape || of.axis >= shape->size()) return false;
    const auto parts = two_parts((*shape)[of.axis]);
    if (!parts) return false;
    const auto first = places_.find(parts->first), second = places_.find(parts->second);
    if (first == places_.end() || second == places_.end()) return false;
    const auto rank = [&](const Place& place) {
      return std::ranges::find(order_, place.variable) - order_.begin();
    };
    std::array<Place, 2> places = {first->second, second->second};
    if (rank(places[1]) < rank(places[0])) std::swap(places[0], places[1]);
    for (const Place& place : places) {
      const auto axis = static_cast<int>(place.axis);
      args.push_back(sizes_of(inputs_.at(place.variable), axis, axis + 1));
    }
    return true;
  }

  std::optional<Attr> attribute(const OperatorSet::Quotient& quotient,
                                const std::vector<ShapeId>& shapes) {
    const auto size = [&](const OperatorSet::AxisOf& of, const SizeValues& sizes) {
      const Dim& dim = terms_.instances().shape(shapes[of.arg])[of.axis];
      return dim
          .substituted([&](std::string_view name) -> std::optional<Dim> {
            return Dim(sizes.find(name)->second);
          })
          .constant()
          .value_or(1);
    };
    Quotients values;
    for (const SizeValues& sizes : terms_.set().sizes)
      values.push_back(size(quotient.whole, sizes) / size(quotient.part, sizes));
    const bool fixed = std::ranges::all_of(values, [&](auto v) { return v == values[0]; });
    if (fixed && values[0] != 1) return values[0];
    if (is_source_) symbols_->insert(values);
    if (symbols_->contains(values)) return Symbol{fixed ? "g" : "d"};
    return fixed ? std::optional<Attr>(values[0]) : std::nullopt;
  }

  const Terms& terms_;
  Form form_;
  GraphBuilder builder_;
  std::map<std::uint8_t, Val> inputs_;
  std::vector<std::uint8_t> order_;
  std::map<Dim, Place> places_;
  std::map<NamedTerm, Vals> made_;
  std::set<Quotients>* symbols_ = nullptr;
  bool is_source_ = false;
};

}  // namespace

std::optional<rules::Rule> as_rule(const Terms& terms, const Candidate& candidate, Form form) {
  std::vector<NamedTerm> outputs = candidate.source;
  outputs.insert(outputs.end(), candidate.target.begin(), candidate.target.end());
  const std::vector<std::uint8_t> variables = variables_of(terms, outputs);
  std::set<Quotients> symbols;
  rules::Rule rule;
  for (const bool is_source : {true, false}) {
    Side side(terms, form);
    side.add_inputs(variables);
    auto graph = side.built(is_source ? candidate.source : candidate.target, symbols, is_source);
    if (!graph) return std::nullopt;
    (is_source ? rule.source : rule.target) = *std::move(graph);
  }
  // Hashes do not distinguish inputs of one type.
  if (rule.source.hash() == rule.target.hash() &&
      rules::body_text(rule.source, 0) == rules::body_text(rule.target, 0))
    return std::nullopt;
  rule.found = "by enumeration";
  return rule;
}

}  // namespace tessera::superopt
