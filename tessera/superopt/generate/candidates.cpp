#include "tessera/superopt/generate/candidates.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "tessera/superopt/generate/workspace_pool.h"

namespace tessera::superopt {
namespace {

/// Entries with equal fingerprints.
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

  /// First operator of the set with the same meaning.
  static std::size_t meaning(const OperatorSet& set, std::size_t op) {
    const auto same = [&](const OperatorSet::Operator& other) {
      return other.args.size() == set.operators[op].args.size() &&
             other.body.hash() == set.operators[op].body.hash();
    };
    return static_cast<std::size_t>(std::ranges::find_if(set.operators, same) -
                                    set.operators.begin());
  }

  void add(const Terms& terms, const NamedTerm& named) {
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
  for (const NamedTerm& output : candidate.source) source.add(terms, output);
  for (const NamedTerm& output : candidate.target) target.add(terms, output);
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

/// Whether one list of variables is another with some unified.
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
      : made_(made), terms_(*made.terms), options_(options), counts_(counts), workspaces_([this] {
          return std::make_unique<Workspace>(terms_);
        }) {}

  std::vector<Candidate> run() {
    for (std::size_t begin = 0; begin < made_.entries.size();) {
      std::size_t end = begin + 1;
      while (end < made_.entries.size() && made_.entries[end].value == made_.entries[begin].value)
        ++end;
      const NamedTerm& first = made_.entries[begin].named;
      if (first.naming == terms_[first.term].own) {
        ++counts_.classes;
        if (end - begin > 1) groups_.push_back({begin, end});
      }
      begin = end;
    }
    std::vector<std::vector<Candidate>> found(groups_.size());
    std::vector<CandidateCounts> counts(groups_.size());
    constexpr std::size_t kShare = 256;
    std::atomic<std::size_t> done = 0;
    std::mutex mutex;
    parallel_for((groups_.size() + kShare - 1) / kShare, options_.threads, [&](std::size_t share) {
      const std::size_t end = std::min(groups_.size(), (share + 1) * kShare);
      workspaces_.with([&](Workspace& at) {
        for (std::size_t i = share * kShare; i < end; ++i)
          if (options_.stop == nullptr || !*options_.stop)
            found[i] = of_group(at, groups_[i], counts[i]);
      });
      done += end - share * kShare;
      if (!options_.progress) return;
      const std::lock_guard lock(mutex);
      options_.progress(0, done, groups_.size());
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
  /// Workspace of a thread: values on the first sizes, and in another field on other sizes.
  struct Workspace {
    explicit Workspace(const Terms& terms)
        : here(terms, {.sizes = 0, .seed = 3, .draws = 2}),
          elsewhere(terms, {.sizes = 1, .seed = 2, .draws = 3}) {}
    void tidy() {
      constexpr std::size_t kMostBytes = std::size_t{64} << 20;
      for (Values<FieldB>* values : {&here, &elsewhere})
        if (values->bytes() > kMostBytes) values->clear();
    }
    Values<FieldB> here, elsewhere;
  };

  std::vector<Candidate> of_group(Workspace& at, const Group& group,
                                  CandidateCounts& counts) const {
    at.tidy();
    // Separates terms whose fingerprints collide by chance, by their values elsewhere; each group
    // has its own representative.
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
      const Entry*& center = centers[at.elsewhere.fingerprint(entry.named)];
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
      if (holds_without_common(at, candidate))
        ++counts.common;
      else
        found.push_back(std::move(candidate));
    }
    return found;
  }

  static bool agree_elsewhere(Workspace& at, const Candidate& candidate) {
    return std::ranges::equal(candidate.source, candidate.target, [&](auto& a, auto& b) {
      return at.elsewhere.fingerprint(a) == at.elsewhere.fingerprint(b);
    });
  }

  /// All operators' results inside of a term.
  void collect(const NamedTerm& named, std::set<NamedTerm>& into) const {
    const Term& term = terms_[named.term];
    if (term.op == Term::kVariable || !into.insert(named).second) return;
    for (std::size_t i = 0; i < term.args; ++i) collect(terms_.arg(named, i), into);
  }

  /// Whether the sides are equal for any value of a common subterm: then there is a smaller rule.
  bool holds_without_common(Workspace& at, const Candidate& candidate) const {
    std::set<NamedTerm> source, target;
    for (const NamedTerm& output : candidate.source) collect(output, source);
    for (const NamedTerm& output : candidate.target) collect(output, target);
    for (const NamedTerm& part : source) {
      if (!target.contains(part)) continue;
      Values<FieldB> values(terms_, {.sizes = 0, .seed = 3, .draws = 2, .others = &at.here});
      values.forget_meaning(part);
      if (std::ranges::equal(candidate.source, candidate.target, [&](auto& a, auto& b) {
            return values.fingerprint(a) == values.fingerprint(b);
          }))
        return true;
    }
    return false;
  }

  /// Smallest term with the same fingerprint.
  NamedTerm smallest(Values<FieldA>& values, const NamedTerm& named) const {
    const std::uint64_t look = values.fingerprint(named);
    const auto first = std::ranges::lower_bound(made_.entries, look, {}, &Entry::value);
    return first == made_.entries.end() || first->value != look ? named : first->named;
  }

  /// Rules of two outputs: what two terms compute is computed at once by an operator of two results
  /// that has more variables than either.
  void join(std::vector<Candidate>& into) {
    Workspace at(terms_);
    Values<FieldA> values(terms_, {.draws = kDraws, .base = made_.values.get()});
    for (TermId id = 0; id < terms_.size(); ++id) {
      if (terms_[id].result != 1) continue;
      at.tidy();
      if (constexpr std::size_t kMostBytes = std::size_t{64} << 20; values.bytes() > kMostBytes)
        values.clear();
      const NamedTerm second{id, terms_[id].own}, first{id - 1, terms_[id].own};
      const NamedTerm whole = terms_.arg(first, 0);
      if (smallest(values, whole) != whole) continue;
      Candidate candidate{{smallest(values, first), smallest(values, second)}, {first, second}};
      const auto is_operator = [&](const NamedTerm& named) {
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
      else if (!agree_elsewhere(at, candidate))
        ++counts_.coincident;
      else if (holds_without_common(at, candidate))
        ++counts_.common;
      else
        into.push_back(std::move(candidate));
    }
  }

  std::vector<Candidate> without_special(std::vector<Candidate> all) {
    struct CandidateWithCode {
      Candidate candidate;
      Code code;
      std::size_t different = 0;
    };
    std::vector<CandidateWithCode> coded;
    for (Candidate& candidate : all) {
      CandidateWithCode made{std::move(candidate), {}, 0};
      made.code = code_of(terms_, made.candidate);
      made.different = std::set(made.code.variables.begin(), made.code.variables.end()).size();
      coded.push_back(std::move(made));
    }
    std::ranges::stable_sort(coded, [](const CandidateWithCode& a, const CandidateWithCode& b) {
      return std::tuple(a.candidate.source.size(), a.code.ops, b.different, a.code.operators,
                        a.code.variables) < std::tuple(b.candidate.source.size(), b.code.ops,
                                                       a.different, b.code.operators,
                                                       b.code.variables);
    });
    std::map<std::vector<std::uint32_t>, std::vector<std::vector<std::uint8_t>>> known;
    std::vector<Candidate> kept;
    for (CandidateWithCode& made : coded) {
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
  WorkspacePool<Workspace> workspaces_;
};

void collect_variables(const Terms& terms, const NamedTerm& named,
                       std::vector<std::uint8_t>& into) {
  const Term& term = terms[named.term];
  if (term.op == Term::kVariable) {
    if (std::ranges::find(into, named.naming[0]) == into.end()) into.push_back(named.naming[0]);
    return;
  }
  for (std::size_t i = 0; i < term.args; ++i) collect_variables(terms, terms.arg(named, i), into);
}

}  // namespace

std::vector<std::uint8_t> variables_of(const Terms& terms, const std::vector<NamedTerm>& outputs) {
  std::vector<std::uint8_t> variables;
  for (const NamedTerm& output : outputs) collect_variables(terms, output, variables);
  return variables;
}

std::vector<Candidate> candidates(const Enumeration& made, const EnumerateOptions& options,
                                  CandidateCounts& counts) {
  return Pairing(made, options, counts).run();
}

}  // namespace tessera::superopt
