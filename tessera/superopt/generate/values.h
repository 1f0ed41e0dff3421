#pragma once

#include <algorithm>
#include <memory>
#include <optional>
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

/// The elements of a term on random inputs, draw by draw, and their hash. No elements: it is
/// undefined, as something is divided by zero.
template <class F>
struct Value {
  std::vector<F> elements;
  std::uint64_t fingerprint = 0;
};

/// Values of terms on one choice of sizes, in a prime field, each computed once.
template <class F>
class Values {
 public:
  struct Options {
    std::size_t sizes = 0;
    std::uint64_t seed = 1;
    /// How often inputs are drawn. Those of few elements are above zero in the keyed order first,
    /// then below it; in a third draw all are below: a maximum over many elements hardly ever is
    /// zero otherwise.
    int draws = 1;
    const Values* base = nullptr;  // what is known already
    Values* others = nullptr;      // where all is computed that does not have the forgotten part
  };
  Values(const Terms& terms, const Options& options) : terms_(terms), options_(options) {}

  const Value<F>& of(const Named& named);
  /// The values of all results of an operator on named arguments.
  std::vector<Value<F>> results(const Instance& instance, std::span<const Named> args);
  std::vector<Value<F>> replayed(const Instance& instance,
                                 std::span<const std::span<const F>> args);
  /// The fingerprints of all results, whose elements are not kept; none where they are undefined.
  std::span<const std::uint64_t> fingerprints(const Instance& instance,
                                              std::span<const Named> args);
  std::uint64_t fingerprint(const Named& named);
  /// Whether what was computed last is the same on two draws: it does not hang on the inputs. Few
  /// elements may be the same by chance, as truth values are.
  bool was_constant() const {
    constexpr std::ptrdiff_t kFew = 8;
    const auto half = static_cast<std::ptrdiff_t>(outputs_.size() / 2);
    return options_.draws == 2 && half >= kFew &&
           std::equal(outputs_.begin(), outputs_.begin() + half, outputs_.begin() + half);
  }
  /// Says that a term has random elements whatever it is; what has it inside is computed anew.
  void forget_meaning(const Named& named);
  void clear() {
    known_.clear();
    bytes_ = 0;
  }
  /// About what is kept, in bytes.
  std::size_t bytes() const { return bytes_; }

 private:
  const Value<F>* find(const Named& named) const;
  bool has_inside(const Named& named, const Named& part) const;
  Value<F> random(std::uint64_t key, ShapeId shape) const;
  /// Replays a tape on each draw of the arguments; the outputs of one draw after those of another.
  bool replay(const Tape& tape, std::span<const std::span<const F>> args);
  /// The fingerprints of what was replayed.
  void summarise(const Instance& instance);
  const Value<F>& keep(const Named& named, Value<F> value);

  const Terms& terms_;
  Options options_;
  std::optional<Named> forgotten_;
  std::unordered_map<Named, std::unique_ptr<const Value<F>>, NamedHash> known_;
  std::size_t bytes_ = 0;
  std::vector<F> scratch_, outputs_;
  std::vector<std::span<const F>> inputs_, draw_;
  std::vector<std::uint64_t> fingerprints_;
};

extern template class Values<FieldA>;
extern template class Values<FieldB>;

}  // namespace tessera::superopt
