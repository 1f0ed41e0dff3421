#include "tessera/cost/schedule_timing.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "tessera/cost/interleaved_timing.h"
#include "tessera/engine/engine.h"
#include "tessera/program/group_draft.h"
#include "tessera/support/parallel.h"

namespace tessera::cost {
namespace {

using Codes = std::span<const std::shared_ptr<const lower::GroupCode>>;

/// Whether results agree but for rounding: tiles round sums of products at other places, by far
/// less than a wrong element is off.
bool agree(std::span<const Datum> expected, std::span<const Datum> found) {
  constexpr double kTolerance = 0.02;  // of the largest number: 2^-8 of bf16, several times
  for (std::size_t k = 0; k < expected.size(); ++k) {
    const Tensor &a = expected[k].tensor(), &b = found[k].tensor();
    if (!is_float(a.dtype)) {
      if (!std::ranges::equal(a.bytes.view(), b.bytes.view())) return false;
      continue;
    }
    const std::int64_t count = element_count(a.shape).value_or(0);
    double largest = 0, difference = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const double x = number_at(a, i), y = number_at(b, i);
      if (std::isfinite(x) != std::isfinite(y)) return false;
      if (!std::isfinite(x)) continue;
      largest = std::max(largest, std::abs(x));
      difference = std::max(difference, std::abs(x - y));
    }
    if (difference > kTolerance * largest) return false;
  }
  return true;
}

/// Lowering that runs on the GPU, repeated.
struct OnGpu {
  std::shared_ptr<runtime::Session> session;
  std::vector<Datum> inputs = {}, results = {};
};

Expected<OnGpu> on_gpu(const lower::Group& group,
                       const std::shared_ptr<const lower::GroupCode>& code,
                       const program::RepeatOptions& options) {
  TESSERA_TRY(runtime::Program program, program::repeated_program(group, code, options));
  OnGpu made;
  for (const runtime::ValueIndex input : program.inputs) {
    const runtime::Value& value = program.values[input];
    made.inputs.push_back(program::random_tensor(value.dtype, value.shape));
  }
  TESSERA_TRY(const auto loaded, runtime::LoadedProgram::load(std::move(program)));
  TESSERA_TRY(made.session, engine::make_session(loaded, {.cache = options.code.cache}));
  return made;
}

/// Lock of a file while this lives; nothing for an empty path.
class FileLock {
 public:
  explicit FileLock(const std::filesystem::path& path) {
    if (path.empty()) return;
    file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file_ >= 0) static_cast<void>(::flock(file_, LOCK_EX));
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock() { unlock(); }
  void unlock() {
    if (file_ >= 0) ::close(file_);
    file_ = -1;
  }

 private:
  int file_ = -1;
};

Expected<std::vector<ScheduleTiming>> time_on_gpu(const lower::Group& group, Codes codes,
                                                  const TimingOptions& options) {
  constexpr std::int64_t kRepeats = 32;  // the gap between two graphs is one for so many kernels
  program::RepeatOptions how{
      .code = options.code, .repeats = kRepeats, .weight_bytes = options.weight_bytes};
  const int threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 16);
  how.code.threads = 1;
  TESSERA_TRY(
      std::vector<OnGpu> all,
      in_parallel<OnGpu>(codes.size(), [&](std::size_t i) { return on_gpu(group, codes[i], how); },
                         {.threads = threads}));
  FileLock lock(options.gpu_lock);
  for (OnGpu& one : all) {
    TESSERA_TRY(one.results, one.session->run(one.inputs));
  }
  const auto milliseconds = [&](std::size_t i, int runs) -> Expected<double> {
    TESSERA_TRY(const std::optional<double> time, all[i].session->time_steps(runs));
    if (time) return *time;
    return Diagnostic{.id = "cuda-graph", .message = "the group is no CUDA graph"};
  };
  std::vector<int> runs;  // of a block
  for (std::size_t i = 0; i < all.size(); ++i) {
    TESSERA_TRY(const double once, milliseconds(i, 2));
    const double block = 1e3 * options.seconds_per_unit / std::max(options.least_blocks, 1);
    runs.push_back(static_cast<int>(std::clamp(block / std::max(once, 1e-3), 1.0, 1000.0)));
  }
  std::vector<Timing> timings(all.size());
  for (int block = 0; block < std::max(options.least_blocks, 1); ++block)
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (options.code.stop != nullptr && *options.code.stop)
        return Diagnostic{.id = "stopped", .message = "the measurement was stopped"};
      TESSERA_TRY(const double time, milliseconds(i, runs[i]));
      const double seconds = time / 1e3 / kRepeats;
      timings[i].block_minima.push_back(seconds);
      timings[i].best = block == 0 ? seconds : std::min(timings[i].best, seconds);
      timings[i].samples += runs[i] * kRepeats;
    }
  lock.unlock();
  std::vector<ScheduleTiming> result = compared_timings(timings);
  for (std::size_t i = 1; i < all.size(); ++i)
    result[i].differs = !agree(all[0].results, all[i].results);
  return result;
}

}  // namespace

std::vector<ScheduleTiming> compared_timings(std::span<const Timing> timings) {
  std::vector<ScheduleTiming> result;
  for (const Timing& timing : timings) {
    ScheduleTiming& one = result.emplace_back();
    one.seconds = timing.best;
    one.samples = timing.samples;
    if (timing.block_minima.size() != timings[0].block_minima.size() ||
        timing.block_minima.empty() || !(timings[0].best > 0))
      continue;
    const InterleavedTiming compared = compare_blocks(timing.block_minima, timings[0].block_minima);
    one.ratio = timing.best / timings[0].best;
    one.low = std::min(compared.low, one.ratio);
    one.high = std::max(compared.high, one.ratio);
  }
  return result;
}

Expected<std::vector<ScheduleTiming>> time_lowerings(
    const lower::Group& group, std::span<const std::shared_ptr<const lower::GroupCode>> codes,
    const TimingOptions& options) {
  if (options.code.machine.is_gpu()) return time_on_gpu(group, codes, options);
  TESSERA_TRY(const program::GroupDraft made, program::group_draft(group, codes));
  std::vector<Unit> units;
  for (const program::GroupDraft::Range& range : made.steps)
    units.push_back({.first = range.first, .count = range.count});
  TESSERA_TRY(const std::vector<Timing> timings, time_units(made.draft, units, options));
  return compared_timings(timings);
}

}  // namespace tessera::cost
