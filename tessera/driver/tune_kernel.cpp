#include "tessera/driver/tune_kernel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "tessera/cost/interleaved_timing.h"
#include "tessera/driver/tune_model.h"
#include "tessera/support/stopwatch.h"
#include "tessera/tile/argument.h"
#include "tessera/tile/text.h"
#include "tessera/tune/batch_meter.h"

namespace tessera {
namespace {

using tune::CandidateTiming;

/// Arguments before and after a launch of the default variant.
struct Reference {
  KernelData given, expected;
  bool is_idempotent = true;  // a second launch changes nothing
};

Expected<Reference> reference_of(const KernelVariant& usual, KernelData data) {
  Reference reference{.given = copy_of(data), .expected = std::move(data)};
  TESSERA_TRY(const auto checked, codegen::compile(usual.kernel, {.checked = true}));
  TESSERA_TRY_DONE(checked->launch(reference.expected.arguments, usual.grid));
  KernelData twice = copy_of(reference.expected);
  reference.is_idempotent =
      checked->launch(twice.arguments, usual.grid) && twice.memory == reference.expected.memory;
  return reference;
}

/// Meter of the variants of a kernel, in worker processes on this computer.
class KernelMeter final : public tune::Meter {
 public:
  KernelMeter(const KernelTask& task, const Reference& reference, const TuneKernelOptions& options)
      : task_(task),
        reference_(reference),
        options_(options),
        limits_{.timeout_seconds = options.timeout_seconds, .stop = options.tune.stop} {}

  std::vector<CandidateTiming> measure(std::size_t, std::span<const std::size_t> candidates,
                                       Effort effort) override {
    std::vector<CandidateTiming> result;
    std::vector<std::size_t> correct;
    for (const std::size_t i : candidates) {
      result.push_back({.status = checked(i)});
      if (result.back().status == CandidateTiming::Status::Measured) correct.push_back(i);
    }
    const auto measured = tune::measure_in_workers(
        correct, limits_, [&](std::span<const std::size_t> some) { return timings(some, effort); });
    auto next = measured.begin();
    for (CandidateTiming& one : result)
      if (one.status == CandidateTiming::Status::Measured) one = *next++;
    return result;
  }

 private:
  /// Whether a candidate computes what the default does; in debug mode, in a worker process.
  CandidateTiming::Status checked(std::size_t candidate) {
    using Status = CandidateTiming::Status;
    if (candidate == task_.usual) return Status::Measured;
    if (const auto found = checked_.find(candidate); found != checked_.end()) return found->second;
    const tune::WorkerOutput output =
        tune::run_in_worker([&] { return check(task_.variants[candidate]); }, limits_);
    const Status status = output.status == tune::WorkerOutput::Status::Stopped    ? Status::Stopped
                          : output.status == tune::WorkerOutput::Status::TimedOut ? Status::TimedOut
                          : output.text == "same"                                 ? Status::Measured
                          : output.text == "differs"                              ? Status::Differs
                          : output.text == "illegal"                              ? Status::Illegal
                                                                                  : Status::Crashed;
    if (status != Status::Stopped) checked_.emplace(candidate, status);
    return status;
  }

  std::string check(const KernelVariant& variant) const {
    const auto compiled = codegen::compile(variant.kernel, {.checked = true});
    if (!compiled) return "illegal";
    KernelData found = copy_of(reference_.given);
    if (!(*compiled)->launch(found.arguments, variant.grid)) return "illegal";
    const double tolerance = default_tolerance(variant.kernel);
    return compare(variant.kernel, reference_.expected, found, tolerance).agrees ? "same"
                                                                                 : "differs";
  }

  /// Times candidates interleaved with the default; runs in a worker process.
  std::string timings(std::span<const std::size_t> candidates, Effort effort) const {
    std::vector<const KernelVariant*> variants = {&task_.variants[task_.usual]};
    for (const std::size_t i : candidates) variants.push_back(&task_.variants[i]);
    std::vector<std::shared_ptr<const codegen::CompiledKernel>> kernels;
    for (const KernelVariant* variant : variants) {
      auto compiled = codegen::compile(variant->kernel, options_.code);
      if (!compiled) return "failed\n";
      kernels.push_back(*std::move(compiled));
    }
    KernelData data = copy_of(reference_.given);
    const auto words = tile::words_of(data.arguments);
    const auto seconds = [&](std::size_t i) {
      for (std::size_t m = 0; !reference_.is_idempotent && m < data.memory.size(); ++m)
        std::ranges::copy(reference_.given.memory[m], data.memory[m].begin());
      const Stopwatch watch;
      kernels[i]->run(words, variants[i]->grid, options_.threads);
      return watch.seconds();
    };
    const bool is_thorough = effort == Effort::Thorough;
    const int blocks = is_thorough ? 30 : 7;
    const double block_seconds = is_thorough ? 5e-3 : 2e-3;  // of each variant
    std::vector<std::vector<double>> minima(variants.size());
    for (std::size_t i = 0; i < variants.size(); ++i) seconds(i);  // warms up
    for (int block = 0; block < blocks; ++block)
      for (std::size_t i = 0; i < variants.size(); ++i) {
        double least = std::numeric_limits<double>::infinity();
        for (const Stopwatch watch; std::isinf(least) || watch.seconds() < block_seconds;)
          least = std::min(least, seconds(i));
        minima[i].push_back(least);
      }
    const std::vector<cost::ScheduleTiming> timings = timings_of(minima);
    return tune::to_text(std::span(timings).subspan(1));
  }

  static std::vector<cost::ScheduleTiming> timings_of(
      const std::vector<std::vector<double>>& minima) {
    std::vector<cost::ScheduleTiming> timings;
    const double usual = std::ranges::min(minima[0]);
    for (const std::vector<double>& one : minima) {
      const cost::InterleavedTiming compared = cost::compare_blocks(one, minima[0]);
      const double best = std::ranges::min(one), ratio = best / usual;
      timings.push_back({.seconds = best,
                         .ratio = ratio,
                         .low = std::min(compared.low, ratio),
                         .high = std::max(compared.high, ratio),
                         .samples = static_cast<std::int64_t>(one.size())});
    }
    return timings;
  }

  const KernelTask& task_;
  const Reference& reference_;
  const TuneKernelOptions& options_;
  const tune::WorkerLimits limits_;
  std::map<std::size_t, CandidateTiming::Status> checked_;
};

}  // namespace

Expected<TunedKernel> tune_kernel(const KernelText& source, const TuneKernelOptions& options) {
  TESSERA_TRY(const std::vector<tile::Constant> given, constants_of(source.arguments));
  TESSERA_TRY(const tile::Kernel kernel, tile::parse_kernel(source.text, source.file, given));
  TESSERA_TRY(KernelData data, make_kernel_data(kernel, {.arguments = source.arguments,
                                                         .seed = options.data_seed,
                                                         .memory_limit = options.memory_limit}));
  const machine::Machine machine = machine::host();
  TunedKernel tuned;
  TESSERA_TRY(tuned.task, kernel_task(source, data, machine));
  TESSERA_TRY(const Reference reference,
              reference_of(tuned.task.variants[tuned.task.usual], std::move(data)));
  const cost::Target target = cost::target_of(machine, options.threads);
  tuned.target = target.name;
  TESSERA_TRY(cost::Store store, cost::Store::open(options.store));
  TESSERA_TRY_DONE(add_target(store, target));
  KernelMeter meter(tuned.task, reference, options);
  TESSERA_TRY(tuned.result, tune::tune({&tuned.task}, meter, store, target.name, options.tune));
  return tuned;
}

Expected<std::vector<tile::Constant>> tuned_constants(const KernelText& source, int threads,
                                                      const std::filesystem::path& store) {
  std::vector<tile::Constant> none;
  std::error_code error;
  if (store.empty() || !std::filesystem::exists(store, error)) return none;
  TESSERA_TRY(const cost::Store opened, cost::Store::open_existing(store));
  const std::string target = cost::target_of(machine::host(), threads).name,
                    key = kernel_key(source);
  TESSERA_TRY(const std::vector<cost::ScheduleMeasurement> chosen, opened.schedules(target, true));
  for (const cost::ScheduleMeasurement& one : chosen)
    if (one.key == key) return parse_constants(one.schedule);
  return none;
}

}  // namespace tessera
