#include "tessera/program/limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "tessera/program/arena.h"

namespace tessera::program {
namespace {

using runtime::Step;
using runtime::Value;
using runtime::ValueIndex;
using runtime::step::CheckIndices;
using runtime::step::Copy;
using runtime::step::Host;
using runtime::step::Launch;
using runtime::step::Swap;

// About what a second is worth: only the choice between two ways depends on it.
constexpr double kFlopsPerSecond = 2e10, kBytesPerSecond = 1e10, kFileBytesPerSecond = 1.5e9;

/// Which parameters a kernel may write to: those that the place of a store is computed from.
std::vector<bool> written_params(const tile::Kernel& kernel) {
  const auto& params = kernel.params();
  const auto definition = tile::definitions(kernel);
  std::vector<bool> written(params.size());
  bool untold = false;
  std::vector<bool> seen(kernel.values.size());
  std::vector<tile::ValueId> open;
  tile::for_each_op(kernel, kernel.body, [&](tile::OpId id) {
    if (tile::writes_memory(kernel.ops[id].code)) open.push_back(kernel.ops[id].in[0]);
  });
  while (!open.empty()) {
    const tile::ValueId value = open.back();
    open.pop_back();
    if (seen[value]) continue;
    seen[value] = true;
    if (const auto param = std::ranges::find(params, value); param != params.end()) {
      written[static_cast<std::size_t>(param - params.begin())] = true;
    } else if (definition[value]) {
      const auto& in = kernel.ops[*definition[value]].in;
      open.insert(open.end(), in.begin(), in.end());
    } else {
      untold = untold || !kernel.type(value).is_scalar();  // made anew in each round of a loop
    }
  }
  if (untold) written.assign(params.size(), true);
  return written;
}

/// Rematerialization and swapping until the live values of every step fit.
class Limiter {
 public:
  Limiter(Draft& draft, std::int64_t bytes) : draft_(draft), bytes_(bytes) {
    for (const auto& kernel : draft.kernels) written_.push_back(written_params(*kernel));
  }

  Expected<Done> run() {
    // What a step uses at one time is the least that it needs; the rest of it lies in the file.
    find_uses();
    for (std::size_t at = 0; at < steps().size(); ++at) {
      while (used_at(at) > bytes_ && move_out(at)) continue;
    }
    // Each round gives something up; a target below the limit leaves room for holes.
    std::int64_t target = bytes_;
    while (true) {
      find_uses();
      const std::size_t fullest = fullest_step();
      if (alive_[fullest] <= target) {
        plan_arena(draft_);
        if (draft_.program.arena_bytes <= bytes_) break;
        target -= std::max<std::int64_t>(draft_.program.arena_bytes - bytes_, 64);
        continue;
      }
      if (split_one(fullest) || move_out(fullest)) continue;
      return Diagnostic{.id = "memory-limit",
                        .message = fmt::format("the activations do not fit into {} bytes", bytes_),
                        .help = "allow more with --memory-limit"};
    }
    give_places();
    return Done{};
  }

 private:
  std::vector<Step>& steps() { return draft_.program.steps; }
  std::vector<Value>& values() { return draft_.program.values; }
  bool in_arena(ValueIndex v) const { return draft_.program.values[v].home == Value::Home::Arena; }

  void find_uses() {
    uses_.assign(values().size(), {});
    for (std::size_t at = 0; at < steps().size(); ++at) {
      for (const ValueIndex value : touched(steps()[at])) uses_[value].push_back(at);
    }
    alive_.assign(steps().size() + 1, 0);
    for (std::size_t v = 0; v < uses_.size(); ++v) {
      if (uses_[v].empty() || !in_arena(static_cast<ValueIndex>(v))) continue;
      const std::int64_t bytes = (values()[v].bytes + 63) / 64 * 64;
      for (std::size_t at = uses_[v].front(); at <= uses_[v].back(); ++at) alive_[at] += bytes;
    }
  }

  std::int64_t used_at(std::size_t at) const {
    std::int64_t bytes = 0;
    for (const ValueIndex value : touched(draft_.program.steps[at])) {
      if (in_arena(value)) bytes += (draft_.program.values[value].bytes + 63) / 64 * 64;
    }
    return bytes;
  }

  std::size_t fullest_step() const {
    return static_cast<std::size_t>(std::ranges::max_element(alive_) - alive_.begin());
  }

  bool writes(const Step& step, ValueIndex value) const {
    if (const auto* launch = std::get_if<Launch>(&step)) {
      for (std::size_t i = 0; i < launch->patches.size(); ++i) {
        if (launch->patches[i].at.value == value && written_[launch->kernel][i]) return true;
      }
      return false;
    }
    if (const auto* copy = std::get_if<Copy>(&step)) return copy->to.value == value;
    if (const auto* host = std::get_if<Host>(&step))
      return std::ranges::count(host->outputs, value);
    return !std::holds_alternative<CheckIndices>(step);
  }

  bool swaps(std::size_t at) const {
    return std::holds_alternative<Swap>(draft_.program.steps[at]);
  }

  /// Interval between two uses of a value, in which it need not be in memory.
  struct IdleInterval {
    ValueIndex value = 0;
    std::size_t before = 0, after = 0;  // the uses
    std::optional<std::size_t> producer = {};
    double seconds = 0;  // cost of recomputing or swapping the value
  };

  /// The step that computes the value again before `after`, if one does.
  std::optional<std::size_t> producer_for(ValueIndex value, const IdleInterval& gap) const {
    const std::size_t first = uses_[value].front();
    const Step& step = draft_.program.steps[first];
    if (!std::holds_alternative<Launch>(step) && !std::holds_alternative<Copy>(step)) return {};
    for (const std::size_t use : uses_[value]) {
      if (use != first && use <= gap.before && writes(draft_.program.steps[use], value)) return {};
    }
    for (const ValueIndex other : touched(step)) {
      if (other == value) continue;
      if (writes(step, other)) return {};
      const Value::Home home = draft_.program.values[other].home;
      if (home == Value::Home::Input || home == Value::Home::Weight) continue;
      if (uses_[other].back() < gap.after) return {};
      for (const std::size_t use : uses_[other]) {
        if (use >= first && use < gap.after && writes(draft_.program.steps[use], other)) return {};
      }
    }
    return first;
  }

  /// Gives up the value that is cheapest, by its size, to do without at a step that does not use
  /// it.
  bool split_one(std::size_t at) {
    std::optional<IdleInterval> best;
    const auto cost = [&](const IdleInterval& gap) {
      return gap.seconds / static_cast<double>(values()[gap.value].bytes);
    };
    for (std::size_t v = 0; v < uses_.size(); ++v) {
      const auto value = static_cast<ValueIndex>(v);
      const std::vector<std::size_t>& uses = uses_[v];
      if (uses.empty() || !in_arena(value) || values()[v].bytes == 0) continue;
      const auto after = std::ranges::upper_bound(uses, at);
      if (after == uses.begin() || after == uses.end() || *(after - 1) == at) continue;
      IdleInterval gap{.value = value, .before = *(after - 1), .after = *after};
      if (swaps(gap.before) || swaps(gap.after)) continue;  // on its way already
      gap.seconds = 2 * static_cast<double>(values()[v].bytes) / kFileBytesPerSecond;
      if (const auto producer = producer_for(value, gap)) {
        const runtime::Program::Note& note = draft_.program.notes[*producer];
        const double again = note.flops / kFlopsPerSecond + note.bytes / kBytesPerSecond;
        if (again < gap.seconds) {
          gap.producer = producer;
          gap.seconds = again;
        }
      }
      if (!best || cost(gap) < cost(*best)) best = gap;
    }
    if (best) split(*best);
    return best.has_value();
  }

  void split(const IdleInterval& gap) {
    const auto fresh = static_cast<ValueIndex>(values().size());
    values().push_back(Value(values()[gap.value]));
    for (std::size_t at = gap.after; at < steps().size(); ++at) {
      retarget(steps()[at], gap.value, fresh);
    }
    if (gap.producer) {
      Step again = steps()[*gap.producer];
      retarget(again, gap.value, fresh);
      runtime::Program::Note note = draft_.program.notes[*gap.producer];
      ++recomputed_;
      flops_ += note.flops;
      insert({.at = gap.after, .how = "recomputed", .of = *gap.producer}, std::move(again),
             std::move(note));
      return;
    }
    const std::int64_t bytes = values()[gap.value].bytes;
    const auto swap = [&](ValueIndex value, bool out) {
      return Swap{.memory = {.value = value}, .bytes = bytes, .file_offset = swapped_, .out = out};
    };
    const runtime::Program::Note note{.what = "swap", .bytes = static_cast<double>(bytes)};
    const std::size_t producer = uses_[gap.value].front();
    insert({.at = gap.after, .how = "from the temporary file", .of = producer}, swap(fresh, false),
           note);
    insert({.at = gap.before + 1, .how = "to the temporary file", .of = producer},
           swap(gap.value, true), note);
    swapped_ += (bytes + 63) / 64 * 64;
  }

  /// Place of an additional step, and the earlier step whose result it provides.
  struct Insertion {
    std::size_t at = 0;
    std::string how = {};
    std::size_t of = 0;
  };

  void insert(const Insertion& as, Step step, runtime::Program::Note note) {
    const auto place = static_cast<std::ptrdiff_t>(as.at);
    std::vector<CompileReport::Step>& reported = draft_.report.steps;
    reported.insert(reported.begin() + place, {.what = note.what,
                                               .strategy = as.how,
                                               .group = {},
                                               .nodes = std::vector(reported[as.of].nodes)});
    draft_.program.notes.insert(draft_.program.notes.begin() + place, std::move(note));
    steps().insert(steps().begin() + place, std::move(step));
  }

  /// A value alive at a step lies in the file: rather one that the step uses, that is not moved
  /// there anyway, that is large.
  bool move_out(std::size_t at) {
    using Rank = std::tuple<bool, bool, std::int64_t>;
    std::optional<std::pair<Rank, ValueIndex>> best;
    for (std::size_t v = 0; v < uses_.size(); ++v) {
      const auto value = static_cast<ValueIndex>(v);
      const std::vector<std::size_t>& uses = uses_[v];
      if (uses.empty() || !in_arena(value) || values()[v].bytes == 0) continue;
      if (uses.front() > at || uses.back() < at) continue;
      const Rank rank = {std::ranges::binary_search(uses, at),
                         std::ranges::none_of(uses, [&](std::size_t use) { return swaps(use); }),
                         values()[v].bytes};
      if (!best || best->first < rank) best = {rank, value};
    }
    if (!best) return false;
    values()[best->second].home = Value::Home::File;
    in_file_ += values()[best->second].bytes;
    return true;
  }

  /// Places in the file: first the values that lie there, then those that come and go.
  void give_places() {
    const std::int64_t mapped = plan_file(draft_);
    for (Step& step : steps()) {
      if (auto* swap = std::get_if<Swap>(&step)) swap->file_offset += mapped;
    }
    draft_.program.swap_bytes = mapped + swapped_;
    const auto note = [&](std::string text) { draft_.report.notes.push_back(std::move(text)); };
    const auto megabytes = [](std::int64_t bytes) { return static_cast<double>(bytes) / 1e6; };
    if (recomputed_ > 0) {
      note(fmt::format("{} values are computed again, {:.1f} million operations", recomputed_,
                       flops_ / 1e6));
    }
    if (swapped_ > 0) {
      note(fmt::format("{:.2f} MB go to a temporary file and back", megabytes(swapped_)));
    }
    if (in_file_ > 0) {
      note(fmt::format("{:.2f} MB of values lie in a temporary file", megabytes(in_file_)));
    }
  }

  Draft& draft_;
  std::int64_t bytes_;
  std::vector<std::vector<bool>> written_;      // by kernel and parameter
  std::vector<std::vector<std::size_t>> uses_;  // by value: steps
  std::vector<std::int64_t> alive_;             // by step: bytes
  std::int64_t swapped_ = 0, in_file_ = 0, recomputed_ = 0;
  double flops_ = 0;
};

}  // namespace

Expected<Done> limit_memory(Draft& draft, std::int64_t bytes) {
  plan_arena(draft);
  const bool straight = std::ranges::all_of(draft.program.steps, [](const Step& step) {
    return std::holds_alternative<Launch>(step) || std::holds_alternative<Copy>(step) ||
           std::holds_alternative<Host>(step) || std::holds_alternative<CheckIndices>(step);
  });
  if (draft.program.arena_bytes <= bytes) return Done{};
  if (!straight) {
    return Diagnostic{
        .id = "memory-limit",
        .message = fmt::format("the activations take {} bytes", draft.program.arena_bytes),
        .note = "memory limits are not supported for models with loops",
        .help = "allow more with --memory-limit"};
  }
  return Limiter(draft, bytes).run();
}

}  // namespace tessera::program
