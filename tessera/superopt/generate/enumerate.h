#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "tessera/superopt/generate/values.h"

namespace tessera::superopt {

struct EnumerateOptions {
  int max_ops = 3;
  int threads = 1;
  std::int64_t memory_limit = std::int64_t{12} << 30;  // bytes, about
  const std::atomic<bool>* stop = nullptr;
  /// How much of a level is done.
  std::function<void(int level, std::size_t done, std::size_t all)> progress = {};
};

/// A term under names: what its value looks like, and what its operator and the values
/// of its arguments are. Two that agree in the latter are equal because their arguments are.
struct Entry {
  std::uint64_t value = 0, node = 0;
  Named named;
};

/// A hash of an operator on arguments, from their fingerprints, which are sorted if it commutes.
std::uint64_t node_hash(std::size_t op, std::size_t result, bool commutes,
                        std::span<std::uint64_t> args);

/// How often inputs are drawn: a number has one sign in a draw, and what does not change from one
/// to the other does not hang on inputs.
inline constexpr int kDraws = 2;

/// All terms of a set up to a number of operators, and their looks: those with few operators under
/// all names, so that they are found where a larger term has lost some of its variables; the others
/// under all orders of their own.
struct Enumeration {
  std::unique_ptr<Instances> instances;
  std::unique_ptr<Terms> terms;
  std::unique_ptr<Values<FieldA>> values;  // of terms with few operators
  std::vector<Entry> entries;              // sorted by value, then by number of operators and term
  std::vector<std::size_t> by_ops = {};    // how many terms have 0, 1, … operators
};

/// The same for any number of threads.
Expected<Enumeration> enumerate(const OperatorSet& set, const EnumerateOptions& options);

/// Calls work(i) for all i below count, by several threads.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

}  // namespace tessera::superopt
