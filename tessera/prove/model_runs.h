#pragma once

#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "tessera/interp/interp.h"
#include "tessera/prove/distinguish.h"
#include "tessera/prove/exact_scales.h"
#include "tessera/prove/fingerprint.h"
#include "tessera/prove/input_ranges.h"
#include "tessera/prove/joint_graph.h"
#include "tessera/prove/locate.h"
#include "tessera/prove/sweep.h"

namespace tessera::prove {

/// Runs of two models on the same inputs by the interpreter: for fingerprints of their values, for
/// an input that tells the models apart, and to confirm a proof that leaves room for rounding.
class ModelRuns {
 public:
  /// Fingerprints by value.
  using Prints = std::vector<std::optional<Fingerprint>>;

  ModelRuns(const Aligned& aligned, const SweepOptions& options);

  /// One run of the prepared graphs of both models, in which fingerprints are taken; a refutation
  /// where it is one already.
  std::optional<Refuted> observe(const Graph& source, const Graph& target);
  /// From now on models with quantized tensors, prepared with their scales kept, are also run with
  /// exact scales.
  void use_exact_scales(const Prepared& source, const Prepared& target) {
    exact_scales_.emplace(source, target);
  }
  /// Takes the fingerprints of the same models in the other order.
  void take_observations(const ModelRuns& other);
  /// Whether `observe` found sizes and integers that both models accept.
  bool are_observed() const { return sized_.has_value(); }
  /// Fingerprints of the values of source and target; empty before `observe`.
  const std::array<Prints, 2>& prints() const { return prints_; }

  /// Looks for an input that tells the models apart, for so many seconds of CPU time.
  std::optional<Refuted> search(double seconds = std::numeric_limits<double>::infinity());
  /// The first difference that was found where one model has a NaN and the other a number, if none
  /// of the inputs that are tried is one for which both are defined there: where they are, the
  /// verdict is about them. Nothing for what `observe` and `search` return.
  std::optional<Refuted> undefined_difference();
  /// Runs both models if a proof took constants for nearly equal or believed a file: a refutation,
  /// or the proof.
  Verdict confirmed(Proved made);
  /// First values in which the models differ, on the input of a refutation.
  const std::optional<Divergence>& divergence() const { return divergence_; }

 private:
  /// Outputs of a run in single precision, source and target; nothing where they do not run.
  std::optional<std::array<std::vector<Datum>, 2>> single_outputs(
      const JointGraph& joint, const std::vector<Tensor>& inputs,
      const std::function<void(ValueId, const interp::Value&)>& observe = {}) const;
  bool run_both(const JointGraph& prepared, const std::vector<Tensor>& inputs,
                std::array<std::vector<Datum>, 2>& outputs);
  /// A refutation if the outputs of a run in single precision differ, and those in double do.
  std::optional<Refuted> refuted_by(const std::vector<Tensor>& inputs,
                                    const std::array<std::vector<Datum>, 2>& single);
  /// Runs both on integers that are 0 or 1: a mask of other numbers masks nothing.
  std::optional<Refuted> refuted_by_truth_values(const std::vector<Type>& types);
  /// The two models as one graph.
  const JointGraph& joint();
  /// The inputs that are tried one after the other.
  std::vector<Recipe> recipes_tried() const;
  /// Runs the models in double: a refutation, and where they part.
  std::optional<Refuted> refutation(const std::vector<Tensor>& inputs, DistinguishOptions how);

  bool is_stopped() const { return options_.stop != nullptr && *options_.stop; }
  interp::Options interpreting() const {
    return {.threads = options_.threads, .memory_limit = memory_limit_, .stop = options_.stop};
  }
  DistinguishOptions running() const {
    return {.threads = options_.threads,
            .memory_limit = memory_limit_,
            .stop = options_.stop,
            .exact_scales = exact_scales_ ? &*exact_scales_ : nullptr};
  }
  void show(std::string_view what) const {
    if (options_.progress) options_.progress({0, aligned_.target.value_count() + 1, what});
  }

  const Aligned& aligned_;
  const SweepOptions& options_;
  std::int64_t memory_limit_;  // of one run
  std::array<Prints, 2> prints_;
  std::optional<std::vector<Type>> sized_;
  InputRanges below_;  // of the integers that the models take
  std::optional<JointGraph> joint_;
  std::optional<ExactScales> exact_scales_;
  std::optional<Divergence> divergence_;
  /// Difference at an element that only one model defines, and the first values that differ there.
  std::optional<Refuted> undefined_;
  std::optional<Divergence> undefined_divergence_;
};

}  // namespace tessera::prove
