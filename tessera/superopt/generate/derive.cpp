#include "tessera/superopt/generate/derive.h"

#include <algorithm>
#include <optional>

#include "tessera/support/hash.h"

namespace tessera::superopt {
namespace {

std::uint32_t root_of(const Term& term) {
  return term.op * 16U + term.result;
}

/// Term or instantiated pattern: its value and structure.
struct DerivedTerm {
  const Value<FieldA>* value = nullptr;  // null: it does not fit, or is undefined
  ShapeId shape = 0;
  std::uint64_t node = 0, structure = 0;
  std::size_t size = 0;  // operators, counted wherever they are
  bool like = false;     // an input of which only the sizes are read
  // Terms with the same fingerprint.
  std::optional<std::pair<std::size_t, std::size_t>> alike = {};
  std::unique_ptr<Value<FieldA>> own = {};
};

/// Substitution of pattern variables.
using Bound = std::vector<std::pair<std::uint8_t, DerivedTerm*>>;

}  // namespace

/// One-step rewriting of terms. Fingerprints decide which subterms are equal; equality below the
/// root is attributed to smaller candidates.
class OneStepRewriter {
 public:
  explicit OneStepRewriter(const Enumeration& made)
      : made_(made),
        terms_(*made.terms),
        values_(terms_, {.draws = kDraws, .base = made.values.get()}) {}

  bool meet(const Derivations& known, const Candidate& candidate, Derivations::Attempt& attempt) {
    constexpr std::size_t kMostBytes = std::size_t{128} << 20;
    if (bytes_ + values_.bytes() > kMostBytes) forget();
    attempt_ = &attempt;
    met_ = false;
    const NamedTerm starts[] = {candidate.source[0], candidate.target[0]};
    if (attempt.total == 0) {
      attempt.total = of(starts[0]).size + of(starts[1]).size;
      for (side_ = 0; side_ < 2; ++side_) reach(of(starts[side_]));
    }
    for (side_ = 0; side_ < 2 && !met_; ++side_) {
      const NamedTerm& start = starts[side_];
      const auto found = known.by_root_.find(root_of(terms_[start.term]));
      if (found == known.by_root_.end()) continue;
      start_ = &of(start);
      for (auto at = std::ranges::lower_bound(found->second, attempt.seen);
           at != found->second.end() && !met_; ++at) {
        const Derivations::Pattern& pattern = known.patterns_[*at];
        bound_.clear();
        matches_left_ = kMostMatches;
        match_args(pattern.from, start, 0, [&] { step(pattern.to); });
      }
    }
    attempt.seen = known.patterns_.size();
    return met_;
  }

 private:
  using Then = std::function<void()>;

  /// Limit on matches of one pattern with one term. Deep patterns match in as many ways as there
  /// are equal terms at each operator; a candidate that is not derived within the limit is kept.
  static constexpr int kMostMatches = 4'000;

  void forget() {
    of_terms_.clear();
    instantiated_.clear();
    values_.clear();
    bytes_ = 0;
  }

  DerivedTerm& of(const NamedTerm& named) {
    const auto [it, added] = of_terms_.try_emplace(named);
    DerivedTerm& made = it->second;
    if (!added) return made;
    const Term& term = terms_[named.term];
    made.value = &values_.of(named);
    made.shape = term.shape;
    made.structure = terms_.structure(named);
    bytes_ += 256;
    if (term.op == Term::kVariable) {
      made.node = named.naming[0];
      made.like = terms_.set().inputs[terms_.kind(named.naming[0])].like;
      return made;
    }
    std::vector<std::uint64_t> args;
    made.size = 1;
    for (std::size_t i = 0; i < term.args; ++i) {
      const DerivedTerm& arg = of(terms_.arg(named, i));
      args.push_back(arg.value->fingerprint);
      made.size += arg.size;
    }
    made.node = node_hash(term.op, term.result, term.instance->commutes, args);
    return made;
  }

  /// All ways in which the arguments of a pattern, from number `i` on, stand for those of a term.
  void match_args(const NamedTerm& pattern, const NamedTerm& term, std::size_t i,
                  const Then& then) {
    if (met_) return;
    if (i == terms_[pattern.term].args) return then();
    const NamedTerm part = terms_.arg(pattern, i), arg = terms_.arg(term, i);
    match(part, arg, [&] { match_args(pattern, term, i + 1, then); });
    if (i == 0 && terms_[pattern.term].args == 2 && terms_[term.term].instance->commutes) {
      match(part, terms_.arg(term, 1), [&] { match(terms_.arg(pattern, 1), arg, then); });
    }
  }

  void match(const NamedTerm& pattern, const NamedTerm& term, const Then& then) {
    if (matches_left_-- <= 0) return;
    const Term& wanted = terms_[pattern.term];
    DerivedTerm& made = of(term);
    if (wanted.op == Term::kVariable) {
      const std::uint8_t variable = pattern.naming[0];
      if (terms_.set().inputs[terms_.kind(variable)].like != made.like) return;
      // A rule speaks of inputs of some rank.
      const Instances& instances = terms_.instances();
      if (instances.shape(wanted.shape).size() != instances.shape(made.shape).size()) return;
      const auto it = std::ranges::find(bound_, variable, &Bound::value_type::first);
      if (it != bound_.end()) {
        if (it->second->value->fingerprint == made.value->fingerprint) then();
        return;
      }
      bound_.emplace_back(variable, &made);
      then();
      bound_.pop_back();
      return;
    }
    if (!made.alike) {
      const auto range =
          std::ranges::equal_range(made_.entries, made.value->fingerprint, {}, &Entry::value);
      made.alike = {static_cast<std::size_t>(range.begin() - made_.entries.begin()),
                    static_cast<std::size_t>(range.end() - made_.entries.begin())};
    }
    const auto [begin, end] = *made.alike;
    if (begin == end) {
      if (root_of(terms_[term.term]) == root_of(wanted)) match_args(pattern, term, 0, then);
      return;
    }
    // Limit on equal terms that are tried, smallest first; a candidate that is not derived within
    // it is kept.
    constexpr std::size_t kMostAlike = 64;
    std::size_t tried = 0;
    for (std::size_t i = begin; i < end && tried < kMostAlike && !met_; ++i) {
      const NamedTerm& node = made_.entries[i].named;
      if (root_of(terms_[node.term]) != root_of(wanted)) continue;
      match_args(pattern, node, 0, then);
      ++tried;
    }
  }

  void step(const NamedTerm& to) {
    if (terms_[to.term].op == Term::kVariable) {
      const DerivedTerm& left = *bound(to.naming[0]);
      if (left.size < start_->size && left.value->fingerprint == start_->value->fingerprint)
        met_ = true;
      return;
    }
    const DerivedTerm& made = *instantiated(to);
    if (made.value != nullptr && made.value->fingerprint == start_->value->fingerprint) reach(made);
  }

  DerivedTerm* bound(std::uint8_t variable) const {
    return std::ranges::find(bound_, variable, &Bound::value_type::first)->second;
  }

  /// Adds a reached term; the sides meet where they are the same graph, or equal by smaller
  /// equations.
  void reach(const DerivedTerm& made) {
    Derivations::ReachableTerms& own = attempt_->sides[side_];
    const Derivations::ReachableTerms& other = attempt_->sides[1 - side_];
    if (!own.structures.insert(made.structure).second) return;
    std::size_t& size = own.nodes.try_emplace(made.node, made.size).first->second;
    size = std::min(size, made.size);
    const auto same = other.nodes.find(made.node);
    met_ = met_ || (same != other.nodes.end() && size + same->second < attempt_->total + 2) ||
           other.structures.contains(made.structure);
  }

  /// A pattern with its variables replaced.
  DerivedTerm* instantiated(const NamedTerm& pattern) {
    const Term& term = terms_[pattern.term];
    if (term.op == Term::kVariable) return bound(pattern.naming[0]);
    std::vector<DerivedTerm*> args;
    Hasher operation;
    operation.add(term.op);
    for (std::size_t i = 0; i < term.args; ++i) {
      args.push_back(instantiated(terms_.arg(pattern, i)));
      operation.add(args.back()->structure);
    }
    const std::uint64_t structure = Terms::structure(term, operation.value());
    const auto [it, added] = instantiated_.try_emplace(structure);
    DerivedTerm& made = it->second;
    if (!added) return &made;
    made.structure = structure;
    made.size = 1;
    std::vector<ShapeId> shapes;
    std::vector<std::uint64_t> looks;
    std::vector<std::span<const FieldA>> inputs;
    for (const DerivedTerm* arg : args) {
      if (arg->value == nullptr || arg->value->elements.empty()) return &made;
      shapes.push_back(arg->shape);
      looks.push_back(arg->value->fingerprint);
      inputs.emplace_back(arg->value->elements);
      made.size += arg->size;
    }
    const Instance* instance = terms_.instances().find(term.op, shapes);
    if (instance == nullptr) return &made;
    made.shape = instance->results[term.result];
    made.node = node_hash(term.op, term.result, instance->commutes, looks);
    made.own = std::make_unique<Value<FieldA>>(
        std::move(values_.replayed(*instance, inputs)[term.result]));
    made.value = made.own.get();
    bytes_ += made.own->elements.size() * sizeof(FieldA) + 256;
    return &made;
  }

  const Enumeration& made_;
  const Terms& terms_;
  Values<FieldA> values_;
  std::unordered_map<NamedTerm, DerivedTerm, NamedHash> of_terms_;
  std::unordered_map<std::uint64_t, DerivedTerm> instantiated_;
  std::size_t bytes_ = 0;

  // Of the attempt under way.
  Derivations::Attempt* attempt_ = nullptr;
  const DerivedTerm* start_ = nullptr;
  Bound bound_;
  int side_ = 0, matches_left_ = 0;
  bool met_ = false;
};

Derivations::Derivations(const Enumeration& made)
    : made_(made), workspaces_(std::make_unique<WorkspacePool<OneStepRewriter>>([&made] {
        return std::make_unique<OneStepRewriter>(made);
      })) {}
Derivations::~Derivations() = default;

bool Derivations::derivable(const Candidate& candidate, Attempt& attempt) {
  if (candidate.source.size() != 1) return false;
  return workspaces_->with(
      [&](OneStepRewriter& steps) { return steps.meet(*this, candidate, attempt); });
}

void Derivations::add(const Candidate& candidate, std::size_t number) {
  if (candidate.source.size() != 1) return;
  const auto add_one = [&](const NamedTerm& from, const NamedTerm& to) {
    const Term& term = (*made_.terms)[from.term];
    if (term.op == Term::kVariable) return;
    by_root_[root_of(term)].push_back(patterns_.size());
    patterns_.push_back({from, to, number});
  };
  add_one(candidate.source[0], candidate.target[0]);
  if (candidate.both_ways) add_one(candidate.target[0], candidate.source[0]);
}

void Derivations::remove(std::size_t number) {
  for (auto& [root, list] : by_root_)
    std::erase_if(list, [&](std::size_t i) { return patterns_[i].candidate == number; });
}

}  // namespace tessera::superopt
