#include "tessera/superopt/generate/derive.h"

#include <algorithm>
#include <map>

#include "tessera/support/hash.h"

namespace tessera::superopt {
namespace {

/// One side of a candidate, as a pattern for the other.
struct Pattern {
  Named from, to;
  std::size_t candidate = 0;
};

/// What the variables of a pattern stand for.
using Bound = std::map<std::uint8_t, Named>;

/// Finds what one step makes of a term. The values of terms tell which are equal; what is equal
/// below the root is taken to be so by smaller candidates.
class Steps {
 public:
  Steps(const Enumeration& made, const std::unordered_map<Named, std::size_t, NamedHash>& looks)
      : made_(made),
        terms_(*made.terms),
        looks_(looks),
        values_(terms_, {.base = made.values.get()}) {}

  /// The looks of the nodes that patterns make of a term; whether one makes a term inside of it.
  struct Reached {
    std::map<std::uint64_t, std::size_t> nodes;  // with the operators of the smallest that has it
    std::set<std::uint64_t> structures;
    bool smaller = false;

    void add(std::uint64_t node, std::size_t size, std::uint64_t structure) {
      structures.insert(structure);
      const auto [it, added] = nodes.try_emplace(node, size);
      if (!added) it->second = std::min(it->second, size);
    }
  };
  using ByRoot = std::map<std::uint32_t, std::vector<Pattern>>;

  static std::uint32_t root_of(const Term& term) { return term.op * 16U + term.result; }

  /// How many operators a term has, counted wherever they are.
  std::size_t size_of(const Named& named) const {
    const Term& term = terms_[named.term];
    std::size_t size = term.op == Term::kVariable ? 0 : 1;
    for (std::size_t i = 0; i < term.args; ++i) size += size_of(terms_.arg(named, i));
    return size;
  }

  /// Equations that are used below the root are of fewer than `limit` operators.
  Reached from(const Named& start, const ByRoot& patterns, std::size_t limit) {
    limit_ = limit;
    Reached reached;
    reached.add(node_of(start), size_of(start), terms_.structure(start));
    const auto found = patterns.find(root_of(terms_[start.term]));
    if (found == patterns.end()) return reached;
    const std::uint64_t value = values_.of(start).fingerprint;
    for (const Pattern& pattern : found->second) {
      Bound bound;
      match_args(pattern.from, start, 0, bound,
                 [&] { step(pattern.to, bound, value, size_of(start), reached); });
      if (reached.smaller) break;
    }
    return reached;
  }

  void clear() { values_.clear(); }

 private:
  using Then = std::function<void()>;

  /// All ways in which the arguments of a pattern, from number `i` on, stand for those of a term.
  void match_args(const Named& pattern, const Named& term, std::size_t i, Bound& bound,
                  const Then& then) {
    if (i == terms_[pattern.term].args) return then();
    const Named part = terms_.arg(pattern, i), arg = terms_.arg(term, i);
    match(part, arg, bound, [&] { match_args(pattern, term, i + 1, bound, then); });
    if (i == 0 && terms_[pattern.term].args == 2 && commutes(term)) {
      match(part, terms_.arg(term, 1), bound,
            [&] { match(terms_.arg(pattern, 1), arg, bound, then); });
    }
  }

  void match(const Named& pattern, const Named& term, Bound& bound, const Then& then) {
    const Term& wanted = terms_[pattern.term];
    if (wanted.op == Term::kVariable) {
      if (terms_.set().inputs[terms_.kind(pattern.naming[0])].like !=
          (terms_[term.term].op == Term::kVariable &&
           terms_.set().inputs[terms_.kind(term.naming[0])].like))
        return;
      // A rule speaks of inputs of some rank.
      const Instances& instances = terms_.instances();
      if (instances.shape(wanted.shape).size() != instances.shape(terms_[term.term].shape).size())
        return;
      const auto [it, added] = bound.try_emplace(pattern.naming[0], term);
      if (added || values_.of(it->second).fingerprint == values_.of(term).fingerprint) then();
      if (added) bound.erase(pattern.naming[0]);
      return;
    }
    const auto try_node = [&](const Named& node) {
      if (root_of(terms_[node.term]) == root_of(wanted)) match_args(pattern, node, 0, bound, then);
    };
    const auto found = looks_.find(term);
    if (found == looks_.end()) return try_node(term);
    const std::uint64_t value = made_.entries[found->second].value;
    for (std::size_t i = found->second; i < made_.entries.size() && made_.entries[i].value == value;
         ++i)
      try_node(made_.entries[i].named);
  }

  bool commutes(const Named& named) const { return instance_of(named)->commutes; }
  const Instance* instance_of(const Named& named) const {
    std::vector<ShapeId> shapes;
    for (std::size_t i = 0; i < terms_[named.term].args; ++i)
      shapes.push_back(terms_[terms_.arg(named, i).term].shape);
    return terms_.instances().find(terms_[named.term].op, shapes);
  }

  struct Made {
    Value<FieldA> value;
    ShapeId shape = 0;
    std::uint64_t node = 0;
    std::size_t size = 0;
    std::uint64_t structure = 0;
  };

  void step(const Named& to, const Bound& bound, std::uint64_t value, std::size_t size,
            Reached& reached) {
    if (terms_[to.term].op == Term::kVariable) {
      const Named& left = bound.at(to.naming[0]);
      if (size_of(left) < size && values_.of(left).fingerprint == value) reached.smaller = true;
      return;
    }
    const std::optional<Made> made = instantiated(to, bound);
    if (made && made->value.fingerprint == value)
      reached.add(made->node, made->size, made->structure);
  }

  /// A pattern with its variables replaced.
  std::optional<Made> instantiated(const Named& pattern, const Bound& bound) {
    const Term& term = terms_[pattern.term];
    if (term.op == Term::kVariable) {
      const Named& named = bound.at(pattern.naming[0]);
      return Made{values_.of(named), terms_[named.term].shape, 0, size_of(named),
                  terms_.structure(named)};
    }
    std::vector<Made> args;
    std::vector<ShapeId> shapes;
    std::vector<std::uint64_t> looks;
    std::size_t size = 1;
    Hasher structure;
    structure.add(term.op);
    for (std::size_t i = 0; i < term.args; ++i) {
      std::optional<Made> arg = instantiated(terms_.arg(pattern, i), bound);
      if (!arg || arg->value.elements.empty()) return std::nullopt;
      shapes.push_back(arg->shape);
      looks.push_back(arg->value.fingerprint);
      size += arg->size;
      structure.add(arg->structure);
      args.push_back(*std::move(arg));
    }
    const Instance* instance = terms_.instances().find(term.op, shapes);
    if (instance == nullptr) return std::nullopt;
    std::vector<std::span<const FieldA>> inputs;
    for (const Made& arg : args) inputs.emplace_back(arg.value.elements);
    auto values = values_.replayed(*instance, inputs);
    Hasher whole;  // as Terms::structure has it
    whole.add(structure.value());
    whole.add(term.result);
    return Made{std::move(values[term.result]), instance->results[term.result],
                node_hash(term.op, term.result, instance->commutes, std::move(looks)), size,
                whole.value()};
  }

  std::uint64_t node_of(const Named& named) {
    const Term& term = terms_[named.term];
    if (term.op == Term::kVariable) return named.naming[0];
    std::vector<std::uint64_t> looks;
    for (std::size_t i = 0; i < term.args; ++i)
      looks.push_back(values_.of(terms_.arg(named, i)).fingerprint);
    return node_hash(term.op, term.result, commutes(named), std::move(looks));
  }

  const Enumeration& made_;
  const Terms& terms_;
  const std::unordered_map<Named, std::size_t, NamedHash>& looks_;
  Values<FieldA> values_;
  std::size_t limit_ = 0;
};

}  // namespace

std::vector<std::size_t> underivable(const Enumeration& made, const std::vector<Candidate>& all,
                                     const std::set<std::size_t>& excluded,
                                     const EnumerateOptions& options) {
  const Terms& terms = *made.terms;
  std::unordered_map<Named, std::size_t, NamedHash> looks;
  for (std::size_t i = 0, begin = 0; i < made.entries.size(); ++i) {
    if (made.entries[i].value != made.entries[begin].value) begin = i;
    looks.emplace(made.entries[i].named, begin);
  }
  Steps::ByRoot patterns;
  const auto add = [&](std::size_t number) {
    const Candidate& candidate = all[number];
    if (candidate.source.size() != 1) return;
    const auto add_one = [&](const Named& from, const Named& to) {
      if (terms[from.term].op != Term::kVariable)
        patterns[Steps::root_of(terms[from.term])].push_back({from, to, number});
    };
    add_one(candidate.source[0], candidate.target[0]);
    if (candidate.both_ways) add_one(candidate.target[0], candidate.source[0]);
  };
  const auto derivable = [&](const Candidate& candidate) {
    if (candidate.source.size() != 1) return false;
    Steps steps(made, looks);
    const std::size_t total =
        steps.size_of(candidate.source[0]) + steps.size_of(candidate.target[0]);
    const auto source = steps.from(candidate.source[0], patterns, total);
    if (source.smaller) return true;
    const auto target = steps.from(candidate.target[0], patterns, total);
    const auto is_known = [&](std::uint64_t one) { return source.structures.contains(one); };
    return target.smaller || std::ranges::any_of(target.structures, is_known) ||
           std::ranges::any_of(target.nodes, [&](const auto& node) {
             const auto other = source.nodes.find(node.first);
             return other != source.nodes.end() && node.second + other->second < total + 2;
           });
  };
  // Batches are looked at in parallel with what was kept before them, then one by one.
  constexpr std::size_t kBatch = 64;
  std::vector<std::size_t> kept;
  for (std::size_t start = 0; start < all.size(); start += kBatch) {
    const std::size_t count = std::min(kBatch, all.size() - start);
    std::vector<std::uint8_t> dropped(count);
    parallel_for(count, options.threads, [&](std::size_t i) {
      if (options.stop != nullptr && *options.stop) return;
      dropped[i] = excluded.contains(start + i) || derivable(all[start + i]) ? 1 : 0;
    });
    bool more = false;
    for (std::size_t i = 0; i < count; ++i) {
      if (dropped[i] != 0 || (more && derivable(all[start + i]))) continue;
      kept.push_back(start + i);
      add(start + i);
      more = true;
    }
    if (options.progress) options.progress(0, start + count, all.size());
  }
  return kept;
}

}  // namespace tessera::superopt
