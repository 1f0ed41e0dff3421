#include "tessera/driver/tune_kernel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <sstream>

#include "tessera/codegen/gpu_image.h"
#include "tessera/driver/gpu_kernel.h"
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

/// Runs of the variants of a kernel in debug mode on the CPU, each in a worker process.
class DebugRuns {
 public:
  DebugRuns(const KernelTask& task, const Reference& reference, tune::WorkerLimits limits)
      : task_(task), reference_(reference), limits_(std::move(limits)) {}

  /// Whether a candidate computes what the default does: Measured, or why not.
  CandidateTiming::Status status(std::size_t candidate) {
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

 private:
  std::string check(const KernelVariant& variant) const {
    const auto compiled = codegen::compile(variant.kernel, {.checked = true});
    if (!compiled) return "illegal";
    KernelData found = copy_of(reference_.given);
    if (!(*compiled)->launch(found.arguments, variant.grid)) return "illegal";
    const double tolerance = default_tolerance(variant.kernel);
    return compare(variant.kernel, reference_.expected, found, tolerance).agrees ? "same"
                                                                                 : "differs";
  }

  const KernelTask& task_;
  const Reference& reference_;
  const tune::WorkerLimits limits_;
  std::map<std::size_t, CandidateTiming::Status> checked_;
};

/// Measures those of the candidates that `status` accepts, by `measure`.
template <class StatusOf, class Measure>
std::vector<CandidateTiming> measure_accepted(std::span<const std::size_t> candidates,
                                              StatusOf&& status, Measure&& measure) {
  std::vector<CandidateTiming> result;
  std::vector<std::size_t> accepted;
  for (const std::size_t i : candidates) {
    result.push_back({.status = status(i)});
    if (result.back().status == CandidateTiming::Status::Measured) accepted.push_back(i);
  }
  const std::vector<CandidateTiming> measured = measure(std::span<const std::size_t>(accepted));
  auto next = measured.begin();
  for (CandidateTiming& one : result)
    if (one.status == CandidateTiming::Status::Measured) one = *next++;
  return result;
}

/// Meter of the variants of a kernel, in worker processes on this computer.
class KernelMeter final : public tune::Meter {
 public:
  KernelMeter(const KernelTask& task, const Reference& reference, const TuneKernelOptions& options)
      : task_(task),
        reference_(reference),
        options_(options),
        limits_{.timeout_seconds = options.timeout_seconds, .stop = options.tune.stop},
        debug_runs_(task, reference, limits_) {}

  std::vector<CandidateTiming> measure(std::size_t, std::span<const std::size_t> candidates,
                                       Effort effort) override {
    return measure_accepted(
        candidates, [&](std::size_t i) { return debug_runs_.status(i); },
        [&](std::span<const std::size_t> correct) {
          return tune::measure_in_workers(correct, limits_, [&](std::span<const std::size_t> some) {
            return timings(some, effort);
          });
        });
  }

 private:
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
    std::vector<cost::Timing> timings;
    for (std::vector<double>& one : minima)
      timings.push_back({.best = std::ranges::min(one),
                         .samples = static_cast<std::int64_t>(one.size()),
                         .block_minima = std::move(one)});
    const std::vector<cost::ScheduleTiming> result = cost::compared_timings(timings);
    return tune::to_text(std::span(result).subspan(1));
  }

  const KernelTask& task_;
  const Reference& reference_;
  const TuneKernelOptions& options_;
  const tune::WorkerLimits limits_;
  DebugRuns debug_runs_;
};

/// Whether a kernel accesses memory by pointers, which know no bounds.
bool uses_pointers(const tile::Kernel& kernel) {
  return std::ranges::any_of(kernel.ops, [](const tile::Operation& op) {
    return op.code == tile::Code::Load || op.code == tile::Code::Store ||
           op.code == tile::Code::Atomic || op.code == tile::Code::Cas;
  });
}

/// Meter of the variants of a kernel on the GPU of this computer, in one worker process. Results
/// are compared with those of the default there.
class GpuKernelMeter final : public tune::Meter {
 public:
  /// `reference`: of runs in debug mode; null where they are not needed.
  GpuKernelMeter(const KernelTask& task, const KernelData& data, const Reference* reference,
                 const TuneKernelOptions& options)
      : task_(task),
        data_(data),
        options_(options),
        limits_{.timeout_seconds = options.timeout_seconds, .stop = options.tune.stop} {
    if (reference != nullptr) debug_runs_.emplace(task, *reference, limits_);
  }

  std::vector<CandidateTiming> measure(std::size_t, std::span<const std::size_t> candidates,
                                       Effort effort) override {
    return measure_accepted(
        candidates, [&](std::size_t i) { return status(i); },
        [&](std::span<const std::size_t> correct) {
          return tune::measure_by_worker(correct, [&](std::span<const std::size_t> some) {
            return worker_.ask(
                fmt::format("{} {}", effort == Effort::Thorough ? 1 : 0, fmt::join(some, " ")),
                limits_);
          });
        });
  }

 private:
  CandidateTiming::Status status(std::size_t candidate) {
    const codegen::PtxOptions ptx = codegen::ptx_options(options_.machine, options_.code);
    if (!codegen::check_ptx(task_.variants[candidate].kernel, ptx))
      return CandidateTiming::Status::Illegal;
    return debug_runs_ ? debug_runs_->status(candidate) : CandidateTiming::Status::Measured;
  }

  /// Kernel on the GPU with its results for the data.
  struct OnGpu {
    std::unique_ptr<GpuKernel> kernel;
    KernelData results;
  };
  Expected<OnGpu> on_gpu(const KernelVariant& variant) const {
    TESSERA_TRY(GpuKernel kernel, GpuKernel::compile(variant.kernel, data_.arguments,
                                                     {.precision = options_.code.precision}));
    OnGpu made{std::make_unique<GpuKernel>(std::move(kernel)), copy_of(data_)};
    TESSERA_TRY_DONE(made.kernel->launch(made.results, variant.grid));
    return made;
  }

  /// Times the candidates of a request, interleaved with the default; in the worker process.
  std::optional<std::string> answer(const std::string& request) const {
    std::istringstream in(request);
    int is_thorough = 0;
    std::vector<std::size_t> timed = {task_.usual};
    in >> is_thorough;
    for (std::size_t candidate = 0; in >> candidate;) timed.push_back(candidate);
    const auto timings = time(timed, is_thorough != 0);
    if (!timings) return std::nullopt;
    return tune::to_text(std::span(*timings).subspan(1));
  }

  Expected<std::vector<cost::ScheduleTiming>> time(const std::vector<std::size_t>& timed,
                                                   bool is_thorough) const {
    const int blocks = is_thorough ? 30 : 7;
    constexpr double kBlockSeconds = 3e-3;
    std::vector<OnGpu> all;
    std::vector<GpuKernel::Timer> timers;
    std::vector<int> runs;
    for (const std::size_t i : timed) {
      TESSERA_TRY(OnGpu one, on_gpu(task_.variants[i]));
      TESSERA_TRY(GpuKernel::Timer timer, one.kernel->timer(data_, task_.variants[i].grid));
      const Stopwatch watch;
      TESSERA_TRY_DONE(timer.seconds());
      runs.push_back(static_cast<int>(std::clamp(kBlockSeconds / watch.seconds(), 1.0, 1000.0)));
      all.push_back(std::move(one));
      timers.push_back(std::move(timer));
    }
    std::vector<cost::Timing> timings(timed.size());
    for (int block = 0; block < blocks; ++block)
      for (std::size_t i = 0; i < timed.size(); ++i) {
        TESSERA_TRY(const double seconds, timers[i].seconds(runs[i]));
        timings[i].best = block == 0 ? seconds : std::min(timings[i].best, seconds);
        timings[i].block_minima.push_back(seconds);
        timings[i].samples += runs[i];
      }
    std::vector<cost::ScheduleTiming> result = cost::compared_timings(timings);
    const tile::Kernel& usual = task_.variants[task_.usual].kernel;
    for (std::size_t i = 1; i < timed.size(); ++i)
      result[i].differs =
          !compare(usual, all[0].results, all[i].results, default_tolerance(usual)).agrees;
    return result;
  }

  const KernelTask& task_;
  const KernelData& data_;
  const TuneKernelOptions& options_;
  const tune::WorkerLimits limits_;
  std::optional<DebugRuns> debug_runs_;
  tune::RequestWorker worker_{[this](const std::string& request) { return answer(request); }};
};

}  // namespace

Expected<TunedKernel> tune_kernel(const KernelText& source, const TuneKernelOptions& options) {
  TESSERA_TRY(const std::vector<tile::Constant> given, constants_of(source.arguments));
  TESSERA_TRY(const tile::Kernel kernel, tile::parse_kernel(source.text, source.file, given));
  TESSERA_TRY(KernelData data, make_kernel_data(kernel, {.arguments = source.arguments,
                                                         .seed = options.data_seed,
                                                         .memory_limit = options.memory_limit}));
  const bool is_gpu = options.machine.is_gpu();
  TunedKernel tuned;
  TESSERA_TRY(tuned.task, kernel_task(source, data, options.machine));
  const KernelVariant& usual = tuned.task.variants[tuned.task.usual];
  std::optional<Reference> reference;
  if (!is_gpu || uses_pointers(usual.kernel)) {
    TESSERA_TRY(reference, reference_of(usual, copy_of(data)));
  }
  const cost::Target target = cost::target_of(options.machine, options.threads);
  tuned.target = target.name;
  TESSERA_TRY(cost::Store store, cost::Store::open(options.store));
  TESSERA_TRY_DONE(add_target(store, target));
  std::unique_ptr<tune::Meter> meter;
  if (is_gpu)
    meter = std::make_unique<GpuKernelMeter>(tuned.task, data, reference ? &*reference : nullptr,
                                             options);
  else
    meter = std::make_unique<KernelMeter>(tuned.task, *reference, options);
  TESSERA_TRY(tuned.result, tune::tune({&tuned.task}, *meter, store, target.name, options.tune));
  return tuned;
}

Expected<std::vector<tile::Constant>> tuned_constants(const KernelText& source,
                                                      const machine::Machine& machine, int threads,
                                                      const std::filesystem::path& store) {
  std::vector<tile::Constant> none;
  std::error_code error;
  if (store.empty() || !std::filesystem::exists(store, error)) return none;
  TESSERA_TRY(const cost::Store opened, cost::Store::open_existing(store));
  const std::string target = cost::target_of(machine, threads).name, key = kernel_key(source);
  TESSERA_TRY(const std::vector<cost::ScheduleMeasurement> chosen, opened.schedules(target, true));
  for (const cost::ScheduleMeasurement& one : chosen)
    if (one.key == key) return parse_constants(one.schedule);
  return none;
}

}  // namespace tessera
