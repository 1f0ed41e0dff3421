#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tessera/cost/model.h"
#include "tessera/driver/compile_model.h"
#include "tessera/tune/group_task.h"
#include "tessera/tune/tune.h"

namespace tessera {

/// Options of tuning a model.
struct TuneModelOptions {
  CompileModelOptions compile = {};
  tune::TuneOptions tune = {};
  std::filesystem::path store = {};  // file of measurements; in memory if empty
};

/// Tasks of a tuned model and what came of them.
struct TunedModel {
  std::string target = {};
  std::vector<tune::GroupTask> tasks = {};
  tune::TuneResult result = {};
  /// Whole program with the chosen schedules over that with the default ones, interleaved; none
  /// where nothing was chosen, or tuning was stopped.
  std::optional<cost::Comparison> comparison = {};
  bool kept = true;  // false: the whole program is slower, and the default schedules stay
  /// Sum of the times of all tasks with the default and with the chosen schedules.
  double default_seconds() const;
  double tuned_seconds() const;
};

/// Tunes the fusion groups of a model for inputs of these shapes, on this computer or its GPU,
/// which this process must not have used. Where the whole program turns out to be slower beyond the
/// confidence interval, the default schedules stay.
Expected<TunedModel> tune_model(const Model& model, const InputShapes& shapes,
                                const TuneModelOptions& options);

/// Checks that the GPU of a target is that of this computer, in a worker process.
Expected<Done> check_gpu(const machine::Gpu& target);

/// Adds a target to a store that does not know it, with the measured speed of this computer.
Expected<Done> add_target(cost::Store& store, cost::Target target);

/// Chosen schedules of a store for the target of these options; null where there is no store or
/// none was chosen.
Expected<std::shared_ptr<const program::ScheduleBook>> stored_schedules(
    const std::filesystem::path& store, const program::CompileOptions& code);

}  // namespace tessera
