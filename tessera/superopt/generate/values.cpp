#include "tessera/superopt/generate/values.h"

#include "tessera/support/hash.h"
#include "tessera/support/rng.h"

namespace tessera::superopt {
namespace {

template <class F>
std::uint64_t fingerprint(std::span<const F> elements, std::uint64_t shape) {
  __extension__ using Wide = unsigned __int128;
  std::uint64_t state = shape | 1;
  for (const F element : elements) {
    const Wide product =
        static_cast<Wide>(state ^ element.word()) * (element.word() ^ 0x9e3779b97f4a7c15ull);
    state = (static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64)) +
            state * 0xbf58476d1ce4e5b9ull;
  }
  return state;
}

}  // namespace

template <class F>
Value<F> Values<F>::random(std::uint64_t key, ShapeId shape) const {
  Rng rng(options_.seed * 0x9e3779b97f4a7c15ull + key);
  Value<F> value;
  for (std::int64_t i = 0; i < terms_.instances().count(shape, options_.sizes); ++i) {
    F element;
    do {
      element = F::of_word(rng.next());
    } while (options_.sign == Sign::Negative && !(element < F()));
    value.elements.push_back(element);
  }
  value.fingerprint = fingerprint<F>(value.elements, terms_.instances().hash(shape));
  return value;
}

template <class F>
const Value<F>* Values<F>::find(const Named& named) const {
  if (const auto it = known_.find(named); it != known_.end()) return it->second.get();
  return options_.base == nullptr ? nullptr : options_.base->find(named);
}

template <class F>
std::vector<Value<F>> Values<F>::results(const Instance& instance, std::span<const Named> args) {
  std::vector<std::span<const F>> inputs;
  for (const Named& arg : args) {
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
  outputs_.resize(tape.outputs());
  if (!tape.replay<F>(args, outputs_.data(), scratch_)) return values;
  const F* at = outputs_.data();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t count = terms_.instances().count(instance.results[i], options_.sizes);
    values[i].elements.assign(at, at + count);
    values[i].fingerprint =
        fingerprint<F>(values[i].elements, terms_.instances().hash(instance.results[i]));
    at += count;
  }
  return values;
}

template <class F>
const Value<F>& Values<F>::of(const Named& named) {
  if (const Value<F>* known = find(named)) return *known;
  const Term& term = terms_[named.term];
  const auto keep = [&](const Named& of, Value<F> value) -> const Value<F>& {
    return *(known_[of] = std::make_unique<const Value<F>>(std::move(value)));
  };
  if (term.op == Term::kVariable) return keep(named, random(named.naming[0], term.shape));
  std::vector<Named> args;
  std::vector<ShapeId> shapes;
  for (std::size_t i = 0; i < term.args; ++i) {
    args.push_back(terms_.arg(named, i));
    shapes.push_back(terms_[args.back().term].shape);
  }
  std::vector<Value<F>> values = results(*terms_.instances().find(term.op, shapes), args);
  // The results of an operator are terms one after the other.
  for (std::size_t i = 0; i < values.size(); ++i)
    if (const Named of{named.term - term.result + static_cast<TermId>(i), named.naming};
        find(of) == nullptr)
      keep(of, std::move(values[i]));
  return *find(named);
}

template <class F>
void Values<F>::forget_meaning(const Named& named) {
  known_[named] =
      std::make_unique<const Value<F>>(random(terms_.structure(named), terms_[named.term].shape));
}

template class Values<FieldA>;
template class Values<FieldB>;

}  // namespace tessera::superopt
