#include "tessera/superopt/generate/candidates.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace tessera::superopt {
namespace {

/// Entries that look equal.
struct Group {
  std::size_t begin = 0, end = 0;
};

bool contains_all(const std::vector<std::uint8_t>& all, const std::vector<std::uint8_t>& some) {
  return std::ranges::all_of(
      some, [&](std::uint8_t v) { return std::ranges::find(all, v) != all.end(); });
}

/// A candidate as a list of operators and a list of variables. What is computed once and used twice
/// is listed twice, as it would be if its variables differed.
struct Code {
  std::vector<std::uint32_t> operators;
  std::vector<std::uint8_t> variables;
  std::size_t ops = 0;

  /// The first operator that means the same.
  static std::size_t meaning(const OperatorSet& set, std::size_t op) {
    const auto same = [&](const OperatorSet::Operator& other) {
      return other.args.size() == set.operators[op].args.size() &&
             other.body.hash() == set.operators[op].body.hash();
    };
    return static_cast<std::size_t>(std::ranges::find_if(set.operators, same) -
                                    set.operators.begin());
  }

  void add(const Terms& terms, const Named& named) {
    const Term& term = terms[named.term];
    if (term.op == Term::kVariable) {
      // Inputs of one rank are alike once their sizes are symbols.
      const auto rank = terms.instances().shape(term.shape).size();
      operators.push_back(static_cast<std::uint32_t>(1'000'000 + rank));
      variables.push_back(named.naming[0]);
      return;
    }
    operators.push_back(
        static_cast<std::uint32_t>(meaning(terms.set(), term.op) * 16 + term.result));
    ++ops;
    for (std::size_t i = 0; i < term.args; ++i) add(terms, terms.arg(named, i));
  }
};

/// Of one that holds both ways, the larger side becomes the source.
Code code_of(const Terms& terms, Candidate& candidate) {
  Code source, target;
  for (const Named& output : candidate.source) source.add(terms, output);
  for (const Named& output : candidate.target) target.add(terms, output);
  if (candidate.both_ways &&
      std::tie(source.ops, source.operators) < std::tie(target.ops, target.operators)) {
    std::swap(source, target);
    std::swap(candidate.source, candidate.target);
  }
  source.operators.insert(source.operators.end(), target.operators.begin(), target.operators.end());
  source.variables.insert(source.variables.end(), target.variables.begin(), target.variables.end());
  source.ops += target.ops;
  return source;
}

/// Whether one list of variables is another with some made equal.
bool is_special(const std::vector<std::uint8_t>& special,
                const std::vector<std::uint8_t>& general) {
  std::map<std::uint8_t, std::uint8_t> to;
  for (std::size_t i = 0; i < general.size(); ++i)
    if (to.try_emplace(general[i], special[i]).first->second != special[i]) return false;
  return true;
}

class Pairing {
 public:
  Pairing(const Enumeration& made, const EnumerateOptions& options, CandidateCounts& counts)
      : made_(made), terms_(*made.terms), options_(options), counts_(counts) {}

  std::vector<Candidate> run() {
    for (std::size_t begin = 0; begin < made_.entries.size();) {
      std::size_t end = begin + 1;
      while (end < made_.entries.size() && made_.entries[end].value == made_.entries[begin].value)
        ++end;
      const Named& first = made_.entries[begin].named;
      if (first.naming == terms_[first.term].own) {
        ++counts_.classes;
        if (end - begin > 1) groups_.push_back({begin, end});
      }
      begin = end;
    }
    std::vector<std::vector<Candidate>> found(groups_.size());
    std::vector<CandidateCounts> counts(groups_.size());
    parallel_for(groups_.size(), options_.threads, [&](std::size_t i) {
      if (options_.stop == nullptr || !*options_.stop) found[i] = of_group(groups_[i], counts[i]);
    });
    std::vector<Candidate> all;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      all.insert(all.end(), found[i].begin(), found[i].end());
      counts_.pairs += counts[i].pairs;
      counts_.congruent += counts[i].congruent;
      counts_.coincident += counts[i].coincident;
      counts_.common += counts[i].common;
    }
    join(all);
    return without_special(std::move(all));
  }

 private:
  std::vector<Candidate> of_group(const Group& group, CandidateCounts& counts) const {
    // Terms that look equal by chance look different elsewhere; each look has its own center.
    std::map<std::uint64_t, const Entry*> centers;
    std::set<std::uint64_t> nodes;
    std::vector<Candidate> found;
    for (std::size_t i = group.begin; i < group.end; ++i) {
      const Entry& entry = made_.entries[i];
      if (i > group.begin) ++counts.pairs;
      if (!nodes.insert(entry.node).second) {
        ++counts.congruent;
        continue;
      }
      const Entry*& center = centers[look_elsewhere(entry.named)];
      if (center == nullptr) {
        center = &entry;
        if (centers.size() > 1) ++counts.coincident;
        continue;
      }
      Candidate candidate{{entry.named}, {center->named}};
      const auto large = variables_of(terms_, candidate.source),
                 small = variables_of(terms_, candidate.target);
      if (!contains_all(large, small)) std::swap(candidate.source, candidate.target);
      if (!contains_all(large, small) && !contains_all(small, large)) {
        ++counts.congruent;  // equal to what has their common variables alone
        continue;
      }
      candidate.both_ways = contains_all(large, small) && contains_all(small, large);
      if (holds_without_common(candidate))
        ++counts.common;
      else
        found.push_back(std::move(candidate));
    }
    return found;
  }

  /// How a term looks in another field on other sizes, with inputs of any sign and of one.
  std::uint64_t look_elsewhere(const Named& named) const {
    using Sign = Values<FieldB>::Sign;
    std::uint64_t look = 0;
    for (const std::uint64_t seed : {2, 3})
      for (const Sign sign : {Sign::Any, Sign::Negative}) {
        if (sign == Sign::Negative && seed != 2) continue;
        Values<FieldB> values(terms_, {.sizes = 1, .seed = seed, .sign = sign});
        look = look * 0x9e3779b97f4a7c15ull + values.of(named).fingerprint;
      }
    return look;
  }

  bool agree_elsewhere(const Candidate& candidate) const {
    for (std::size_t i = 0; i < candidate.source.size(); ++i)
      if (look_elsewhere(candidate.source[i]) != look_elsewhere(candidate.target[i])) return false;
    return true;
  }

  /// All operators' results inside of a term.
  void collect(const Named& named, std::set<Named>& into) const {
    const Term& term = terms_[named.term];
    if (term.op == Term::kVariable || !into.insert(named).second) return;
    for (std::size_t i = 0; i < term.args; ++i) collect(terms_.arg(named, i), into);
  }

  /// Whether the sides are equal whatever a part that both have is: then there is a smaller rule.
  bool holds_without_common(const Candidate& candidate) const {
    std::set<Named> source, target;
    for (const Named& output : candidate.source) collect(output, source);
    for (const Named& output : candidate.target) collect(output, target);
    for (const Named& part : source) {
      if (!target.contains(part)) continue;
      Values<FieldB> values(terms_, {.sizes = 0, .seed = 3});
      values.forget_meaning(part);
      bool equal = true;
      for (std::size_t i = 0; i < candidate.source.size(); ++i)
        equal = equal &&
                values.of(candidate.source[i]).elements == values.of(candidate.target[i]).elements;
      if (equal) return true;
    }
    return false;
  }

  /// The smallest term that looks like this one.
  Named smallest(const Named& named) const {
    const auto value = looks_.find(named);
    return value == looks_.end() ? named : made_.entries[value->second].named;
  }

  /// Rules of two outputs: what two terms compute is computed at once by an operator of two results
  /// that has more variables than either.
  void join(std::vector<Candidate>& into) {
    std::vector<const Entry*> pieces;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < made_.entries.size(); ++i) {
      if (made_.entries[i].value != made_.entries[begin].value) begin = i;
      const Entry& entry = made_.entries[i];
      looks_.emplace(entry.named, begin);
      if (terms_[entry.named.term].result == 1 &&
          entry.named.naming == terms_[entry.named.term].own)
        pieces.push_back(&entry);
    }
    std::ranges::sort(pieces, {}, [](const Entry* entry) { return entry->named; });
    for (const Entry* entry : pieces) {
      const Named second = entry->named, first{second.term - 1, second.naming};
      const Named whole = terms_.arg(first, 0);
      if (smallest(whole) != whole) continue;
      Candidate candidate{{smallest(first), smallest(second)}, {first, second}};
      const auto is_operator = [&](const Named& named) {
        return terms_[named.term].op != Term::kVariable && named != first && named != second;
      };
      if (!std::ranges::all_of(candidate.source, is_operator)) continue;
      const auto all = variables_of(terms_, candidate.target);
      if (!contains_all(variables_of(terms_, candidate.source), all)) continue;
      const auto alone = [&](std::size_t i) {
        return contains_all(variables_of(terms_, {candidate.source[i]}), all);
      };
      ++counts_.pairs;
      if (alone(0) && alone(1))
        ++counts_.congruent;
      else if (!agree_elsewhere(candidate))
        ++counts_.coincident;
      else if (holds_without_common(candidate))
        ++counts_.common;
      else
        into.push_back(std::move(candidate));
    }
  }

  std::vector<Candidate> without_special(std::vector<Candidate> all) {
    struct Coded {
      Candidate candidate;
      Code code;
      std::size_t different = 0;
    };
    std::vector<Coded> coded;
    for (Candidate& candidate : all) {
      Coded made{std::move(candidate), {}, 0};
      made.code = code_of(terms_, made.candidate);
      made.different = std::set(made.code.variables.begin(), made.code.variables.end()).size();
      coded.push_back(std::move(made));
    }
    std::ranges::stable_sort(coded, [](const Coded& a, const Coded& b) {
      return std::tuple(a.candidate.source.size(), a.code.ops, b.different, a.code.operators,
                        a.code.variables) < std::tuple(b.candidate.source.size(), b.code.ops,
                                                       a.different, b.code.operators,
                                                       b.code.variables);
    });
    std::map<std::vector<std::uint32_t>, std::vector<std::vector<std::uint8_t>>> known;
    std::vector<Candidate> kept;
    for (Coded& made : coded) {
      std::vector<std::vector<std::uint8_t>>& same = known[made.code.operators];
      const bool special = std::ranges::any_of(
          same, [&](const auto& general) { return is_special(made.code.variables, general); });
      if (special) {
        ++counts_.renamed;
        continue;
      }
      same.push_back(made.code.variables);
      kept.push_back(std::move(made.candidate));
    }
    return kept;
  }

  const Enumeration& made_;
  const Terms& terms_;
  const EnumerateOptions& options_;
  CandidateCounts& counts_;
  std::vector<Group> groups_;
  std::unordered_map<Named, std::size_t, NamedHash> looks_;  // the first entry that looks the same
};

void collect_variables(const Terms& terms, const Named& named, std::vector<std::uint8_t>& into) {
  const Term& term = terms[named.term];
  if (term.op == Term::kVariable) {
    if (std::ranges::find(into, named.naming[0]) == into.end()) into.push_back(named.naming[0]);
    return;
  }
  for (std::size_t i = 0; i < term.args; ++i) collect_variables(terms, terms.arg(named, i), into);
}

}  // namespace

std::vector<std::uint8_t> variables_of(const Terms& terms, const std::vector<Named>& outputs) {
  std::vector<std::uint8_t> variables;
  for (const Named& output : outputs) collect_variables(terms, output, variables);
  return variables;
}

std::vector<Candidate> candidates(const Enumeration& made, const EnumerateOptions& options,
                                  CandidateCounts& counts) {
  return Pairing(made, options, counts).run();
}

}  // namespace tessera::superopt
