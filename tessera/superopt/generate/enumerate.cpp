#include "tessera/superopt/generate/enumerate.h"

#include <algorithm>
#include <atomic>
#include <map>

#include "tessera/support/hash.h"
#include "tessera/support/parallel.h"

namespace tessera::superopt {
namespace {

Diagnostic stopped() {
  return {.id = "stopped", .message = "the enumeration was stopped"};
}

/// Operator applied to terms, with the fingerprints of its results under all names.
struct NewTerm {
  Terms::New made;
  std::vector<std::vector<Entry>> entries;  // by result; terms are numbered later
};

/// An argument beside the largest one.
struct Choice {
  NamedTerm named;
  ShapeId shape = 0;
  std::uint8_t ops = 0;
  bool like = false, weight = false;
  std::vector<std::uint64_t> operators;
};

class Enumerator {
 public:
  Enumerator(const OperatorSet& set, const EnumerateOptions& options) : options_(options) {
    made_.instances = std::make_unique<Instances>(set);
    made_.terms = std::make_unique<Terms>(*made_.instances);
    base_ =
        std::make_unique<Values<FieldA>>(*made_.terms, Values<FieldA>::Options{.draws = kDraws});
  }

  Expected<Enumeration> run() {
    choices_.resize(static_cast<std::size_t>(std::max(1, options_.max_ops - 1)));
    finish_level(0, 0);
    for (int level = 1; level <= options_.max_ops; ++level) TESSERA_TRY_DONE(enumerate(level));
    std::ranges::sort(made_.entries, [&](const Entry& a, const Entry& b) {
      return std::tuple(a.value, terms()[a.named.term].ops, a.named) <
             std::tuple(b.value, terms()[b.named.term].ops, b.named);
    });
    made_.values = std::move(base_);
    return std::move(made_);
  }

 private:
  /// Workspace for terms built on one largest argument.
  struct Workspace {
    Workspace(const Enumerator& owner, TermId id)
        : largest{id, owner.terms()[id].own},
          values(owner.terms(), {.draws = kDraws, .base = owner.base_.get()}) {
      owner.terms().collect_operators(largest, operators);
      owner.collect_within(largest, within);
    }
    NamedTerm largest;
    std::vector<std::uint64_t> operators;
    std::vector<Choice> within;  // all that its operators give
    Values<FieldA> values;
    std::vector<NewTerm> found;
  };
  /// Operator with some of its arguments chosen.
  struct Partial {
    std::size_t op = 0, position = 0;  // of the largest argument
    std::vector<NamedTerm> args;
    std::vector<ShapeId> shapes;
    std::vector<std::uint64_t> operators;
    std::vector<std::uint8_t> variables;  // in the order in which they are met
  };

  Terms& terms() const { return *made_.terms; }
  bool is_small(int level) const { return level <= options_.max_ops - 2; }

  Choice choice(const NamedTerm& named) const {
    const Term& term = terms()[named.term];
    Choice choice{named, term.shape, term.ops, false, is_weight(named), {}};
    choice.like = term.op == Term::kVariable && is_like(named.naming[0]);
    terms().collect_operators(named, choice.operators);
    return choice;
  }
  /// Whether it is computed from weights alone.
  bool is_weight(const NamedTerm& named) const {
    for (std::size_t i = 0; i < terms()[named.term].variables; ++i)
      if (!terms().set().inputs[terms().kind(named.naming[i])].weight) return false;
    return true;
  }
  bool is_like(std::uint8_t variable) const {
    return terms().set().inputs[terms().kind(variable)].like;
  }

  void collect_within(const NamedTerm& named, std::vector<Choice>& into) const {
    const Term& term = terms()[named.term];
    if (term.op == Term::kVariable) return;
    const TermId first = named.term - term.result;
    if (std::ranges::any_of(into, [&](const Choice& known) {
          return known.named.naming == named.naming && known.named.term == first;
        }))
      return;
    for (TermId id = first; id < terms().size() && id - first == terms()[id].result; ++id)
      into.push_back(choice({id, named.naming}));
    for (std::size_t i = 0; i < term.args; ++i) collect_within(terms().arg(named, i), into);
  }

  Expected<Done> enumerate(int level) {
    const auto first = static_cast<TermId>(terms().size());
    // Terms with fewer operators are the largest argument, all others are no larger.
    const TermId from = level == 1 ? 0 : level_begin_[1];
    const std::size_t count = first - from;
    constexpr std::size_t kBatch = 512;
    for (std::size_t start = 0; start < count; start += kBatch) {
      const std::size_t batch = std::min(kBatch, count - start);
      std::vector<std::vector<NewTerm>> found(batch);
      parallel_for(batch, options_.threads, [&](std::size_t i) {
        if (options_.stop != nullptr && *options_.stop) return;
        Workspace workspace(*this, from + static_cast<TermId>(start + i));
        for (std::size_t op = 0; op < terms().set().operators.size(); ++op)
          build_on(workspace, op, level);
        found[i] = std::move(workspace.found);
      });
      if (options_.stop != nullptr && *options_.stop) return stopped();
      for (std::vector<NewTerm>& list : found) add(list);
      if (options_.progress) options_.progress(level, start + batch, count);
      const std::size_t bytes = made_.entries.capacity() * sizeof(Entry) + terms().size() * 64;
      if (static_cast<std::int64_t>(bytes) > options_.memory_limit)
        return Diagnostic{
            .id = "generate-memory",
            .message = fmt::format("the terms of {} operators take {} KB", level, bytes >> 10),
            .note = fmt::format("the limit is {} KB", options_.memory_limit >> 10),
            .help = "fewer operators, inputs or --max-ops"};
    }
    finish_level(level, first);
    return Done{};
  }

  void add(std::vector<NewTerm>& list) {
    for (NewTerm& found : list) {
      const TermId id = terms().add(found.made);
      for (std::size_t result = 0; result < found.entries.size(); ++result)
        for (Entry& entry : found.entries[result]) {
          entry.named.term = id + static_cast<TermId>(result);
          made_.entries.push_back(entry);
        }
    }
  }

  /// Computes values and fingerprints of small terms, which are arguments under all names.
  void finish_level(int level, TermId first) {
    level_begin_.push_back(first);
    made_.by_ops.push_back(terms().size() - first);
    if (!is_small(level) && level > 0) return;
    for (TermId id = first; id < terms().size(); ++id)
      for (const Naming& naming : terms().namings(terms()[id], false)) {
        const NamedTerm named{id, naming};
        const Value<FieldA>& value = base_->of(named);
        made_.entries.push_back({value.fingerprint, node_of(named), named});
        if (static_cast<std::size_t>(level) < choices_.size())
          choices_[static_cast<std::size_t>(level)].push_back(choice(named));
      }
  }

  std::uint64_t node_of(const NamedTerm& named) {
    const Term& term = terms()[named.term];
    if (term.op == Term::kVariable) return named.naming[0];
    std::vector<std::uint64_t> args;
    for (std::size_t i = 0; i < term.args; ++i)
      args.push_back(base_->of(terms().arg(named, i)).fingerprint);
    return node_hash(term.op, term.result, term.instance->commutes, args);
  }

  void build_on(Workspace& at, std::size_t op, int level) const {
    const OperatorSet::Operator& definition = terms().set().operators[op];
    const Term& largest = terms()[at.largest.term];
    const bool like = largest.op == Term::kVariable && is_like(largest.own[0]);
    for (std::size_t position = 0; position < definition.args.size(); ++position) {
      if (definition.args[position].like != like ||
          definition.args[position].weight != is_weight(at.largest))
        continue;
      Partial partial;
      partial.op = op;
      partial.position = position;
      partial.args.resize(definition.args.size());
      partial.shapes.resize(definition.args.size());
      partial.args[position] = at.largest;
      partial.shapes[position] = largest.shape;
      partial.operators = at.operators;
      for (std::size_t i = 0; i < largest.variables; ++i)
        partial.variables.push_back(largest.own[i]);
      choose(at, partial, 0, level);
    }
  }

  /// Fills in the arguments from `next` on.
  void choose(Workspace& at, const Partial& partial, std::size_t next, int level) const {
    const OperatorSet::Operator& definition = terms().set().operators[partial.op];
    if (next == partial.position) return choose(at, partial, next + 1, level);
    const bool last = next >= definition.args.size();
    if (last) {
      if (partial.operators.size() + 1 == static_cast<std::size_t>(level)) finish(at, partial);
      return;
    }
    const int most = terms()[at.largest.term].ops - (next < partial.position ? 1 : 0);
    const std::size_t open = static_cast<std::size_t>(level) - 1 - partial.operators.size();
    const auto take = [&](const Choice& choice) {
      if (choice.ops > most || choice.like != definition.args[next].like ||
          choice.weight != definition.args[next].weight)
        return;
      Partial longer = partial;
      for (const std::uint64_t hash : choice.operators)
        if (std::ranges::find(longer.operators, hash) == longer.operators.end())
          longer.operators.push_back(hash);
      if (longer.operators.size() >= static_cast<std::size_t>(level)) return;
      if (!name_in_order(choice.named, longer.variables)) return;
      longer.args[next] = choice.named;
      longer.shapes[next] = choice.shape;
      choose(at, longer, next + 1, level);
    };
    for (const Choice& variable : choices_[0]) take(variable);
    for (const Choice& inner : at.within) take(inner);
    if (open == 0) return;
    for (int ops = 1; ops <= most && ops < static_cast<int>(choices_.size()); ++ops)
      for (const Choice& choice : choices_[static_cast<std::size_t>(ops)]) {
        if (!may_fit(partial, next, choice)) continue;
        const bool new_operators = std::ranges::any_of(choice.operators, [&](std::uint64_t hash) {
          return std::ranges::find(partial.operators, hash) == partial.operators.end();
        });
        // The others are among those within.
        if (new_operators) take(choice);
      }
  }

  /// Whether a binary operator accepts this argument.
  bool may_fit(const Partial& partial, std::size_t next, const Choice& choice) const {
    if (partial.args.size() != 2) return true;
    std::vector<ShapeId> shapes = partial.shapes;
    shapes[next] = choice.shape;
    return terms().instances().find(partial.op, shapes) != nullptr;
  }

  /// Whether variables that are met here first are the next of their kind; adds them.
  bool name_in_order(const NamedTerm& named, std::vector<std::uint8_t>& variables) const {
    for (std::size_t i = 0; i < terms()[named.term].variables; ++i) {
      const std::uint8_t variable = named.naming[i];
      if (std::ranges::find(variables, variable) != variables.end()) continue;
      const std::size_t kind = terms().kind(variable);
      const auto known = std::ranges::count_if(
          variables, [&](std::uint8_t other) { return terms().kind(other) == kind; });
      if (variable != terms().first(kind) + known || variables.size() == Naming::kMost)
        return false;
      variables.push_back(variable);
    }
    return true;
  }

  /// Symmetry breaking: for a commutative operator with equally large arguments, whether this order
  /// is the redundant one.
  bool is_twin(const Partial& partial) const {
    const NamedTerm &a = partial.args[0], &b = partial.args[1];
    if (terms()[a.term].ops != terms()[b.term].ops) return partial.position != 0;
    if (a.term != b.term) return a.term > b.term;
    // The names that the first has where the second has its own.
    std::map<std::uint8_t, std::uint8_t> own;
    const Term& term = terms()[a.term];
    std::map<std::size_t, int> met;
    for (std::size_t i = 0; i < term.variables; ++i) {
      own[b.naming[i]] = term.own[i];
      ++met[terms().kind(term.own[i])];
    }
    Naming other;
    for (std::size_t i = 0; i < term.variables; ++i) {
      const std::size_t kind = terms().kind(a.naming[i]);
      const auto [it, added] =
          own.try_emplace(a.naming[i], static_cast<std::uint8_t>(terms().first(kind) + met[kind]));
      if (added) ++met[kind];
      other.set(i, it->second);
    }
    return other < b.naming;
  }

  void finish(Workspace& at, const Partial& partial) const {
    const Instance* instance = terms().instances().find(partial.op, partial.shapes);
    if (instance == nullptr) return;
    if (instance->commutes && is_twin(partial)) return;
    NewTerm found;
    Terms::New& made = found.made;
    made.op = static_cast<std::uint16_t>(partial.op);
    made.ops = static_cast<std::uint8_t>(partial.operators.size() + 1);
    made.variables = static_cast<std::uint8_t>(partial.variables.size());
    made.instance = instance;
    for (std::size_t i = 0; i < partial.variables.size(); ++i)
      made.own.set(i, partial.variables[i]);
    for (const NamedTerm& arg : partial.args) {
      NamedTerm positions{.term = arg.term};
      for (std::size_t i = 0; i < terms()[arg.term].variables; ++i) {
        const auto it = std::ranges::find(partial.variables, arg.naming[i]);
        positions.naming.set(i, static_cast<std::uint8_t>(it - partial.variables.begin()));
      }
      made.args.push_back(positions);
    }
    found.entries.resize(instance->results.size());
    if (!looks(at, found)) return;
    at.found.push_back(std::move(found));
  }

  /// Computes fingerprints under all permutations of the variables; false where results are
  /// undefined or constant: x - x, y / y … would all be equal to each other.
  bool looks(Workspace& at, NewTerm& found) const {
    const Terms::New& made = found.made;
    const bool later = is_small(made.ops);  // only whether it is defined
    const Term shell{.op = made.op, .variables = made.variables, .own = made.own};
    std::vector<Naming> namings{made.own};
    if (!later) namings = terms().namings(shell, true);
    std::vector<NamedTerm> args(made.args.size());
    std::vector<std::uint64_t> of_args(made.args.size());
    for (const Naming& naming : namings) {
      for (std::size_t i = 0; i < args.size(); ++i) {
        args[i] = terms().renamed(made.args[i], naming);
        of_args[i] = at.values.of(args[i]).fingerprint;
      }
      if (later)
        return !at.values.results(*made.instance, args)[0].elements.empty() && !is_idle(at, made);
      const std::span<const std::uint64_t> looks = at.values.fingerprints(*made.instance, args);
      if (looks.empty() || is_idle(at, made)) return false;
      for (std::size_t i = 0; i < looks.size(); ++i)
        found.entries[i].push_back(
            {looks[i], node_hash(made.op, i, made.instance->commutes, of_args), {0, naming}});
    }
    return true;
  }

  /// Whether the last result is independent of its variables, though there are some.
  bool is_idle(const Workspace& at, const Terms::New& made) const {
    bool read = false;
    for (std::size_t i = 0; i < made.variables; ++i) read = read || !is_like(made.own[i]);
    return read && at.values.was_constant();
  }

  EnumerateOptions options_;
  Enumeration made_;
  std::unique_ptr<Values<FieldA>> base_;
  std::vector<std::vector<Choice>> choices_;  // by number of operators, under all names
  std::vector<TermId> level_begin_;
};

}  // namespace

std::uint64_t node_hash(std::size_t op, std::size_t result, bool commutes,
                        std::span<std::uint64_t> args) {
  if (commutes) std::ranges::sort(args);
  Hasher hasher;
  hasher.add(op * 16 + result + 1000);
  for (const std::uint64_t arg : args) hasher.add(arg);
  return hasher.value();
}

void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  on_threads(static_cast<std::size_t>(std::max(threads, 1)), run);
}

Expected<Enumeration> enumerate(const OperatorSet& set, const EnumerateOptions& options) {
  return Enumerator(set, options).run();
}

}  // namespace tessera::superopt
