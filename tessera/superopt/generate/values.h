#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tessera/superopt/generate/terms.h"

namespace tessera::superopt {

struct NamedHash {
  std::size_t operator()(const NamedTerm& named) const {
    return (named.naming.bits() * 0x9e3779b97f4a7c15ull) ^
           (std::uint64_t{named.term} * 0xbf58476d1ce4e5b9ull);
  }
};

/// Value of a term on random inputs, draw by draw, with its fingerprint. No elements: undefined,
/// because of a division by zero.
template <class F>
struct Value {
  std::vector<F> elements;
  std::uint64_t fingerprint = 0;
};

/// Memoizing evaluator of terms in a prime field, for one choice of sizes.
template <class F>
class Values {
 public:
  struct Options {
    std::size_t sizes = 0;
    std::uint64_t seed = 1;
    /// Number of random draws of the inputs. Small inputs are above zero in the keyed order in the
    /// first draw and below it in the second; in a third draw all are below, because a maximum
    /// over many elements is hardly ever zero otherwise.
    int draws = 1;
    const Values* base = nullptr;  // precomputed values
    Values* others = nullptr;      // evaluator of terms that do not contain the forgotten subterm
  };
  Values(const Terms& terms, const Options& options) : terms_(terms), options_(options) {}

  const Value<F>& of(const NamedTerm& named);
  /// Values of all results of an operator on named arguments.
  std::vector<Value<F>> results(const Instance& instance, std::span<const NamedTerm> args);
  std::vector<Value<F>> replayed(const Instance& instance,
                                 std::span<const std::span<const F>> args);
  /// Fingerprints of all results, whose elements are not kept; none where they are undefined.
  std::span<const std::uint64_t> fingerprints(const Instance& instance,
                                              std::span<const NamedTerm> args);
  std::uint64_t fingerprint(const NamedTerm& named);
  /// Whether the last result is equal in two draws, and so does not depend on the inputs. Results
  /// of few elements may be equal by chance, as booleans are.
  bool was_constant() const {
    constexpr std::ptrdiff_t kFew = 8;
    const auto half = static_cast<std::ptrdiff_t>(outputs_.size() / 2);
    return options_.draws == 2 && half >= kFew &&
           std::equal(outputs_.begin(), outputs_.begin() + half, outputs_.begin() + half);
  }
  /// Makes a subterm opaque: it gets random elements, and terms that contain it are evaluated anew.
  void forget_meaning(const NamedTerm& named);
  void clear() {
    known_.clear();
    bytes_ = 0;
  }
  /// Approximate memory of the memo table, in bytes.
  std::size_t bytes() const { return bytes_; }

 private:
  const Value<F>* find(const NamedTerm& named) const;
  bool has_inside(const NamedTerm& named, const NamedTerm& part) const;
  Value<F> random(std::uint64_t key, ShapeId shape) const;
  /// Replays a tape on each draw of the arguments; outputs of the draws are concatenated.
  bool replay(const Tape& tape, std::span<const std::span<const F>> args);
  /// Computes the fingerprints of the last replay.
  void summarise(const Instance& instance);
  const Value<F>& keep(const NamedTerm& named, Value<F> value);

  const Terms& terms_;
  Options options_;
  std::optional<NamedTerm> forgotten_;
  std::unordered_map<NamedTerm, std::unique_ptr<const Value<F>>, NamedHash> known_;
  std::size_t bytes_ = 0;
  std::vector<F> scratch_, outputs_;
  std::vector<std::span<const F>> inputs_, draw_;
  std::vector<std::uint64_t> fingerprints_;
};

extern template class Values<FieldA>;
extern template class Values<FieldB>;

}  // namespace tessera::superopt
