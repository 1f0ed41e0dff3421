#include "tessera/superopt/generate/decide.h"

#include <algorithm>
#include <set>

#include "tessera/expr/tracer.h"
#include "tessera/interp/interp.h"
#include "tessera/ir/bind.h"
#include "tessera/prove/prove.h"
#include "tessera/prove/sizes.h"
#include "tessera/rules/explain.h"
#include "tessera/rules/proof.h"

namespace tessera::superopt {
namespace {

using rules::Rule;

prove::Options proof_options(const std::atomic<bool>* stop) {
  // Small limits: candidates agree on random inputs already, so few tries refute those that are
  // true only for these sizes.
  return {.tries = 8, .most_terms = 500, .most_steps = 600, .named_reals = false, .stop = stop};
}

/// Guard of the reverse direction: conditions under which the source fits where the target matches.
Expected<Guard> guard_back(const Rule& rule, const Guard& forth) {
  TESSERA_TRY(const prove::SizeRelations own, prove::relate_sizes(rule.target));
  TESSERA_TRY(const prove::SizeRelations given, prove::relate_sizes(forth, own));
  TESSERA_TRY(const prove::SizeRelations all, prove::relate_sizes(rule.source, given));
  Guard guard = forth;
  for (const Condition& condition : beyond(given, all)) guard.push_back(condition);
  return guard;
}

/// Whether both sides compute every element by the same steps in the same order.
bool is_exact(const Terms& terms, const Candidate& candidate, const SizeValues& sizes) {
  std::optional<Rule> rule = as_rule(terms, candidate, Form::Declared);
  if (!rule) return false;
  // Sizes of inputs as they were enumerated.
  SizeValues values;
  for (const std::uint8_t variable : variables_of(terms, candidate.source)) {
    const Shape& shape = *terms.set().inputs[terms.kind(variable)].type.shape;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const Dim size = shape[axis].substituted([&](std::string_view name) -> std::optional<Dim> {
        return Dim(sizes.find(name)->second);
      });
      values.emplace(fmt::format("{}.{}", terms.name(variable), axis), size.constant().value_or(1));
    }
  }
  values.emplace("g", 1);
  Tracer recording;
  std::vector<interp::Value> inputs;
  std::vector<std::vector<TracedNumber>> sides;
  for (const Graph* side : {&rule->source, &rule->target}) {
    const auto concrete = bound(*side, values);
    if (!concrete) return false;
    for (const ValueId id : concrete->inputs()) {
      if (side != &rule->source) break;
      std::vector<std::int64_t> shape;
      for (const Dim& dim : *concrete->type(id).shape) shape.push_back(dim.constant().value_or(0));
      std::vector<TracedNumber> elements(
          static_cast<std::size_t>(element_count(shape).value_or(0)));
      for (TracedNumber& element : elements) element = recording.input();
      inputs.push_back({Tensor::of<TracedNumber>(DType::F32, shape, elements), true});
    }
    const auto results = interp::run_as<TracedNumber>(*concrete, inputs, {});
    if (!results) return false;
    std::vector<TracedNumber>& all = sides.emplace_back();
    for (const interp::Value& value : *results) {
      const auto elements = value.datum.tensor().as<TracedNumber>();
      all.insert(all.end(), elements.begin(), elements.end());
    }
  }
  if (!recording.decided() || recording.simplified()) return false;
  return std::ranges::equal(sides[0], sides[1]) && recording.decided();
}

Rule finished(const Terms& terms, const Candidate& candidate, Form form, const Guard& guard) {
  Rule rule = *as_rule(terms, candidate, form);
  rule.guard = guard;
  if (form != Form::AnyRank) rule = renamed(rule);
  rule.found = "by enumeration";
  rule.about = rules::equation(rule);
  return rule;
}

/// Whether all inputs are scalars or of one shape.
bool may_be_of_any_rank(const Terms& terms, const Candidate& candidate) {
  std::set<std::string> shapes;
  for (const auto* side : {&candidate.source, &candidate.target})
    for (const std::uint8_t variable : variables_of(terms, *side)) {
      const OperatorSet::Input& input = terms.set().inputs[terms.kind(variable)];
      if (input.like) return false;
      if (!input.type.shape->empty()) shapes.insert(to_string(input.type));
    }
  return shapes.size() == 1;
}

}  // namespace

Rule renamed(const Rule& rule) {
  Sizes names;
  if (const auto relations = prove::relate_sizes(rule.source))
    for (const auto& [name, size] : relations->solved)
      if (size.constant() || size.as_symbol()) names.emplace(name, size);
  const auto placed_in = [](const Rule& old, const Sizes& sizes) -> std::optional<Rule> {
    auto source = prove::with_sizes(old.source, sizes),
         target = prove::with_sizes(old.target, sizes);
    if (!source || !target) return std::nullopt;
    Rule made = old;
    made.source = *std::move(source);
    made.target = *std::move(target);
    for (Condition& condition : made.guard)
      for (Dim* side : {&condition.left, &condition.right})
        *side = side->substituted([&](std::string_view symbol) -> std::optional<Dim> {
          const auto it = sizes.find(symbol);
          return it == sizes.end() ? std::nullopt : std::optional(it->second);
        });
    std::erase_if(made.guard, [](const Condition& c) { return c.left == c.right; });
    return made;
  };
  const std::optional<Rule> unified = placed_in(rule, names);
  const Rule& base = unified ? *unified : rule;
  Sizes shorter;
  std::size_t next = 0;
  constexpr std::string_view kLetters = "abcefhjklmnopqrtuvwyz";  // d and g name attributes
  for (const ValueId id : base.source.inputs()) {
    for (const Dim& dim : *base.source.type(id).shape) {
      std::set<std::string> symbols;
      dim.collect_symbols(symbols);
      for (const std::string& symbol : symbols) {
        if (symbol.find('.') == std::string::npos || shorter.contains(symbol)) continue;
        const std::string letter(1, kLetters[next % kLetters.size()]);
        shorter.emplace(symbol, Dim::symbol(next < kLetters.size()
                                                ? letter
                                                : letter + std::to_string(next / kLetters.size())));
        ++next;
      }
    }
  }
  return placed_in(base, shorter).value_or(base);
}

Decision decide(const Terms& terms, const Candidate& candidate, const std::atomic<bool>* stop) {
  Decision decision;
  if (may_be_of_any_rank(terms, candidate))
    if (const std::optional<Rule> rule = as_rule(terms, candidate, Form::AnyRank)) {
      const auto proof = prove_rule(*rule, rules::Guards::Found, proof_options(stop));
      const auto* proved = std::get_if<prove::Proved>(&proof.verdict);
      if (proved != nullptr && proved->guard.empty() && proof.instances.size() >= 5) {
        decision.verdict = Decision::Verdict::Proved;
        decision.form = Form::AnyRank;
        if (candidate.both_ways) decision.back = Guard{};
        return decision;
      }
    }
  std::optional<Rule> tried;
  for (const Form form : {Form::General, Form::Declared}) {
    const std::optional<Rule> rule = as_rule(terms, candidate, form);
    if (!rule) {
      decision.verdict = Decision::Verdict::Trivial;
      return decision;
    }
    const auto same_types = [&] {
      return std::ranges::equal(rule->source.inputs(), tried->source.inputs(), [&](auto a, auto b) {
        return rule->source.type(a) == tried->source.type(b);
      });
    };
    if (tried && same_types()) break;
    tried = rule;
    const prove::Verdict verdict = prove::prove(rule->source, rule->target, proof_options(stop));
    const auto* proved = std::get_if<prove::Proved>(&verdict);
    decision.verdict = static_cast<Decision::Verdict>(verdict.index());
    if (proved == nullptr) continue;
    decision.form = form;
    decision.forth = proved->guard;
    if (candidate.both_ways)
      if (auto back = guard_back(*rule, proved->guard)) decision.back = *std::move(back);
    break;
  }
  return decision;
}

std::vector<Rule> rules_of(const Terms& terms, const Candidate& candidate,
                           const Decision& decision) {
  using Kind = rules::Numerics::Kind;
  // The order of a sum's terms depends on its length.
  const bool exact = std::ranges::all_of(terms.set().sizes, [&](const SizeValues& sizes) {
    return is_exact(terms, candidate, sizes);
  });
  const Kind kind = exact ? Kind::Exact : Kind::Reals;
  std::vector<Rule> made;
  const auto add = [&](Rule rule) {
    rule.numerics.kind = kind;
    if (check(rule)) made.push_back(std::move(rule));
  };
  Rule forth = finished(terms, candidate, decision.form, decision.forth);
  forth.both_ways = decision.back == decision.forth;
  const bool two = decision.back && !forth.both_ways;
  add(std::move(forth));
  if (two) {
    // The reverse rule names its sizes by its own source.
    Candidate other = candidate;
    std::swap(other.source, other.target);
    if (as_rule(terms, other, decision.form))
      add(finished(terms, other, decision.form, *decision.back));
  }
  return made;
}

}  // namespace tessera::superopt
