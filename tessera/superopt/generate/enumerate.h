#pragma once

#include <fmt/format.h>

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "tessera/superopt/generate/values.h"

namespace tessera::superopt {

/// Options of enumerate().
struct EnumerateOptions {
  int max_ops = 3;
  int threads = 1;
  std::int64_t memory_limit = std::int64_t{12} << 30;  // approximate, in bytes
  const std::atomic<bool>* stop = nullptr;
  /// Progress within a level.
  std::function<void(int level, std::size_t done, std::size_t all)> progress = {};
};

/// Enumeration as part of a longer work, whose options have the same fields; `what` is enumerated.
/// The work's options have to outlive the result.
template <class Options>
EnumerateOptions enumerate_options(const Options& options, const char* what) {
  EnumerateOptions how{.max_ops = options.max_ops,
                       .threads = options.threads,
                       .memory_limit = options.memory_limit,
                       .stop = options.stop};
  if (options.progress)
    how.progress = [&options, what](int level, std::size_t done, std::size_t all) {
      options.progress(fmt::format("{} of {} operators", what, level), done, all);
    };
  return how;
}

/// Named term with its fingerprints: of its value, and of its operator applied to the values of
/// its arguments. Two entries that agree in the latter are equal by congruence.
struct Entry {
  std::uint64_t value = 0, node = 0;
  NamedTerm named;
};

/// Hash of an operator applied to arguments, from their fingerprints, which are sorted if it
/// commutes.
std::uint64_t node_hash(std::size_t op, std::size_t result, bool commutes,
                        std::span<std::uint64_t> args);

/// Number of random draws of the inputs: a number has one sign in a draw, and a value that does not
/// change between draws does not depend on inputs.
inline constexpr int kDraws = 2;

/// All terms over an operator set up to a number of operators, with fingerprints: small terms under
/// all variable names, so that they are found where a larger term has lost some variables; the
/// others under all permutations of their own.
struct Enumeration {
  std::unique_ptr<Instances> instances;
  std::unique_ptr<Terms> terms;
  std::unique_ptr<Values<FieldA>> values;  // values of small terms
  std::vector<Entry> entries;              // sorted by value, then by number of operators and term
  std::vector<std::size_t> by_ops = {};    // number of terms with 0, 1, … operators
};

/// Enumerates all terms; the result does not depend on the number of threads.
Expected<Enumeration> enumerate(const OperatorSet& set, const EnumerateOptions& options);

/// Parallel loop: calls work(i) for all i below count.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

}  // namespace tessera::superopt
