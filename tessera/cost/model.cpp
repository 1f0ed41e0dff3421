#include "tessera/cost/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <set>
#include <utility>

#include "tessera/cost/roofline.h"
#include "tessera/cost/store.h"
#include "tessera/cost/timing.h"
#include "tessera/machine/peak.h"
#include "tessera/program/plan.h"

namespace tessera::cost {
namespace {

constexpr std::size_t kBatch = 64;  // units that are timed, and kept, together
constexpr std::int64_t kMostPool = std::int64_t{256} << 20;  // bytes of what stands for weights

class StoredModel final : public Model {
 public:
  StoredModel(ModelOptions options, Store store, Target target,
              std::vector<Measurement> measurements)
      : options_(std::move(options)),
        store_(std::move(store)),
        target_(std::move(target)),
        can_measure_(target_of(options_.code.machine, target_.threads).name == target_.name &&
                     target_of(machine::host(), target_.threads).name == target_.name),
        roofline_(target_, measurements),
        lowerings_(program::lowerings_for(options_.code)) {
    for (Measurement& one : measurements) {
      std::string key = one.key;
      known_.emplace(std::move(key), std::move(one));
    }
  }

  bool can_measure() const override { return can_measure_; }

  Expected<Estimate> estimate(const Graph& graph, Boundary boundary) override {
    TESSERA_TRY(const program::Draft draft, planned(graph, boundary));
    return estimate_of(units_of(draft.program, draft.report));
  }

  Estimate estimate(const runtime::Program& program,
                    const program::CompileReport& report) const override {
    return estimate_of(units_of(program, report));
  }

  Expected<Estimate> measure(const Graph& graph, Boundary boundary) override {
    if (!can_measure_) return estimate(graph, boundary);
    TESSERA_TRY(const program::Draft draft, planned(graph, boundary));
    const std::vector<Unit> units = units_of(draft.program, draft.report);
    std::vector<Unit> unknown;
    std::set<std::string> keys;
    for (const Unit& unit : units)
      if (find(unit) == nullptr && keys.insert(unit.key).second) unknown.push_back(unit);
    for (std::size_t first = 0; first < unknown.size(); first += kBatch)
      TESSERA_TRY_DONE(measure(
          draft, std::span(unknown).subspan(first, std::min(kBatch, unknown.size() - first))));
    if (!unknown.empty()) refit();
    return estimate_of(units);
  }

 private:
  Expected<program::Draft> planned(const Graph& graph, Boundary boundary) {
    TESSERA_TRY(program::Draft draft, program::plan(graph, {.options = options_.code,
                                                            .lowerings = lowerings_,
                                                            .boundary = boundary}));
    std::int64_t weights = 0;
    for (const runtime::Value& value : draft.program.values)
      if (value.home == runtime::Value::Home::Weight) weights += value.bytes;
    // Regions of a graph are timed as parts of it: with the weights of the largest graph seen so
    // far.
    weight_bytes_ = std::max(weight_bytes_, weights);
    return draft;
  }

  /// Measurement of a unit; if the code has changed since, it is measured again. The code of other
  /// targets is not known.
  const Measurement* find(const Unit& unit) const {
    const auto it = known_.find(unit.key);
    if (it == known_.end() || (can_measure_ && it->second.code != unit.code)) return nullptr;
    return &it->second;
  }

  Estimate estimate_of(const std::vector<Unit>& units) const {
    Estimate estimate;
    for (const Unit& unit : units) {
      const Measurement* const found = find(unit);
      const double modelled = unit.trip_count * roofline_.seconds(unit.work);
      estimate.kernels.push_back(
          {.key = unit.key,
           .first_step = unit.first,
           .steps = unit.count,
           .what = unit.what,
           .strategy = unit.strategy,
           .trip_count = unit.trip_count,
           .seconds = found != nullptr ? unit.trip_count * found->seconds : modelled,
           .modelled = modelled,
           .measured = found != nullptr});
      estimate.seconds += estimate.kernels.back().seconds;
      estimate.measured = estimate.measured && found != nullptr;
    }
    return estimate;
  }

  Expected<Done> measure(const program::Draft& draft, std::span<const Unit> units) {
    TESSERA_TRY_DONE(introduce());
    const std::int64_t most = std::min(2 * target_.machine.l3, kMostPool);
    double expected = 0;
    for (const Unit& unit : units) expected += roofline_.seconds(unit.work);
    TESSERA_TRY(
        const std::vector<Timing> timings,
        time_units(draft, units,
                   {.code = options_.code,
                    .seconds_per_unit = options_.seconds_per_kernel,
                    .expected_seconds = expected,
                    .weight_bytes = std::clamp<std::int64_t>(weight_bytes_, 1 << 20, most)}));
    std::vector<Measurement> made;
    for (std::size_t i = 0; i < units.size(); ++i) {
      if (timings[i].samples == 0 || !(timings[i].best > 0)) continue;
      const Unit& unit = units[i];
      made.push_back({.key = unit.key,
                      .code = unit.code,
                      .what = unit.what,
                      .strategy = unit.strategy,
                      .operations = unit.work.operations,
                      .bytes = unit.work.bytes,
                      .launches = unit.work.launches,
                      .seconds = timings[i].seconds,
                      .best = timings[i].best,
                      .samples = timings[i].samples,
                      .when = std::time(nullptr)});
    }
    TESSERA_TRY_DONE(store_.put(target_.name, made));
    for (Measurement& one : made) known_.insert_or_assign(one.key, std::move(one));
    return Done{};
  }

  /// Adds the target to the store before its measurements.
  Expected<Done> introduce() {
    if (std::exchange(is_introduced_, true)) return Done{};
    TESSERA_TRY(const std::optional<Target> found, store_.find(target_.name));
    if (found) return Done{};
    target_.flops_per_second = machine::measured_peak() * target_.threads;
    target_.bytes_per_second = machine::measured_bandwidth() * std::min(target_.threads, 4);
    return store_.put(target_);
  }

  void refit() {
    std::vector<Measurement> all;
    for (const auto& [key, one] : known_) all.push_back(one);
    roofline_ = Roofline(target_, all);
  }

  ModelOptions options_;
  Store store_;
  Target target_;
  bool can_measure_;
  bool is_introduced_ = false;
  std::map<std::string, Measurement> known_;  // by key
  Roofline roofline_;
  program::Lowerings lowerings_;
  std::int64_t weight_bytes_ = 0;  // of the largest graph that was seen
};

}  // namespace

Expected<std::unique_ptr<Model>> open_model(ModelOptions options) {
  TESSERA_TRY(Store store, options.target.empty() ? Store::open(options.store)
                                                  : Store::open_existing(options.store));
  Target target = target_of(options.code.machine, options.code.threads);
  const std::string name = options.target.empty() ? target.name : options.target;
  TESSERA_TRY(const std::optional<Target> found, store.find(name));
  if (found && name == target.name) {
    // Generates code for the actual machine, not for the one that the file describes; only the
    // rates are taken from it.
    target.flops_per_second = found->flops_per_second;
    target.bytes_per_second = found->bytes_per_second;
    target.seconds_per_launch = found->seconds_per_launch;
  } else if (found) {
    target = *found;
    options.code.machine = target.machine;
    options.code.threads = target.threads;
  } else if (!options.target.empty()) {
    TESSERA_TRY(const std::vector<Target> all, store.targets());
    std::vector<std::string> names;
    for (const Target& one : all) names.push_back(one.name);
    return Diagnostic{.id = "store-no-target",
                      .where = {.file = options.store.string()},
                      .message = fmt::format("the store knows no target '{}'", name),
                      .note = names.empty() ? "it knows none at all"
                                            : fmt::format("it knows {}", fmt::join(names, ", "))};
  }
  TESSERA_TRY(std::vector<Measurement> measurements, store.measurements(target.name));
  return std::unique_ptr<Model>(std::make_unique<StoredModel>(
      std::move(options), std::move(store), std::move(target), std::move(measurements)));
}

}  // namespace tessera::cost
