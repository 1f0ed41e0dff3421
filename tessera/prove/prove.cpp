#include "tessera/prove/prove.h"

#include <algorithm>
#include <set>
#include <utility>

#include "tessera/expr/named_real.h"
#include "tessera/expr/walk.h"
#include "tessera/prove/assumptions.h"
#include "tessera/prove/normalise.h"
#include "tessera/support/lexer.h"

namespace tessera::prove {
namespace {

constexpr int kProbes = 4;

/// Proves all pairs of a claim, or says what is left of the first that it cannot.
std::optional<certify::Certificate> certificate_for(const GraphClaim& claim, const Options& options,
                                                    Arithmetic& arithmetic, std::string& why) {
  certify::Certificate certificate{.claim = claim.claim, .proofs = {}};
  for (std::size_t pair = 0; pair < claim.claim.pairs.size(); ++pair) {
    // What both compute in the same way is left alone, if that is enough.
    bool proved = false;
    for (const bool whole : {false, true}) {
      if (whole && claim.shared.empty()) break;
      auto state = certify::State::of(claim.claim, pair);
      if (!state) {
        why = to_string(state.error());
        return std::nullopt;
      }
      constexpr int kMostCases = 160;
      int budget = kMostCases;
      Limits limits{.most_terms = options.most_terms,
                    .most_steps = options.most_steps,
                    .reconciles = options.splits,
                    .budget = &budget,
                    .stop = options.stop};
      if (!options.cases) limits.cases = limits.signs = 0;
      if (!whole)
        limits.keeps = [&](const std::string& name) { return claim.shared.contains(name); };
      certify::Proof proof;
      proved = settle(*state, proof, limits, arithmetic, why);
      if (!proved) continue;
      certificate.proofs.push_back(std::move(proof));
      break;
    }
    if (!proved) return std::nullopt;
  }
  return certificate;
}

/// What is assumed of constants if they stand for named reals.
std::vector<Assumption> named_constants(const certify::Claim& claim) {
  std::set<std::string> found;
  algebra::Names names;
  const auto look = [&](double constant) {
    if (const auto named = algebra::named_real(names, constant))
      found.insert(fmt::format("the constant {} stands for {}", float_text(constant), named->name));
  };
  for (const certify::Input& input : claim.inputs)
    if (input.uniform) look(*input.uniform);
  std::set<const void*> seen;
  const std::function<void(const Scalar&)> visit = [&](const Scalar& scalar) {
    if (!seen.insert(shared_id(scalar)).second) return;
    const auto* constant = std::get_if<node::Constant>(&scalar.node());
    if (constant != nullptr && constant->sort == Sort::Value) look(constant->number);
    for_each_part(scalar, visit);
  };
  for (const certify::Value& value : claim.values)
    for (const Output& output : value.definition->outputs) visit(output.value);
  std::vector<Assumption> assumptions;
  for (const std::string& text : found) assumptions.push_back({Assumption::Kind::Constant, text});
  return assumptions;
}

/// A size that is a number is put in where else it is spoken of.
Guard simplified(Guard guard) {
  for (std::size_t i = 0; i < guard.size(); ++i) {
    const auto name = guard[i].left.as_symbol();
    if (guard[i].kind != Condition::Kind::Equal || !name || !guard[i].right.constant()) continue;
    const algebra::Replacement with{{std::string(*name), guard[i].right}};
    for (std::size_t k = 0; k < guard.size(); ++k) {
      if (k == i) continue;
      guard[k].left = algebra::substituted(guard[k].left, with);
      guard[k].right = algebra::substituted(guard[k].right, with);
    }
  }
  std::erase_if(guard, [](const Condition& c) { return c.left == c.right; });
  return guard;
}

/// Whether it follows from sizes of inputs being at least 1, where that is plain to see.
bool holds_for_sizes(const Condition& condition, const Graph& graph) {
  if (condition.kind == Condition::Kind::Equal) return false;
  algebra::Replacement more;
  for (const ValueId id : graph.inputs())
    for (const Dim& dim : graph.type(id).shape.value_or(Shape{})) {
      const auto parts = dim.parts();
      if (parts.size() != 1) continue;
      for (const Dim& factor : parts[0].product.factors())
        if (const auto name = factor.as_symbol())
          more.emplace(std::string(*name), Dim::symbol(std::string(*name)) + 1);
    }
  return algebra::substituted(condition.right - condition.left, more).least().value_or(-1) >= 0;
}

/// `given` is what goes without saying: the relations of the source, but not that sizes that meet
/// by broadcasting are equal.
Expected<Setting> setting_under(const SizeRelations& given, const SizeRelations& own,
                                const Graph& source, const Graph& target, const Guard& assumed) {
  SizeRelations all = own;
  if (!assumed.empty()) {
    TESSERA_TRY(all, relate_sizes(assumed, own));
  }
  TESSERA_TRY(all, relate_sizes(target, all));
  TESSERA_TRY(Graph left, with_sizes(source, all.solved));
  TESSERA_TRY(Graph right, with_sizes(target, all.solved));
  const auto shape = [](const Graph& graph, std::size_t i) {
    return graph.type(graph.outputs()[i]).shape;
  };
  for (std::size_t i = 0; i < left.outputs().size(); ++i) {
    if (shape(left, i) == shape(right, i)) continue;
    TESSERA_TRY(all, relate_outputs(source, target, all));
    TESSERA_TRY(left, with_sizes(source, all.solved));
    TESSERA_TRY(right, with_sizes(target, all.solved));
    break;
  }
  Guard guard = simplified(beyond(given, all));
  std::erase_if(guard, [&](const Condition& c) { return holds_for_sizes(c, source); });
  return Setting{std::move(left), std::move(right), std::move(guard), all.open};
}

/// The proof in a setting; nothing but a reason where there is none.
std::optional<Proved> proved_in(const Setting& setting, const Options& options,
                                Arithmetic& arithmetic, std::string& why) {
  auto claim = claim_of(setting.source, setting.target, setting.facts);
  if (!claim) {
    why = to_string(claim.error());
    return std::nullopt;
  }
  for (const auto& [input, tensor] : options.contents)
    claim->constants.emplace(input_name(input), tensor);
  const bool is_named = options.names_constants && !named_constants(claim->claim).empty();
  if (!is_named)
    if (auto certificate = certificate_for(*claim, options, arithmetic, why))
      return Proved{setting.guard, std::move(*certificate), arithmetic_assumptions(*claim)};
  if (auto written = with_contents(*claim)) {
    if (!is_named)
      if (auto certificate = certificate_for(*written, options, arithmetic, why))
        return Proved{setting.guard, std::move(*certificate), arithmetic_assumptions(*claim)};
    claim = *std::move(written);
  }
  // A double that is not the nearest one of a number stands for itself.
  if (!options.named_reals || certify::has_doubles(claim->claim)) return std::nullopt;
  std::vector<Assumption> assumptions = named_constants(claim->claim);
  if (assumptions.empty()) return std::nullopt;
  GraphClaim named = std::move(*claim);
  named.claim.named_reals = true;
  std::string ignored;
  auto certificate = certificate_for(named, options, arithmetic, ignored);
  if (!certificate) return std::nullopt;
  // Constants that are not quite the same may be told apart by what is made of them.
  Options probing = options;
  probing.tries = kProbes;
  if (std::holds_alternative<Refuted>(
          refute(setting.source, setting.target, setting.guard, probing)))
    return std::nullopt;
  std::ranges::copy(arithmetic_assumptions(named), std::back_inserter(assumptions));
  return Proved{setting.guard, std::move(*certificate), std::move(assumptions)};
}

/// Whether an attribute that is a symbol in the source is one in the target, or a number but 1.
bool is_grouped(const Graph& source, const Graph& target) {
  std::set<std::string> names;
  for (const GraphNode& node : source.nodes())
    for (const auto& [name, attr] : node.attrs->entries())
      if (std::holds_alternative<Symbol>(attr)) names.insert(name);
  for (const GraphNode& node : target.nodes())
    for (const auto& [name, attr] : node.attrs->entries()) {
      const auto* number = std::get_if<std::int64_t>(&attr);
      if (names.contains(name) && (number == nullptr || *number != 1)) return true;
    }
  return false;
}

/// None; that convolutions are not grouped; that their weights have equally many channels.
std::vector<Guard> further_guards(const Graph& source, const Graph& target,
                                  const SizeRelations& relations) {
  std::vector<Guard> guards{{}};
  Guard ungrouped;
  for (const std::string& name : symbols_of(source).attributes)
    ungrouped.push_back(equal(Dim::symbol(name), 1));
  if (!ungrouped.empty()) guards.push_back(ungrouped);
  if (ungrouped.empty() || !is_grouped(source, target)) return guards;
  for (auto a = relations.parts.begin(); a != relations.parts.end(); ++a) {
    for (auto b = std::next(a); b != relations.parts.end(); ++b) {
      guards.push_back(ungrouped);
      guards.back().push_back(equal(a->second.quotient(), b->second.quotient()));
    }
  }
  return guards;
}

}  // namespace

std::string_view to_string(const Verdict& verdict) {
  constexpr std::string_view kNames[] = {"proved", "refuted", "unknown"};
  return kNames[verdict.index()];
}

Expected<std::vector<Setting>> settings_of(const Graph& source, const Graph& target) {
  TESSERA_TRY(const SourceRelations relations, source_relations(source));
  const auto& [given, own] = relations;
  std::vector<Setting> settings;
  for (const Guard& guard : further_guards(source, target, own))
    if (auto setting = setting_under(given, own, source, target, guard))
      settings.push_back(*std::move(setting));
  return settings;
}

std::vector<Assumption> nameable_constants(const Graph& source, const Graph& target) {
  const auto claim = claim_of(source, target, {});
  return claim && !certify::has_doubles(claim->claim) ? named_constants(claim->claim)
                                                      : std::vector<Assumption>();
}

std::vector<Assumption> assumptions_of(const GraphClaim& claim) {
  std::vector<Assumption> assumptions;
  if (claim.claim.named_reals) assumptions = named_constants(claim.claim);
  std::ranges::copy(arithmetic_assumptions(claim), std::back_inserter(assumptions));
  return assumptions;
}

std::optional<certify::Certificate> prove_claim(const certify::Claim& claim, const Options& options,
                                                std::string& why) {
  Arithmetic arithmetic;
  return certificate_for({.claim = claim}, options, arithmetic, why);
}

Expected<SourceRelations> source_relations(const Graph& source) {
  TESSERA_TRY(SizeRelations own, relate_sizes(source));
  if (own.broadcasts.empty()) return SourceRelations{own, own};
  TESSERA_TRY(SizeRelations given, relate_sizes(source, {}, Broadcasting::Open));
  return SourceRelations{std::move(given), std::move(own)};
}

Verdict prove(const Graph& source, const Graph& target, const Options& options) {
  const auto relations = source_relations(source);
  if (!relations) return Unknown{to_string(relations.error())};
  return prove_related(source, target, *relations, options);
}

Verdict prove_related(const Graph& source, const Graph& target, const SourceRelations& relations,
                      const Options& options) {
  constexpr int kLook = 20;  // tries before what takes long
  if (source.inputs().size() != target.inputs().size() ||
      source.outputs().size() != target.outputs().size())
    return Unknown{"the graphs do not have the same inputs and outputs"};
  // Most are proved at once or not at all. If not, it is worth a few numbers to see under which
  // guard there is something to prove; with several groups, as a rule, there is such a guard.
  Options quick = options;
  quick.most_steps = std::min<std::int64_t>(options.most_steps, 150);
  quick.tries = std::min(options.tries, 2);
  quick.splits = false;
  Options look = options;
  look.tries = std::min(options.tries, kLook);
  // A proof that splits terms takes less than the look, where there is one and it is short.
  Options split = quick;
  split.most_steps = std::min<std::int64_t>(options.most_steps, 1000);
  split.splits = options.splits;
  split.cases = false;
  split.named_reals = false;
  std::string why, ignored;
  std::optional<Arithmetic> alone;
  Arithmetic& arithmetic = options.arithmetic != nullptr ? *options.arithmetic : alone.emplace();
  const auto& [given, own] = relations;
  const std::vector<Guard> guards = further_guards(source, target, own);
  for (const Guard& guard : guards) {
    const auto setting = setting_under(given, own, source, target, guard);
    std::string& reason = guard.empty() ? why : ignored;
    if (!setting) {
      reason = to_string(setting.error());
      continue;
    }
    if (guard.empty() && guards.size() <= 2)
      if (auto proved = proved_in(*setting, quick, arithmetic, reason)) return std::move(*proved);
    if (std::holds_alternative<Refuted>(refute(source, target, setting->guard, quick))) continue;
    if (guard.empty()) {
      if (auto proved = proved_in(*setting, split, arithmetic, reason)) return std::move(*proved);
      if (std::holds_alternative<Refuted>(refute(source, target, setting->guard, look))) continue;
    }
    if (auto proved = proved_in(*setting, options, arithmetic, reason)) return std::move(*proved);
  }
  Verdict verdict = refute(source, target, {}, options);
  if (std::holds_alternative<Unknown>(verdict)) return Unknown{why};
  return verdict;
}

}  // namespace tessera::prove
