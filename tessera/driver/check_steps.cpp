#include "tessera/driver/check_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "tessera/driver/element_differences.h"
#include "tessera/program/launch_arguments.h"
#include "tessera/runtime/cuda/session.h"
#include "tessera/tile/interp.h"

namespace tessera {
namespace {

using runtime::step::Launch;

constexpr std::size_t kMostDifferences = 8;

/// Description of how memory of one element type differs; empty if it does not. The tolerance is
/// relative to the largest element.
std::string difference(DType dtype, const Bytes& found, const Bytes& expected, double tolerance) {
  if (std::ranges::equal(found.view(), expected.view())) return "";
  const auto count = static_cast<std::int64_t>(found.size()) / byte_width(dtype);
  const Tensor a{dtype, {count}, found}, e{dtype, {count}, expected};
  double largest = 0;
  for (std::int64_t i = 0; is_float(dtype) && i < count; ++i)
    if (const double x = std::fabs(number_at(e, i)); std::isfinite(x))
      largest = std::max(largest, x);
  const ElementDifferences differences =
      element_differences(a, e, tolerance, [&](double) { return largest; });
  if (differences.count == 0) return "";
  const auto element = [&](const Tensor& tensor) {
    return is_float(dtype) ? fmt::format("{:.9g}", number_at(tensor, differences.first))
                           : fmt::format("{}", integer_at(tensor, differences.first));
  };
  return fmt::format("{} of {} elements, by up to {:.3g}: element {} is {} instead of {}",
                     differences.count, count, differences.worst * largest, differences.first,
                     element(a), element(e));
}

/// Argument words of a launch, patched with the addresses in `memory`.
std::vector<std::uint64_t> words_at(const Launch& launch, std::span<std::byte* const> memory) {
  std::vector<std::uint64_t> words = launch.words;
  for (std::size_t i = 0; i < launch.patches.size(); ++i)
    words[launch.patches[i].word] = reinterpret_cast<std::uintptr_t>(memory[i]);
  return words;
}

/// Copies of the memory that a launch accesses, by patch. Patches of one value may overlap, such as
/// the parts of a concatenation, and then are parts of one copy.
class MemoryCopies {
 public:
  MemoryCopies(std::span<const Launch::Patch> patches, std::span<const Bytes> contents) {
    const auto key = [](const Launch::Patch& patch) {
      return std::pair(patch.at.value, patch.at.per_round);
    };
    std::map<std::pair<runtime::ValueIndex, std::int64_t>, Range> ranges;
    for (std::size_t i = 0; i < patches.size(); ++i) {
      const std::int64_t first = patches[i].at.offset;
      const std::int64_t end = first + static_cast<std::int64_t>(contents[i].size());
      Range& range = ranges.try_emplace(key(patches[i]), Range{first, end}).first->second;
      range = {std::min(range.first, first), std::max(range.end, end)};
    }
    for (auto& [value, range] : ranges) {
      copies_.emplace_back(static_cast<std::size_t>(range.end - range.first) + runtime::kAlignment);
      const auto address = reinterpret_cast<std::uintptr_t>(copies_.back().data());
      constexpr auto kUnit = static_cast<std::uintptr_t>(runtime::kAlignment);
      // Aligned as the memory itself.
      const auto rest = static_cast<std::uintptr_t>(range.first) % kUnit;
      range.data = copies_.back().data() + ((kUnit - address % kUnit) + rest) % kUnit;
    }
    for (std::size_t i = 0; i < patches.size(); ++i) {
      const Range& range = ranges.at(key(patches[i]));
      by_patch_.push_back(range.data + (patches[i].at.offset - range.first));
      std::ranges::copy(contents[i].view(), by_patch_.back());
    }
  }

  const std::vector<std::byte*>& by_patch() const { return by_patch_; }

 private:
  struct Range {
    std::int64_t first = 0, end = 0;
    std::byte* data = nullptr;
  };

  std::vector<std::vector<std::byte>> copies_;
  std::vector<std::byte*> by_patch_;
};

class StepChecker {
 public:
  StepChecker(const CompiledModel& compiled, const StepCheckOptions& options)
      : compiled_(compiled), options_(options) {}

  Expected<StepCheckReport> run(std::span<const Datum> inputs) {
    const bool is_gpu = compiled_.program.is_for_gpu();
    report_.interpreted = is_gpu && !runtime::cuda::this_gpu();
    TESSERA_TRY(report_.outputs, run_once(inputs, true, true));
    const int runs = report_.interpreted ? 1 : options_.runs;
    for (int i = 0; i < runs; ++i)
      TESSERA_TRY_DONE(expect_same_bits(inputs, false, fmt::format("run {}", i + 1)));
    if (!report_.interpreted)
      TESSERA_TRY_DONE(expect_same_bits(inputs, true, "a run in an arena full of NaN"));
    return std::move(report_);
  }

 private:
  Expected<std::vector<Datum>> run_once(std::span<const Datum> inputs, bool poison, bool inspect) {
    TESSERA_TRY(auto loaded, runtime::LoadedProgram::load(compiled_.program));
    runtime::SessionOptions session = session_options(options_.run);
    session.poison = poison;
    if (inspect && !report_.interpreted)
      session.inspect = [&](const runtime::SessionOptions::Inspection& inspection) {
        return check_launch(inspection);
      };
    if (report_.interpreted)
      session.emulate = [&](const Launch& launch, std::span<const std::uint64_t> words) {
        if (poison) ++report_.launches;
        return interpret(launch, words);
      };
    TESSERA_TRY(auto made, runtime::Session::create(std::move(loaded), session));
    return made->run(inputs);
  }

  /// Interprets a launch; an access out of bounds names the step.
  Expected<Done> interpret(const Launch& launch, std::span<const std::uint64_t> words) const {
    const tile::Kernel& kernel = *compiled_.kernels[launch.kernel];
    auto done =
        tile::interpret(kernel, program::launch_arguments(kernel, launch, words), launch.grid);
    if (done) return done;
    for (std::size_t i = 0; i < compiled_.program.steps.size(); ++i) {
      const auto* step = std::get_if<Launch>(&compiled_.program.steps[i]);
      if (step == nullptr || !(*step == launch)) continue;
      const program::CompileReport::Step& of = compiled_.report.steps[i];
      return located(std::move(done).error(),
                     {.item = fmt::format("step {}, {} ({})", i, of.what, of.strategy)});
    }
    return done;
  }

  Expected<Done> check_launch(const runtime::SessionOptions::Inspection& at) {
    const Launch& launch = at.launch;
    const tile::Kernel& kernel = *compiled_.kernels[launch.kernel];
    if (!at.done) {
      before_.clear();
      for (const Launch::Patch& patch : launch.patches) {
        TESSERA_TRY(Bytes memory, at.memory(patch));
        before_.push_back(std::move(memory));
      }
      return Done{};
    }
    if (options_.progress)
      options_.progress(at.step, compiled_.program.steps.size(),
                        compiled_.report.steps[at.step].what);
    ++report_.launches;
    const MemoryCopies copies(launch.patches, before_);
    const std::vector<std::byte*>& memory = copies.by_patch();
    const auto words = words_at(launch, memory);
    const auto arguments = program::launch_arguments(kernel, launch, words);
    TESSERA_TRY_DONE(interpret(launch, words));
    for (std::size_t i = 0; i < launch.patches.size(); ++i) {
      TESSERA_TRY(const Bytes now, at.memory(launch.patches[i]));
      const auto argument = std::ranges::find(arguments, memory[i], &tile::Argument::data);
      const runtime::Value& value = compiled_.program.values[launch.patches[i].at.value];
      add(at.step, value.name,
          difference(argument->type.dtype, now, Bytes::copy({memory[i], now.size()}),
                     options_.tolerance));
    }
    return Done{};
  }

  void add(std::size_t step, const std::string& value, const std::string& what) {
    if (what.empty() || report_.differences.size() >= kMostDifferences) return;
    const program::CompileReport::Step& of = compiled_.report.steps[step];
    report_.differences.push_back(
        {step, fmt::format("{} ({}), value {}: {}", of.what, of.strategy, value, what)});
  }

  Expected<Done> expect_same_bits(std::span<const Datum> inputs, bool poison,
                                  const std::string& which) {
    TESSERA_TRY(const std::vector<Datum> outputs, run_once(inputs, poison, false));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].is_tensor() || outputs[i].tensor().dtype == DType::String) continue;
      const Tensor &one = outputs[i].tensor(), &other = report_.outputs[i].tensor();
      if (one.shape == other.shape && std::ranges::equal(one.bytes.view(), other.bytes.view()))
        continue;
      const std::string what = one.shape == other.shape
                                   ? difference(one.dtype, one.bytes, other.bytes, 0)
                                   : std::string("another shape");
      report_.differences.push_back(
          {StepCheckReport::kWhole,
           fmt::format("output {}: {} gives other bits than the steps one by one: {}", i, which,
                       what)});
    }
    return Done{};
  }

  const CompiledModel& compiled_;
  const StepCheckOptions& options_;
  StepCheckReport report_;
  std::vector<Bytes> before_;  // what the launch found, by patch
};

}  // namespace

Expected<StepCheckReport> check_steps(const CompiledModel& compiled, std::span<const Datum> inputs,
                                      const StepCheckOptions& options) {
  return StepChecker(compiled, options).run(inputs);
}

}  // namespace tessera
