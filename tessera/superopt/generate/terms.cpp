#include "tessera/superopt/generate/terms.h"

#include <algorithm>

#include "tessera/support/check.h"
#include "tessera/support/hash.h"

namespace tessera::superopt {

Terms::Terms(Instances& instances) : instances_(instances) {
  for (std::size_t kind = 0; kind < set().inputs.size(); ++kind) {
    const OperatorSet::Input& input = set().inputs[kind];
    first_of_.push_back(static_cast<std::uint8_t>(kind_of_.size()));
    kind_of_.insert(kind_of_.end(), input.names.size(), kind);
    Term term{.variables = 1, .shape = instances.intern(*input.type.shape)};
    term.own.set(0, first_of_.back());
    terms_.push_back(term);
  }
}

NamedTerm Terms::variable(std::uint8_t variable) const {
  NamedTerm named{.term = static_cast<TermId>(kind(variable))};
  named.naming.set(0, variable);
  return named;
}

std::string Terms::name(std::uint8_t variable) const {
  const std::size_t of = kind(variable);
  return set().inputs[of].names[static_cast<std::size_t>(variable - first(of))];
}

NamedTerm Terms::renamed(const NamedTerm& positions, Naming names) const {
  NamedTerm result{.term = positions.term};
  for (std::size_t i = 0; i < terms_[positions.term].variables; ++i)
    result.naming.set(i, names[positions.naming[i]]);
  return result;
}

std::vector<Naming> Terms::namings(const Term& term, bool own_alone) const {
  std::vector<Naming> all = {{}};
  for (std::size_t i = 0; i < term.variables; ++i) {
    std::vector<Naming> longer;
    const std::size_t of = kind(term.own[i]);
    std::size_t limit = alike(of);
    if (own_alone) {
      limit = 0;
      for (std::size_t k = 0; k < term.variables; ++k) limit += kind(term.own[k]) == of ? 1 : 0;
    }
    for (const Naming& naming : all)
      for (std::size_t n = 0; n < limit; ++n) {
        const auto name = static_cast<std::uint8_t>(first(of) + n);
        bool taken = false;
        for (std::size_t k = 0; k < i; ++k) taken = taken || naming[k] == name;
        if (taken) continue;
        longer.push_back(naming);
        longer.back().set(i, name);
      }
    all = std::move(longer);
  }
  return all;
}

std::uint64_t Terms::operator_hash(const NamedTerm& named) const {
  Hasher hasher;
  hasher.add(terms_[named.term].op);
  for (std::size_t i = 0; i < terms_[named.term].args; ++i) hasher.add(structure(arg(named, i)));
  return hasher.value();
}

std::uint64_t Terms::structure(const NamedTerm& named) const {
  const Term& term = terms_[named.term];
  return structure(term, term.op == Term::kVariable ? named.naming[0] : operator_hash(named));
}

std::uint64_t Terms::structure(const Term& term, std::uint64_t operation) {
  Hasher hasher;
  hasher.add(operation);
  hasher.add(term.result);
  return hasher.value();
}

void Terms::collect_operators(const NamedTerm& named, std::vector<std::uint64_t>& into) const {
  const Term& term = terms_[named.term];
  if (term.op == Term::kVariable) return;
  const std::uint64_t hash = operator_hash(named);
  if (std::ranges::find(into, hash) != into.end()) return;
  into.push_back(hash);
  for (std::size_t i = 0; i < term.args; ++i) collect_operators(arg(named, i), into);
}

TermId Terms::add(const New& term) {
  const auto id = static_cast<TermId>(terms_.size());
  TESSERA_CHECK(id < ~TermId{0} - 8, "too many terms");
  const auto first_arg = static_cast<std::uint32_t>(args_.size());
  args_.insert(args_.end(), term.args.begin(), term.args.end());
  for (std::size_t result = 0; result < term.instance->results.size(); ++result)
    terms_.push_back({.op = term.op,
                      .result = static_cast<std::uint8_t>(result),
                      .ops = term.ops,
                      .variables = term.variables,
                      .args = static_cast<std::uint8_t>(term.args.size()),
                      .first_arg = first_arg,
                      .shape = term.instance->results[result],
                      .instance = term.instance,
                      .own = term.own});
  return id;
}

}  // namespace tessera::superopt
