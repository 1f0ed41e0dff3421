#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <vector>

#include "tessera/interp/interp.h"
#include "tessera/prove/joint_graph.h"
#include "tessera/prove/verdict.h"
#include "tessera/support/datum.h"

namespace tessera::prove {

class ExactScales;

/// Two models differ where an output is further apart than this part of its root mean square, and
/// further than so many times what either output moves when its model runs in single precision.
inline constexpr double kDiffers = 1e-4, kBeyondRounding = 30;

/// How inputs are filled in.
struct Recipe {
  enum class Kind : std::uint8_t { Normal, Positive, Sparse, Waves, Halves, Ties, Telling };
  Kind kind = Kind::Normal;
  std::uint64_t seed = 1;
  double scale = 1;                         // of floats
  std::vector<std::int64_t> below = {};     // for integers, by input; 1000 where there is none
  std::vector<std::int64_t> integers = {};  // where given, integers are drawn from these
  bool negative = false;                    // integers are of both signs
  std::vector<double> numbers = {};         // Telling: floats are drawn from these and halves
};

/// Whether inputs of these types, all sizes known, are small enough for sizes that may be chosen.
bool is_small(const std::vector<Type>& types);

/// Inputs of these types, all sizes known.
std::vector<Tensor> make_inputs(const std::vector<Type>& types, const Recipe& recipe);

/// Where the outputs of two runs are furthest apart, relative to the root mean square of both; a
/// difference in shape is infinite.
struct Apart {
  std::size_t output = 0;
  std::vector<std::int64_t> position = {};
  double source = 0, target = 0;
  double relative = 0;
  std::string what = {};
};
Apart furthest_apart(const std::vector<Datum>& source, const std::vector<Datum>& target);
Apart apart(const Tensor& source, const Tensor& target);

/// Whether most numbers among the outputs are finite: others tell nothing.
bool mostly_finite(const std::vector<Datum>& outputs);

/// Whether a constant is NaN or infinity somewhere (minus infinity is what masks are made of);
/// large ones are weights, which are not looked at.
bool holds_undefined(const Graph& graph);

struct DistinguishOptions {
  int threads = 1;
  std::int64_t memory_limit = std::int64_t{4} << 30;
  const std::atomic<bool>* stop = nullptr;
  bool may_overflow = false;  // the input is large: a result that is not finite says nothing
  /// Is shown the results of the run that tells, in double, by values of its joint graph: that of
  /// `exact_scales`, or of the models.
  std::function<void(ValueId, const interp::Value&)> observe = {};
  /// Outputs in single precision on the same input, where known: source, target.
  const std::array<std::vector<Datum>, 2>* rounded = nullptr;
  /// Exact scales of models with quantized tensors: outputs differ where they do with these,
  /// however far single precision moves them.
  const ExactScales* exact_scales = nullptr;
};

/// Runs both graphs in double on an input: a refutation if the outputs differ; an error if one of
/// them does not run.
Expected<std::optional<Refuted>> distinguishes(const JointGraph& joint,
                                               const std::vector<Tensor>& inputs,
                                               const DistinguishOptions& options);
Expected<std::optional<Refuted>> distinguishes(const Graph& source, const Graph& target,
                                               const std::vector<Tensor>& inputs,
                                               const DistinguishOptions& options);

/// Numbers that may lead to a difference: rows where constants of the same name differ, and numbers
/// of the models and their neighbours.
struct TellingNumbers {
  std::vector<std::int64_t> integers = {};
  std::vector<double> floats = {};
};
TellingNumbers telling_numbers(const Graph& source, const Graph& target);

/// A few inputs on which models are run that a proof takes for nearly equal.
std::vector<Recipe> probes(std::uint64_t seed, const std::vector<std::int64_t>& below);

/// Shapes to run models on, the cheapest first: small images in place of large ones, sizes that are
/// open all different, 1 or equal. Models need not accept them.
std::vector<std::vector<Type>> probe_types(const std::vector<Type>& inputs);

/// The recipes that are tried one after the other, those that tell most first, for so many inputs.
std::vector<Recipe> recipes(std::uint64_t seed, std::size_t inputs,
                            const std::vector<std::int64_t>& below, const TellingNumbers& telling);

}  // namespace tessera::prove
