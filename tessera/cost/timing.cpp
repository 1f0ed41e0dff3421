#include "tessera/cost/timing.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "tessera/codegen/image.h"
#include "tessera/cost/interleaved_timing.h"
#include "tessera/engine/engine.h"
#include "tessera/lower/range.h"
#include "tessera/program/backend.h"
#include "tessera/program/plan.h"
#include "tessera/support/rng.h"
#include "tessera/support/stopwatch.h"

namespace tessera::cost {
namespace {

using runtime::kAlignment;
using runtime::Program;
using runtime::Value;
using runtime::ValueIndex;

std::int64_t aligned(std::int64_t bytes) {
  return lower::ceil_div(bytes, kAlignment) * kAlignment;
}

/// Pool of input data: zeros, then bytes that are normal numbers in every float type.
Bytes pool_of(std::int64_t zeros, std::int64_t numbers) {
  Buffer buffer(static_cast<std::size_t>(zeros + numbers));
  std::vector<std::uint16_t> some(std::size_t{1} << 16);
  Rng rng(1);
  for (std::uint16_t& word : some) word = static_cast<std::uint16_t>(0x3c00 + rng.below(0x0380));
  const auto chunk = static_cast<std::int64_t>(some.size() * sizeof some[0]);
  for (std::int64_t at = 0; at < numbers; at += chunk)
    std::memcpy(buffer.data() + zeros + at, some.data(),
                static_cast<std::size_t>(std::min(chunk, numbers - at)));
  return std::move(buffer).freeze();
}

/// Benchmark program whose steps are the units, repeated.
class Bench {
 public:
  Bench(const program::Draft& draft, std::span<const Unit> units, const TimingOptions& options)
      : draft_(draft), units_(units), options_(options) {}

  /// Lays out copies of the weights up to the requested total size, as far as the time budget
  /// allows.
  void lay_out() {
    std::int64_t weights = 0, largest = 0, zeros = 0;
    for (std::size_t u = 0; u < units_.size(); ++u) {
      const Uses uses = uses_of(units_[u]);
      std::int64_t own = 0;
      for (const ValueIndex value : uses.weights)
        own += aligned(draft_.program.values[value].bytes);
      weights += own;
      std::int64_t all = own;
      for (const ValueIndex value : uses.inputs) {
        all += aligned(draft_.program.values[value].bytes);
        zeros = std::max(zeros, aligned(draft_.program.values[value].bytes));
      }
      largest = std::max(largest, all);
    }
    for (const Unit& unit : units_)
      for (const ValueIndex value : uses_of(unit).weights)
        zeros = std::max(zeros, aligned(draft_.program.values[value].bytes));
    const double box = options_.seconds_per_unit * static_cast<double>(units_.size());
    const double affordable =
        box / (options_.expected_seconds + 1e-9) / (options_.least_blocks + 1);
    repeats_ = static_cast<std::size_t>(std::clamp<std::int64_t>(
        lower::ceil_div(options_.weight_bytes, std::max<std::int64_t>(weights, 1)), kEnoughRepeats,
        kMostRepeats));
    repeats_ = static_cast<std::size_t>(
        std::clamp(static_cast<double>(repeats_), 1.0, std::max(1.0, affordable)));
    zeros_ = zeros;
    numbers_ = std::max(
        largest, std::min(options_.weight_bytes, weights * static_cast<std::int64_t>(repeats_)));
    program_.weights = pool_of(zeros_, numbers_);
    for (std::size_t r = 0; r < repeats_; ++r)
      for (std::size_t u = 0; u < units_.size(); ++u)
        if (r == 0 || !is_host(units_[u])) add(u);  // the host takes long
    program_.arena_bytes = arena_;
  }

  Expected<Done> compile() {
    std::vector<tile::Kernel> kernels;
    for (const std::uint32_t kernel : kernels_) kernels.push_back(*draft_.kernels[kernel]);
    TESSERA_TRY(const codegen::Image image,
                codegen::build_image(kernels, options_.code.machine,
                                     program::image_options(options_.code, kernels.size())));
    for (std::size_t k = 0; k < kernels.size(); ++k)
      program_.kernels.push_back({.name = kernels[k].name,
                                  .entry = image.entries[k].offset,
                                  .scratch_bytes = image.entries[k].scratch_bytes});
    program_.image = image.code;
    program_.architecture = machine::to_string(options_.code.machine.architecture);
    program_.features = options_.code.machine.features;
    return Done{};
  }

  Expected<std::vector<Timing>> run() {
    const std::vector<std::size_t> unit_of = unit_of_step_;
    std::vector<std::vector<double>> times(units_.size());
    std::vector<double> open(units_.size(), 0);
    runtime::SessionOptions session_options{.threads = options_.code.threads};
    session_options.observe = [&](std::size_t step, std::int64_t start, std::int64_t end) {
      const std::size_t unit = unit_of[step];
      if (unit == kNoUnit) return;
      open[unit] += static_cast<double>(end - start) / 1e9;
      if (!is_last_[step]) return;
      times[unit].push_back(open[unit]);
      open[unit] = 0;
    };
    TESSERA_TRY(const auto loaded, runtime::LoadedProgram::load(std::move(program_)));
    TESSERA_TRY(const auto session, engine::make_session(loaded, session_options));
    const auto once = [&]() -> Expected<double> {
      if (options_.code.stop != nullptr && *options_.code.stop)
        return Diagnostic{.id = "stopped", .message = "the measurement was stopped"};
      const Stopwatch watch;
      TESSERA_TRY_DONE(
          session->run(std::span<const std::byte* const>{}, std::span<std::byte* const>{}));
      return watch.seconds();
    };
    std::vector<Timing> timings(units_.size());
    const auto close_block = [&] {
      for (std::size_t u = 0; u < units_.size(); ++u) {
        if (times[u].empty()) continue;
        Timing& timing = timings[u];
        const double median = percentile(times[u], 0.5), least = std::ranges::min(times[u]);
        const bool first = timing.samples == 0;
        timing.seconds = first ? median : std::min(timing.seconds, median);
        timing.best = first ? least : std::min(timing.best, least);
        timing.block_minima.push_back(least);
        timing.samples += static_cast<std::int64_t>(times[u].size());
        times[u].clear();
      }
    };
    TESSERA_TRY(double took, once());  // pages are found, caches filled
    for (std::vector<double>& list : times) list.clear();
    const double box = options_.seconds_per_unit * static_cast<double>(units_.size());
    double spent = 0;
    for (int block = 0; block < kMostBlocks && (block < options_.least_blocks || spent < box);
         ++block) {
      TESSERA_TRY(took, once());
      spent += took;
      close_block();
    }
    return timings;
  }

 private:
  static constexpr std::size_t kNoUnit = SIZE_MAX;
  static constexpr std::int64_t kEnoughRepeats = 3, kMostRepeats = 64;
  static constexpr int kMostBlocks = 60;

  bool is_host(const Unit& unit) const {
    return std::holds_alternative<runtime::step::Host>(draft_.program.steps[unit.first]);
  }

  /// Values of a unit: inputs, constants among them, and outputs.
  struct Uses {
    std::vector<ValueIndex> inputs = {}, weights = {}, made = {};
  };

  Uses uses_of(const Unit& unit) const {
    Uses uses;
    std::set<ValueIndex> seen;
    const auto use = [&](ValueIndex value, std::vector<ValueIndex>& as) {
      if (seen.insert(value).second) as.push_back(value);
    };
    const auto read = [&](ValueIndex value) {
      const bool constant = draft_.program.values[value].home == Value::Home::Weight;
      use(value, constant ? uses.weights : uses.inputs);
    };
    for (std::size_t s = unit.first; s < unit.first + unit.count; ++s) {
      const runtime::Step& step = draft_.program.steps[s];
      if (const auto* launch = std::get_if<runtime::step::Launch>(&step)) {
        for (std::size_t i = 0; i + 1 < launch->patches.size(); ++i)
          read(launch->patches[i].at.value);
        if (!launch->patches.empty()) use(launch->patches.back().at.value, uses.made);
      } else if (const auto* copy = std::get_if<runtime::step::Copy>(&step)) {
        read(copy->from.value);
        use(copy->to.value, uses.made);
      } else if (const auto* host = std::get_if<runtime::step::Host>(&step)) {
        for (const ValueIndex value : host->inputs) read(value);
        for (const ValueIndex value : host->outputs) use(value, uses.made);
      }
    }
    return uses;
  }

  bool has_boxes(const Uses& uses) const {
    for (const auto* list : {&uses.inputs, &uses.made})
      for (const ValueIndex value : *list)
        if (draft_.program.values[value].home == Value::Home::Boxed) return true;
    return false;
  }

  ValueIndex add_value(ValueIndex of, Value::Home home, std::int64_t offset) {
    Value value = draft_.program.values[of];
    value.home = home;
    value.offset = offset;
    program_.values.push_back(std::move(value));
    return static_cast<ValueIndex>(program_.values.size() - 1);
  }

  /// Next range of the pool that was not read recently.
  ValueIndex add_content(ValueIndex of) {
    const Value& value = draft_.program.values[of];
    if (!is_float(value.dtype)) return add_value(of, Value::Home::Weight, 0);
    const std::int64_t bytes = aligned(value.bytes);
    if (next_ + bytes > numbers_) next_ = 0;
    const ValueIndex index = add_value(of, Value::Home::Weight, zeros_ + next_);
    next_ += bytes;
    return index;
  }

  void add_step(runtime::Step step, Program::Note note, std::size_t unit, bool last) {
    program_.steps.push_back(std::move(step));
    program_.notes.push_back(std::move(note));
    unit_of_step_.push_back(unit);
    is_last_.push_back(last);
  }

  void add(std::size_t u) {
    const Unit& unit = units_[u];
    const Uses uses = uses_of(unit);
    if (has_boxes(uses)) return;
    std::map<ValueIndex, ValueIndex> mapped;
    std::int64_t at = 0;
    const auto place = [&](ValueIndex value) {
      mapped.emplace(value, add_value(value, Value::Home::Arena, at));
      at += aligned(draft_.program.values[value].bytes);
    };
    for (const ValueIndex value : uses.weights) mapped.emplace(value, add_content(value));
    for (const ValueIndex value : uses.inputs) {
      place(value);
      const std::int64_t bytes = draft_.program.values[value].bytes;
      add_step(runtime::step::Copy{.from = {.value = add_content(value)},
                                   .to = {.value = mapped.at(value)},
                                   .bytes = bytes},
               {.what = "input"}, kNoUnit, false);
    }
    for (const ValueIndex value : uses.made) place(value);
    arena_ = std::max(arena_, at);
    const auto moved = [&](runtime::Address address) {
      return runtime::Address{.value = mapped.at(address.value), .offset = address.offset};
    };
    for (std::size_t s = unit.first; s < unit.first + unit.count; ++s) {
      runtime::Step step = draft_.program.steps[s];
      if (auto* launch = std::get_if<runtime::step::Launch>(&step)) {
        launch->kernel = kernel_of(launch->kernel);
        for (auto& patch : launch->patches) patch.at = moved(patch.at);
      } else if (auto* copy = std::get_if<runtime::step::Copy>(&step)) {
        copy->from = moved(copy->from);
        copy->to = moved(copy->to);
      } else if (auto* host = std::get_if<runtime::step::Host>(&step)) {
        for (auto* list : {&host->inputs, &host->outputs})
          for (ValueIndex& value : *list) value = mapped.at(value);
        program_.texts.push_back(draft_.program.texts[host->text]);
        host->text = static_cast<std::uint32_t>(program_.texts.size() - 1);
      }
      add_step(std::move(step), draft_.program.notes[s], u, s + 1 == unit.first + unit.count);
    }
  }

  std::uint32_t kernel_of(std::uint32_t of_draft) {
    const auto [it, is_new] =
        kernel_index_.emplace(of_draft, static_cast<std::uint32_t>(kernels_.size()));
    if (is_new) kernels_.push_back(of_draft);
    return it->second;
  }

  const program::Draft& draft_;
  std::span<const Unit> units_;
  const TimingOptions& options_;
  Program program_;
  std::vector<std::size_t> unit_of_step_;
  std::vector<bool> is_last_;
  std::vector<std::uint32_t> kernels_;                   // of the draft
  std::map<std::uint32_t, std::uint32_t> kernel_index_;  // by kernel of the draft
  std::size_t repeats_ = 0;
  std::int64_t zeros_ = 0, numbers_ = 0, next_ = 0, arena_ = 0;
};

}  // namespace

Expected<std::vector<Timing>> time_units(const program::Draft& draft, std::span<const Unit> units,
                                         const TimingOptions& options) {
  Bench bench(draft, units, options);
  bench.lay_out();
  TESSERA_TRY_DONE(bench.compile());
  return bench.run();
}

}  // namespace tessera::cost
