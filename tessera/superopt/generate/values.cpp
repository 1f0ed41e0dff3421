#include "tessera/superopt/generate/values.h"

#include "tessera/support/rng.h"

namespace tessera::superopt {
namespace {

/// Continues a hash.
template <class F>
void mix(std::uint64_t& state, F element) {
  __extension__ using Wide = unsigned __int128;
  const Wide product =
      static_cast<Wide>(state ^ element.word()) * (element.word() ^ 0x9e3779b97f4a7c15ull);
  state = (static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64)) +
          state * 0xbf58476d1ce4e5b9ull;
}

}  // namespace

template <class F>
Value<F> Values<F>::random(std::uint64_t key, ShapeId shape) const {
  constexpr std::int64_t kFew = 4;
  const std::int64_t count = terms_.instances().count(shape, options_.sizes);
  Value<F> value;
  for (int draw = 0; draw < options_.draws; ++draw) {
    Rng rng((options_.seed + static_cast<std::uint64_t>(draw)) * 0x9e3779b97f4a7c15ull + key);
    const bool above = draw == 0 && count < kFew, below = draw == 2 || (draw == 1 && count < kFew);
    for (std::int64_t i = 0; i < count; ++i) {
      F element;
      do {
        element = F::of_word(rng.next());
      } while ((above && !(F() < element)) || (below && !(element < F())));
      value.elements.push_back(element);
    }
  }
  value.fingerprint = terms_.instances().hash(shape) | 1;
  for (const F element : value.elements) mix(value.fingerprint, element);
  return value;
}

template <class F>
const Value<F>* Values<F>::find(const NamedTerm& named) const {
  if (const auto it = known_.find(named); it != known_.end()) return it->second.get();
  return options_.base == nullptr ? nullptr : options_.base->find(named);
}

template <class F>
bool Values<F>::has_inside(const NamedTerm& named, const NamedTerm& part) const {
  if (named == part) return true;
  for (std::size_t i = 0; i < terms_[named.term].args; ++i)
    if (has_inside(terms_.arg(named, i), part)) return true;
  return false;
}

template <class F>
bool Values<F>::replay(const Tape& tape, std::span<const std::span<const F>> args) {
  const auto draws = static_cast<std::size_t>(options_.draws);
  outputs_.resize(tape.outputs() * draws);
  for (std::size_t draw = 0; draw < draws; ++draw) {
    draw_.clear();
    for (const std::span<const F> arg : args)
      draw_.push_back(arg.subspan(draw * (arg.size() / draws), arg.size() / draws));
    if (!tape.replay<F>(draw_, outputs_.data() + draw * tape.outputs(), scratch_)) return false;
  }
  return true;
}

template <class F>
std::vector<Value<F>> Values<F>::results(const Instance& instance,
                                         std::span<const NamedTerm> args) {
  std::vector<std::span<const F>> inputs;
  for (const NamedTerm& arg : args) {
    inputs.emplace_back(of(arg).elements);
    if (inputs.back().empty()) return std::vector<Value<F>>(instance.results.size());
  }
  return replayed(instance, inputs);
}

template <class F>
std::vector<Value<F>> Values<F>::replayed(const Instance& instance,
                                          std::span<const std::span<const F>> args) {
  std::vector<Value<F>> values(instance.results.size());
  const Tape& tape = instance.tapes[options_.sizes];
  if (!replay(tape, args)) return values;
  summarise(instance);
  const F* at = outputs_.data();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t count = terms_.instances().count(instance.results[i], options_.sizes);
    for (std::size_t start = 0; start < outputs_.size(); start += tape.outputs())
      values[i].elements.insert(values[i].elements.end(), at + start, at + start + count);
    values[i].fingerprint = fingerprints_[i];
    at += count;
  }
  return values;
}

template <class F>
void Values<F>::summarise(const Instance& instance) {
  const std::size_t outputs = instance.tapes[options_.sizes].outputs();
  fingerprints_.clear();
  std::size_t at = 0;
  for (const ShapeId result : instance.results) {
    const auto count = static_cast<std::size_t>(terms_.instances().count(result, options_.sizes));
    std::uint64_t state = terms_.instances().hash(result) | 1;
    for (std::size_t start = at; start < outputs_.size(); start += outputs)
      for (std::size_t i = 0; i < count; ++i) mix(state, outputs_[start + i]);
    fingerprints_.push_back(state);
    at += count;
  }
}

template <class F>
std::span<const std::uint64_t> Values<F>::fingerprints(const Instance& instance,
                                                       std::span<const NamedTerm> args) {
  inputs_.clear();
  for (const NamedTerm& arg : args) {
    inputs_.emplace_back(of(arg).elements);
    if (inputs_.back().empty()) return {};
  }
  if (!replay(instance.tapes[options_.sizes], inputs_)) return {};
  summarise(instance);
  return fingerprints_;
}

template <class F>
std::uint64_t Values<F>::fingerprint(const NamedTerm& named) {
  if (const Value<F>* known = find(named)) return known->fingerprint;
  if (options_.others != nullptr && !has_inside(named, *forgotten_))
    return options_.others->fingerprint(named);
  const Term& term = terms_[named.term];
  if (term.op == Term::kVariable) return of(named).fingerprint;
  std::vector<NamedTerm> args;
  for (std::size_t i = 0; i < term.args; ++i) args.push_back(terms_.arg(named, i));
  const std::span<const std::uint64_t> all = fingerprints(*term.instance, args);
  return all.empty() ? 0 : all[term.result];
}

template <class F>
const Value<F>& Values<F>::keep(const NamedTerm& named, Value<F> value) {
  bytes_ += value.elements.size() * sizeof(F) + 128;
  return *(known_[named] = std::make_unique<const Value<F>>(std::move(value)));
}

template <class F>
const Value<F>& Values<F>::of(const NamedTerm& named) {
  if (const Value<F>* known = find(named)) return *known;
  if (options_.others != nullptr && !has_inside(named, *forgotten_))
    return options_.others->of(named);
  const Term& term = terms_[named.term];
  if (term.op == Term::kVariable) return keep(named, random(named.naming[0], term.shape));
  std::vector<NamedTerm> args;
  for (std::size_t i = 0; i < term.args; ++i) args.push_back(terms_.arg(named, i));
  std::vector<Value<F>> values = results(*term.instance, args);
  // The results of an operator are terms one after the other.
  for (std::size_t i = 0; i < values.size(); ++i)
    if (const NamedTerm of{named.term - term.result + static_cast<TermId>(i), named.naming};
        find(of) == nullptr)
      keep(of, std::move(values[i]));
  return *find(named);
}

template <class F>
void Values<F>::forget_meaning(const NamedTerm& named) {
  forgotten_ = named;
  keep(named, random(terms_.structure(named), terms_[named.term].shape));
}

template class Values<FieldA>;
template class Values<FieldB>;

}  // namespace tessera::superopt
