#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "tessera/superopt/generate/terms.h"

namespace tessera::superopt {

struct NamedHash {
  std::size_t operator()(const Named& named) const {
    return (named.naming.bits() * 0x9e3779b97f4a7c15ull) ^
           (std::uint64_t{named.term} * 0xbf58476d1ce4e5b9ull);
  }
};

/// The elements of a term on random inputs, and their hash. No elements: it is undefined, as
/// something is divided by zero.
template <class F>
struct Value {
  std::vector<F> elements;
  std::uint64_t fingerprint = 0;
};

/// Values of terms on one choice of sizes, in a prime field, each computed once.
template <class F>
class Values {
 public:
  /// Where inputs are in the keyed order: a maximum over many elements hardly ever is zero.
  enum class Sign { Any, Negative };
  struct Options {
    std::size_t sizes = 0;
    std::uint64_t seed = 1;
    Sign sign = Sign::Any;
    const Values* base = nullptr;  // what is known already
  };
  Values(const Terms& terms, const Options& options) : terms_(terms), options_(options) {}

  const Value<F>& of(const Named& named);
  /// The values of all results of an operator on named arguments.
  std::vector<Value<F>> results(const Instance& instance, std::span<const Named> args);
  std::vector<Value<F>> replayed(const Instance& instance,
                                 std::span<const std::span<const F>> args);
  /// Says that a term has random elements whatever it is.
  void forget_meaning(const Named& named);
  void clear() { known_.clear(); }

 private:
  const Value<F>* find(const Named& named) const;
  Value<F> random(std::uint64_t key, ShapeId shape) const;

  const Terms& terms_;
  Options options_;
  std::unordered_map<Named, std::unique_ptr<const Value<F>>, NamedHash> known_;
  std::vector<F> scratch_, outputs_;
};

extern template class Values<FieldA>;
extern template class Values<FieldB>;

}  // namespace tessera::superopt
