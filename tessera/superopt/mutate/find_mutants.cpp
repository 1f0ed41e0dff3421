#include "tessera/superopt/mutate/find_mutants.h"

#include <algorithm>
#include <map>
#include <set>

#include "tessera/ir/builder.h"
#include "tessera/prove/sizes.h"
#include "tessera/rules/text.h"
#include "tessera/superopt/generate/as_rule.h"
#include "tessera/superopt/generate/decide.h"
#include "tessera/superopt/generate/enumerate.h"
#include "tessera/support/rng.h"
#include "tessera/support/stopwatch.h"

namespace tessera::superopt {
namespace {

using Elements = std::vector<FieldA>;

/// Kind of an operator by its degree: data movement is linear in all arguments together.
enum class Degree : std::uint8_t { Movement, Contraction };

/// Pair of programs of one shape over the same inputs.
struct MutantPair {
  NamedTerm source, mutant;
  double agreement = 1;
  std::uint64_t value = 0;  // fingerprint of the mutant
};

class MutantFinder {
 public:
  MutantFinder(const Enumeration& made, const MutantOptions& options)
      : terms_(*made.terms), options_(options), values_(terms_, {.draws = 1}) {}

  std::vector<MutantPair> pairs(MutantResult& result) {
    for (TermId id = 0; id < terms_.size(); ++id) add_source(id);
    for (const auto& [key, sources] : sources_) result.sources += sources.size();
    std::vector<MutantPair> all;
    constexpr std::size_t kMostBytes = std::size_t{1} << 29, kReport = 4096;
    for (TermId id = 0; id < terms_.size(); ++id) {
      if (options_.stop != nullptr && *options_.stop) break;
      if (options_.progress && id % kReport == 0)
        options_.progress("comparing programs", id, terms_.size());
      if (values_.bytes() > kMostBytes) values_.clear();
      compare(id, result, all);
    }
    return pruned(std::move(all));
  }

 private:
  struct Source {
    NamedTerm named;
    Elements elements;
    std::uint64_t value = 0;
    int contractions = 0;
  };
  using Key = std::pair<ShapeId, std::vector<std::uint8_t>>;

  /// Degree of the operator of a term, by its values at arguments and at twice the arguments.
  Degree degree(const NamedTerm& named) {
    const Term& term = terms_[named.term];
    const auto key = std::pair(term.instance, term.op);
    if (const auto known = degrees_.find(key); known != degrees_.end()) return known->second;
    std::vector<Elements> twice;
    for (std::size_t i = 0; i < term.args; ++i) {
      const std::vector<FieldA>& elements = values_.of(terms_.arg(named, i)).elements;
      twice.emplace_back();
      for (const FieldA element : elements) twice.back().push_back(element + element);
    }
    std::vector<std::span<const FieldA>> arguments(twice.begin(), twice.end());
    const auto scaled = values_.replayed(*term.instance, arguments);
    const Elements plain = values_.of(named).elements;
    bool linear = scaled[term.result].elements.size() == plain.size();
    for (std::size_t i = 0; linear && i < plain.size(); ++i)
      linear = scaled[term.result].elements[i].word() == (plain[i] + plain[i]).word();
    return degrees_[key] = linear ? Degree::Movement : Degree::Contraction;
  }

  bool is_variable(const NamedTerm& named) const {
    return terms_[named.term].op == Term::kVariable;
  }
  bool is_like(const NamedTerm& named) const {
    return is_variable(named) && terms_.set().inputs[terms_.kind(named.naming[0])].like;
  }

  int contractions(const NamedTerm& named) {
    if (is_variable(named)) return 0;
    int count = degree(named) == Degree::Contraction ? 1 : 0;
    for (std::size_t i = 0; i < terms_[named.term].args; ++i)
      count += contractions(terms_.arg(named, i));
    return count;
  }

  /// Whether a program is what a model computes: contractions, and joins of several tensors.
  bool is_plain(const NamedTerm& named) {
    if (is_variable(named)) return true;
    const Term& term = terms_[named.term];
    for (std::size_t i = 0; i < term.args; ++i) {
      const NamedTerm arg = terms_.arg(named, i);
      if (is_like(arg) || !is_plain(arg)) return false;
      // Operands that are the same are an instance of others.
      for (std::size_t other = 0; other < i; ++other)
        if (terms_.arg(named, other) == arg) return false;
    }
    return term.args > 1 || degree(named) == Degree::Contraction;
  }

  /// Inputs that are read, in order.
  std::vector<std::uint8_t> inputs_of(const NamedTerm& named) const {
    std::vector<std::uint8_t> inputs;
    for (std::size_t i = 0; i < terms_[named.term].variables; ++i) {
      const std::uint8_t variable = named.naming[i];
      if (!terms_.set().inputs[terms_.kind(variable)].like) inputs.push_back(variable);
    }
    std::ranges::sort(inputs);
    return inputs;
  }

  void add_source(TermId id) {
    const NamedTerm named{id, terms_[id].own};
    if (is_variable(named) || !is_plain(named)) return;
    const int count = contractions(named);
    if (count == 0) return;
    const Value<FieldA>& value = values_.of(named);
    if (value.elements.empty()) return;
    sources_[{terms_[id].shape, inputs_of(named)}].push_back(
        {named, value.elements, value.fingerprint, count});
  }

  /// Share of positions at which two values are equal and not zero, among those where one is not.
  double agreement(const Elements& a, const Elements& b) const {
    constexpr std::size_t kPositions = 16;
    const auto is_zero = [](FieldA element) { return element.word() == FieldA().word(); };
    Rng rng(1);
    bool promising = a.size() <= kPositions;
    for (std::size_t i = 0; i < kPositions && !promising; ++i) {
      const std::size_t at = rng.below(a.size());
      promising = a[at].word() == b[at].word() && !is_zero(a[at]);
    }
    if (!promising) return 0;
    std::size_t equal = 0, all = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (is_zero(a[i]) && is_zero(b[i])) continue;
      ++all;
      equal += a[i].word() == b[i].word() ? 1 : 0;
    }
    return all == 0 ? 0 : static_cast<double>(equal) / static_cast<double>(all);
  }

  void compare(TermId id, MutantResult& result, std::vector<MutantPair>& all) {
    const Term& term = terms_[id];
    if (term.op == Term::kVariable) return;
    for (const Naming& naming : terms_.namings(term, true)) {
      const NamedTerm named{id, naming};
      const auto found = sources_.find({term.shape, inputs_of(named)});
      if (found == sources_.end()) return;
      const int count = contractions(named);
      if (count == 0) return;
      const Value<FieldA>& value = values_.of(named);
      if (value.elements.empty()) return;
      for (const Source& source : found->second) {
        if (source.named == named || count > source.contractions) continue;
        ++result.compared;
        const double share = agreement(source.elements, value.elements);
        if (share < options_.least_agreement || shares_part(source.named, named)) continue;
        all.push_back({source.named, named, share, value.fingerprint});
      }
    }
  }

  bool contains(const NamedTerm& whole, const NamedTerm& part) const {
    if (whole == part) return true;
    for (std::size_t i = 0; i < terms_[whole.term].args; ++i)
      if (contains(terms_.arg(whole, i), part)) return true;
    return false;
  }

  /// Whether one side is part of the other, or both apply one operator to a common part: then a
  /// smaller pair says the same.
  bool shares_part(const NamedTerm& source, const NamedTerm& mutant) const {
    if (contains(mutant, source) || contains(source, mutant)) return true;
    const Term &a = terms_[source.term], &b = terms_[mutant.term];
    if (a.op != b.op || a.result != b.result) return false;
    for (std::size_t i = 0; i < a.args; ++i)
      if (const NamedTerm arg = terms_.arg(source, i);
          !is_variable(arg) && arg == terms_.arg(mutant, i))
        return true;
    // The other arguments are inputs: the pair is about what differs.
    std::size_t differing = 0;
    for (std::size_t i = 0; i < a.args; ++i)
      differing += terms_.arg(source, i) == terms_.arg(mutant, i) ? 0 : 1;
    return differing <= 1;
  }

  /// The smallest programs of each value, for each source.
  std::vector<MutantPair> pruned(std::vector<MutantPair> all) {
    constexpr std::size_t kAlike = 12;
    std::ranges::stable_sort(all, {}, [&](const MutantPair& pair) {
      return std::tuple(terms_[pair.source.term].ops, pair.source, terms_[pair.mutant.term].ops,
                        pair.mutant);
    });
    std::map<std::pair<NamedTerm, std::uint64_t>, std::size_t> known;
    std::vector<MutantPair> kept;
    for (const MutantPair& pair : all)
      if (known[{pair.source, pair.value}]++ < kAlike) kept.push_back(pair);
    return kept;
  }

  const Terms& terms_;
  const MutantOptions& options_;
  Values<FieldA> values_;
  std::map<std::pair<const Instance*, std::uint16_t>, Degree> degrees_;
  std::map<Key, std::vector<Source>> sources_;
};

/// `conv_concat_to_conv`: the operators of the source and of the mutant, outermost first.
std::string operators_in(const Terms& terms, const NamedTerm& named) {
  const Term& term = terms[named.term];
  if (term.op == Term::kVariable) return {};
  std::string name = terms.set().operators[term.op].name;
  for (std::size_t i = 0; i < term.args; ++i)
    if (const std::string inner = operators_in(terms, terms.arg(named, i)); !inner.empty())
      name += "_" + inner;
  return name;
}

/// `unfold_rows(conv(fold_rows(x), k))`
std::string call_text(const Terms& terms, const NamedTerm& named) {
  const Term& term = terms[named.term];
  if (term.op == Term::kVariable) return terms.name(named.naming[0]);
  std::string arguments;
  for (std::size_t i = 0; i < term.args; ++i) {
    const NamedTerm arg = terms.arg(named, i);
    const bool like =
        terms[arg.term].op == Term::kVariable && terms.set().inputs[terms.kind(arg.naming[0])].like;
    if (!like) arguments += (arguments.empty() ? "" : ", ") + call_text(terms, arg);
  }
  return fmt::format("{}({})", terms.set().operators[term.op].name, arguments);
}

/// A graph over the inputs that `stands_for` keeps, in place of those that only tell sizes.
Expected<Graph> over_inputs(const Graph& graph, const std::vector<std::size_t>& stands_for) {
  GraphBuilder out;
  Vals kept(graph.inputs().size()), inputs;
  for (std::size_t i = 0; i < kept.size(); ++i)
    if (const ValueId id = graph.inputs()[i]; stands_for[i] == i)
      kept[i] = out.input(graph.name(id), {.type = graph.type(id)});
  for (const std::size_t i : stands_for) inputs.push_back(kept[i]);
  return out.finish(out.inlined(graph, inputs));
}

/// The rule with an input of the source in place of one that only tells the same sizes.
rules::Rule without_likes(const Terms& terms, const MutantPair& pair, const rules::Rule& rule) {
  const std::vector<std::uint8_t> variables = variables_of(terms, {pair.source, pair.mutant});
  const auto declared = [&](std::size_t i) -> const OperatorSet::Input& {
    return terms.set().inputs[terms.kind(variables[i])];
  };
  std::vector<std::size_t> stands_for(variables.size());
  bool any = false;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    stands_for[i] = i;
    if (!declared(i).like) continue;
    for (std::size_t other = 0; other < variables.size(); ++other)
      if (!declared(other).like && declared(other).type == declared(i).type) stands_for[i] = other;
    any = any || stands_for[i] != i;
  }
  auto source = over_inputs(rule.source, stands_for), target = over_inputs(rule.target, stands_for);
  if (!any || !source || !target) return rule;
  rules::Rule made = rule;
  made.source = *std::move(source);
  made.target = *std::move(target);
  return made;
}

/// The rule with the sizes that the set declares its inputs with: inputs of one size share a
/// symbol.
std::optional<rules::Rule> with_sizes_of_set(const Terms& terms, const MutantPair& pair,
                                             const rules::Rule& rule) {
  Sizes sizes;
  for (const std::uint8_t variable : variables_of(terms, {pair.source, pair.mutant})) {
    const OperatorSet::Input& input = terms.set().inputs[terms.kind(variable)];
    for (std::size_t axis = 0; axis < input.general.size(); ++axis) {
      const Dim& declared = (*input.type.shape)[axis];
      const auto linear = input.general[axis].linear_in("_");
      if (declared.constant() || !linear) continue;
      sizes.emplace(fmt::format("{}.{}", terms.name(variable), axis),
                    floor_div(declared - linear->rest, linear->factor));
    }
  }
  auto source = prove::with_sizes(rule.source, sizes),
       target = prove::with_sizes(rule.target, sizes);
  if (!source || !target) return std::nullopt;
  rules::Rule made = rule;
  made.source = *std::move(source);
  made.target = *std::move(target);
  return made;
}

/// Region and proof of a rule whose target is a mutant.
std::optional<FoundMutant> corrected(const rules::Rule& rule, const std::atomic<bool>* stop) {
  FoundMutant found;
  Stopwatch watch;
  const auto region = region_of(rule.source, rule.target, {.stop = stop});
  found.region_seconds = watch.seconds();
  if (!region) return std::nullopt;
  watch = Stopwatch();
  auto corrected = corrected_rule(*region, {.stop = stop});
  found.proof_seconds = watch.seconds();
  if (!corrected) return std::nullopt;
  found.agreement = region->agreement;
  found.corrected = *std::move(corrected);
  return found;
}

/// Whether sizes are asked for that the source leaves open.
bool equates_sizes(const rules::Rule& rule) {
  return std::ranges::any_of(rule.guard, [](const Condition& condition) {
    return condition.kind == Condition::Kind::Equal;
  });
}

/// Region and proof of a pair, as general as there is a proof; none where its differences are no
/// boxes.
std::optional<FoundMutant> decided(const Terms& terms, const MutantPair& pair,
                                   const std::atomic<bool>* stop) {
  std::vector<rules::Rule> forms;
  for (const Form form : {Form::General, Form::Declared}) {
    const auto rule = as_rule(terms, {.source = {pair.source}, .target = {pair.mutant}}, form);
    if (!rule) return std::nullopt;
    forms.push_back(renamed(without_likes(terms, pair, *rule)));
    if (form == Form::General) continue;
    if (auto other = with_sizes_of_set(terms, pair, without_likes(terms, pair, *rule)))
      forms.push_back(*std::move(other));
  }
  std::optional<FoundMutant> best;
  for (std::size_t i = 0; i < forms.size(); ++i) {
    std::optional<FoundMutant> found = corrected(forms[i], stop);
    if (!found || (equates_sizes(found->corrected.rule) && i + 1 < forms.size())) continue;
    if (std::holds_alternative<prove::Proved>(found->corrected.verdict)) return found;
    if (!best) best = std::move(found);
  }
  return best;
}

}  // namespace

Expected<MutantResult> find_mutants(const OperatorSet& set, const MutantOptions& options) {
  const Stopwatch watch;
  TESSERA_TRY(const Enumeration made, enumerate(set, enumerate_options(options, "programs")));
  MutantResult result;
  result.graphs = made.terms->size() - set.inputs.size();
  const std::vector<MutantPair> pairs = MutantFinder(made, options).pairs(result);
  result.candidates = pairs.size();
  result.enumeration_seconds = watch.seconds();

  std::vector<std::optional<FoundMutant>> found(pairs.size());
  std::atomic<std::size_t> done = 0;
  parallel_for(pairs.size(), options.threads, [&](std::size_t i) {
    if (options.stop != nullptr && *options.stop) return;
    found[i] = decided(*made.terms, pairs[i], options.stop);
    const std::size_t number = ++done;
    if (options.progress && options.threads == 1)
      options.progress("regions and proofs", number, pairs.size());
  });
  std::map<std::string, int> names;
  std::set<std::string> texts;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (!found[i]) {
      ++result.without_region;
      continue;
    }
    rules::Rule& rule = found[i]->corrected.rule;
    if (!texts.insert(rules::to_text(rule)).second) continue;
    const std::string name = operators_in(*made.terms, pairs[i].source) + "_as_" +
                             operators_in(*made.terms, pairs[i].mutant);
    const int number = ++names[name];
    rule.name = number == 1 ? name : fmt::format("{}_{}", name, number);
    rule.about = fmt::format("{} as {}", call_text(*made.terms, pairs[i].source),
                             call_text(*made.terms, pairs[i].mutant));
    rule.found = "by enumeration";
    result.mutants.push_back(*std::move(found[i]));
  }
  std::ranges::stable_sort(result.mutants, {}, [](const FoundMutant& mutant) {
    return mutant.corrected.verdict.index();
  });
  result.seconds = watch.seconds();
  return result;
}

}  // namespace tessera::superopt
