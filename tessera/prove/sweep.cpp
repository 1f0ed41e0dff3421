#include "tessera/prove/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tessera/ir/control.h"
#include "tessera/ir/text.h"
#include "tessera/ops/operators.h"
#include "tessera/prove/alarm.h"
#include "tessera/prove/assumptions.h"
#include "tessera/prove/constant_readings.h"
#include "tessera/prove/constants.h"
#include "tessera/prove/distinguish.h"
#include "tessera/prove/fingerprint.h"
#include "tessera/prove/input_ranges.h"
#include "tessera/prove/model_runs.h"
#include "tessera/prove/prove.h"
#include "tessera/prove/size_cases.h"
#include "tessera/support/cpu_time.h"
#include "tessera/support/hash.h"

namespace tessera::prove {
namespace {

constexpr std::int64_t kMostKeyed = 1 << 10;  // elements of a constant that a proof may look at
constexpr std::size_t kMostScreened = 40;     // nodes of a window that is run
constexpr int kMostDiffering = 2;             // windows of a pair whose sides differ in numbers
// CPU time, so that a verdict does not depend on the load of the machine.
constexpr double kScreenSeconds = 1;  // of running a window
constexpr double kSecondsByName = 1;  // of matching by names, after a pair that failed
constexpr double kCaseSeconds = 5;    // of matching with cases told apart
constexpr double kSearchSeconds = 1;  // for an input that tells quantized models apart

/// Whether every run of the graph gives the same.
bool is_pure(const Graph& graph) {
  return std::ranges::all_of(graph.nodes(), [&](const GraphNode& node) {
    return node.op->pure && std::ranges::all_of(graph.subgraphs(node), [](const auto& subgraph) {
             return is_pure(*subgraph);
           });
  });
}

/// Two models, one of which is the source: values of the target are matched with its values.
class Sweep {
 public:
  Sweep(const Aligned& aligned, const SweepOptions& options, ConstantReadings& readings)
      : aligned_(aligned),
        options_(options),
        readings_(readings),
        alarm_(options.stop),
        runs_(aligned, options) {
    for (const ValueId id : aligned_.source.inputs())
      result_.input_names.push_back(aligned_.source.name(id));
  }

  /// Takes the models as they were prepared, source and target.
  void start(std::array<Prepared, 2> prepared);
  /// Tries to find an equal value of the source for each value of the target, and whether this is
  /// so for all outputs. Before `observe`, by their names.
  bool match_all();
  /// The same with cases told apart in each proof, for some seconds.
  bool match_by_cases();
  /// Only the outputs, of small models.
  bool match_outputs_by_cases();
  bool have_one_type(std::size_t output) const;
  /// Runs both models as they were prepared; a refutation where they differ.
  std::optional<Refuted> observe();
  ModelRuns& runs() { return runs_; }
  Proved proved() const;
  Verdict unknown();
  /// Whether the search by names ended at a pair that seems to differ, or took long without a proof
  /// of some pair: a run of both models tells more than another search.
  bool is_suspect() const { return is_suspect_; }
  /// What is said of the work beside the verdict.
  SweepResult report() &&;

 private:
  /// Whether the two sides of a window differ on random numbers; false where they cannot be run.
  bool differs(const Window& window);
  void match(ValueId target);
  /// Whether each output of the target is that of the source, also where it has a partner already.
  bool match_outputs();
  struct Candidate {
    ValueId value;
    enum class As : std::uint8_t { Same, Reshaped, Transposed, Offset } as = As::Same;
    Ints order = {};
  };
  std::vector<Candidate> candidates(ValueId target) const;
  std::optional<ValueId> derived(const Candidate& candidate, ValueId target);
  bool prove_pair(ClassId source, ValueId target);
  bool prove_equal(ClassId source, ClassId target);
  bool prove_window(const Window& window);
  void find_unrelated();

  bool is_late() const { return by_cases_ && by_cases_->seconds() > kCaseSeconds; }
  void show(std::size_t done, std::string_view what) const {
    if (options_.progress) options_.progress({done, aligned_.target.value_count() + 1, what});
  }

  /// Whether all proofs until now read constants alike.
  bool reads_alike() { return readings_.agree(options_.prover, assumptions_); }

  const Aligned& aligned_;
  const SweepOptions& options_;
  ConstantReadings& readings_;
  Alarm alarm_;
  ModelRuns runs_;
  std::optional<Pairing> pairing_;
  std::optional<ConstantMatcher> constants_;
  std::map<std::string, bool> tried_;
  struct Failed {
    ClassId source = 0;     // what the value may be equal to
    std::size_t nodes = 0;  // in the smallest window
  };
  std::map<std::uint32_t, Failed> failed_;  // by value of the target
  std::set<Assumption> assumptions_;
  int failures_ = 0;
  CpuStopwatch matching_;
  bool is_suspect_ = false;  // a pair of one name differs in numbers, or took long to compare
  std::string current_;      // what is compared
  bool splits_ = false;
  std::optional<CpuStopwatch> by_cases_;  // since match_by_cases()
  SweepResult result_;
};

void Sweep::start(std::array<Prepared, 2> prepared_models) {
  auto& [source, target] = prepared_models;
  assumptions_.insert(aligned_.assumptions.begin(), aligned_.assumptions.end());
  for (const Prepared* prepared : {&source, &target})
    assumptions_.insert(prepared->assumptions.begin(), prepared->assumptions.end());
  pairing_.emplace(std::move(source), std::move(target));
  pairing_->number(Side::Source);
  pairing_->number(Side::Target);
  const Prepared& prepared = pairing_->prepared(Side::Target);
  for (std::uint32_t i = 0; i < prepared.graph.value_count(); ++i)
    if (prepared.live[i]) {
      ++result_.values;
      if (pairing_->paired(pairing_->of(Side::Target, {i}))) ++result_.congruent;
    }
}

Proved Sweep::proved() const {
  Proved proved;
  std::set<Assumption> asked;
  for (const Side side : kSides) {
    const Prepared& prepared = pairing_->prepared(side);
    for (const GraphNode& node : prepared.graph.nodes())
      for (const ValueId id : prepared.graph.outputs(node))
        if (prepared.live[id.index] && !pairing_->paired(pairing_->of(side, id)))
          if (const auto kind = asked_of_operands(prepared.graph, node))
            asked.insert(assumption_of(*kind));
  }
  asked.insert(assumptions_.begin(), assumptions_.end());
  proved.assumptions.assign(asked.begin(), asked.end());
  if (constants_)
    for (Assumption& assumption : constants_->assumptions())
      proved.assumptions.push_back(std::move(assumption));
  return proved;
}

Verdict Sweep::unknown() {
  find_unrelated();
  if (!alarm_.over()) return Unknown{"a pair of values is not related"};
  return Unknown{current_.empty() ? "the time is over"
                                  : fmt::format("the time is over, after {}", current_)};
}

std::optional<Refuted> Sweep::observe() {
  return runs_.observe(pairing_->graph(Side::Source), pairing_->graph(Side::Target));
}

SweepResult Sweep::report() && {
  result_.divergence = runs_.divergence();
  return std::move(result_);
}

std::vector<Sweep::Candidate> Sweep::candidates(ValueId target) const {
  constexpr std::size_t kMost = 4;
  std::vector<Candidate> found;
  const Prepared &ours = pairing_->prepared(Side::Source),
                 &theirs = pairing_->prepared(Side::Target);
  const auto& [source_prints, target_prints] = runs_.prints();
  const std::string name = theirs.graph.name(target);
  const auto is_better = [&](const Candidate& a, const Candidate& b) {
    const auto named = [&](const Candidate& c) { return ours.graph.name(c.value) == name; };
    if (named(a) != named(b)) return named(a);
    return a.as < b.as;
  };
  if (target.index >= target_prints.size() || !target_prints[target.index]) {
    for (std::uint32_t i = 0; i < ours.graph.value_count(); ++i)
      if (ours.live[i] && ours.graph.is_named({i}) && ours.graph.name({i}) == name)
        found.push_back({{i}});
    return found;
  }
  const Fingerprint& wanted = *target_prints[target.index];
  for (std::uint32_t i = 0; i < source_prints.size(); ++i) {
    if (!source_prints[i] || !ours.live[i]) continue;
    const Fingerprint& print = *source_prints[i];
    if (may_equal(print, wanted))
      found.push_back({{i}});
    else if (wanted.telling && may_reshape(print, wanted))
      found.push_back({{i}, Candidate::As::Reshaped});
    else if (may_be_signed(print, wanted) || may_be_signed(wanted, print))
      found.push_back({{i}, Candidate::As::Offset});
    else if (auto order = may_transpose(print, wanted))
      found.push_back({{i}, Candidate::As::Transposed, *std::move(order)});
  }
  std::ranges::stable_sort(found, is_better);
  if (found.size() > kMost) found.resize(kMost);
  return found;
}

std::optional<ValueId> Sweep::derived(const Candidate& candidate, ValueId target) {
  switch (candidate.as) {
    case Candidate::As::Same: return candidate.value;
    case Candidate::As::Reshaped: {
      const Type& type = pairing_->graph(Side::Target).type(target);
      Ints shape;
      for (const Dim& dim : type.shape.value_or(Shape{})) {
        if (!dim.constant()) return std::nullopt;
        shape.push_back(*dim.constant());
      }
      const auto rank = static_cast<std::int64_t>(shape.size());
      return pairing_->derive(Side::Source, *op::reshape, {},
                              {candidate.value, pairing_->derive_constant(
                                                    Side::Source, Tensor::of<std::int64_t>(
                                                                      DType::I64, {rank}, shape))});
    }
    case Candidate::As::Transposed:
      return pairing_->derive(Side::Source, *op::transpose, {{"perm", candidate.order}},
                              {candidate.value});
    case Candidate::As::Offset: {
      // i8 and u8 of one quantization are 128 apart.
      const DType dtype = pairing_->graph(Side::Target).type(target).dtype;
      const std::int32_t offset[] = {dtype == DType::U8 ? 128 : -128};
      const ValueId by =
          pairing_->derive_constant(Side::Source, Tensor::of<std::int32_t>(DType::I32, {}, offset));
      const auto cast = [&](ValueId value, DType to) {
        return pairing_->derive(Side::Source, *op::cast, {{"to", std::string(to_string(to))}},
                                {value});
      };
      const auto wide = cast(candidate.value, DType::I32);
      const auto moved =
          wide ? pairing_->derive(Side::Source, *op::add, {}, {*wide, by}) : std::nullopt;
      return moved ? cast(*moved, dtype) : std::nullopt;
    }
  }
  return std::nullopt;
}

bool Sweep::match_all() {
  if (pairing_->all_outputs_paired()) return reads_alike();
  if (!constants_) constants_.emplace(*pairing_);
  result_.proved = 0;
  failures_ = 0;
  matching_ = CpuStopwatch();
  is_suspect_ = false;
  failed_.clear();
  pairing_->number(Side::Target, [this](ValueId value) { match(value); });
  return match_outputs() && reads_alike();
}

bool Sweep::have_one_type(std::size_t output) const {
  const Graph &source = pairing_->graph(Side::Source), &target = pairing_->graph(Side::Target);
  return source.type(source.outputs()[output]) == target.type(target.outputs()[output]);
}

bool Sweep::match_outputs_by_cases() {
  constexpr std::size_t kMostValues = 40;
  if (result_.values > kMostValues) return false;
  if (!constants_) constants_.emplace(*pairing_);
  splits_ = true;
  tried_.clear();
  bool matched = true;
  for (std::size_t i = 0; i < aligned_.source.outputs().size() && matched; ++i) {
    const ClassId source = pairing_->of(Side::Source, pairing_->graph(Side::Source).outputs()[i]),
                  target = pairing_->of(Side::Target, pairing_->graph(Side::Target).outputs()[i]);
    if (source == target) continue;
    if (!have_one_type(i)) {
      matched = false;
      break;
    }
    Window window(*pairing_, source, target);
    window.keep_small();
    for (int step = 0; step < options_.most_growth && !window.too_large() && window.grow();) ++step;
    matched = prove_window(window);
  }
  splits_ = false;
  tried_.clear();
  return matched && reads_alike();
}

bool Sweep::match_by_cases() {
  splits_ = true;
  tried_.clear();
  by_cases_.emplace();
  return match_all();
}

bool Sweep::match_outputs() {
  for (std::size_t i = 0; i < aligned_.source.outputs().size(); ++i) {
    const ClassId source = pairing_->of(Side::Source, pairing_->graph(Side::Source).outputs()[i]),
                  target = pairing_->of(Side::Target, pairing_->graph(Side::Target).outputs()[i]);
    if (source == target) continue;
    if ((!pairing_->paired(target) && !splits_) || !have_one_type(i)) return false;
    if (alarm_.over() || !prove_equal(source, target)) return false;
  }
  return true;
}

void Sweep::match(ValueId target) {
  // What follows on a pair that is not related is hardly ever related. Names alone tell less.
  const int patience = runs_.are_observed() ? 24 : 4;
  if (alarm_.over() || failures_ > patience || is_suspect_ || is_late()) return;
  if (!runs_.are_observed() && failures_ > 0 && matching_.seconds() > kSecondsByName) {
    is_suspect_ = true;
    return;
  }
  current_ = fmt::format("comparing {}", pairing_->graph(Side::Target).name(target));
  show(target.index, current_);
  if (pairing_->graph(Side::Target).constant(target) != nullptr) {
    if (constants_->match(target)) ++result_.proved;
    return;
  }
  if (constants_->match_computed(target)) {
    ++result_.proved;
    return;
  }
  for (const Candidate& candidate : candidates(target)) {
    const auto value = derived(candidate, target);
    if (!value || !compatible(pairing_->graph(Side::Source).type(*value),
                              pairing_->graph(Side::Target).type(target)))
      continue;
    if (prove_pair(pairing_->of(Side::Source, *value), target)) {
      ++result_.proved;
      failures_ = 0;
      failed_.erase(target.index);
      return;
    }
    ++failures_;
    if (alarm_.over()) return;
  }
}

bool Sweep::prove_pair(ClassId source, ValueId target) {
  const ClassId own = pairing_->of(Side::Target, target);
  if (source == own) return true;  // a transpose of a transpose, for example
  failed_.emplace(target.index, Failed{source, Window(*pairing_, source, own).nodes()});
  if (!prove_equal(source, own)) return false;
  pairing_->assign(Side::Target, target, source);
  return true;
}

bool Sweep::differs(const Window& window) {
  constexpr std::int64_t kMostElements = 1 << 25;
  if (window.too_large() || window.nodes() > kMostScreened) return false;
  const auto source = window.graph(Side::Source), target = window.graph(Side::Target);
  if (!source || !target || !is_pure(*source) || !is_pure(*target)) return false;
  std::vector<interp::Value> inputs;
  std::vector<Type> types;
  for (const ClassId id : window.cut()) {
    const Window::Member of = window.member(Side::Source, id);
    const Type& type = pairing_->graph(of.side).type(of.value);
    if (const Tensor* constant = pairing_->graph(of.side).constant(of.value)) {
      inputs.push_back({*constant});
      continue;
    }
    const auto sized = concrete({type}, 3);
    if (!sized || *sized != std::vector{type} || !is_float(type.dtype) ||
        product(*type.shape).constant().value_or(kMostElements) >= kMostElements)
      return false;
    inputs.push_back({make_inputs({type}, {.seed = options_.seed + id}).front()});
  }
  alarm_.set(kScreenSeconds);
  const auto results = interp::run_as<float>(
      joint_graph(*source, *target).graph, inputs,
      {.threads = options_.threads, .memory_limit = options_.memory_limit, .stop = alarm_.flag()});
  if (!results || results->size() != 2) return false;
  const std::vector<Datum> a{(*results)[0].datum}, b{(*results)[1].datum};
  return mostly_finite(a) && mostly_finite(b) && furthest_apart(a, b).relative > 10 * kDiffers;
}

bool Sweep::prove_equal(ClassId source, ClassId own) {
  const CpuStopwatch watch;
  int differing = 0;
  Window window(*pairing_, source, own);
  for (int step = 0; step <= options_.most_growth && !window.too_large(); ++step) {
    for (int again = 0;
         again < 4 && !(window.loose(Side::Source).empty() && window.loose(Side::Target).empty());
         ++again) {
      if (!constants_->absorb(window)) break;
      window = Window(*pairing_, source, own);
      for (int i = 0; i < step; ++i) window.grow();
    }
    // A proof that failed is worth a look at numbers before another one is tried.
    const bool screened = differing > 0 && differs(window);
    if (!screened && prove_window(window)) return true;
    if (!screened && (!window.loose(Side::Source).empty() || !window.loose(Side::Target).empty())) {
      Window small = window;
      small.keep_small();
      if (prove_window(small)) return true;
    }
    if (screened || (step == 0 && differs(window))) ++differing;
    // Models of the same names are run before much time is spent on what differs in a window.
    if (differing > kMostDiffering && !runs_.are_observed()) {
      is_suspect_ = true;
      return false;
    }
    if (alarm_.over() || watch.seconds() > options_.pair_seconds || is_late() || !window.grow())
      return false;
  }
  return false;
}

bool Sweep::prove_window(const Window& window) {
  if (window.too_large() || !window.loose(Side::Source).empty() ||
      !window.loose(Side::Target).empty())
    return false;
  const auto source = window.graph(Side::Source), target = window.graph(Side::Target);
  if (!source || !target || !is_pure(*source) || !is_pure(*target)) return false;
  std::string key = to_text(*source) + to_text(*target);
  // What a text leaves out of constants counts as well.
  Hasher content;
  content.add(source->hash());
  content.add(target->hash());
  Options how{.seed = options_.seed, .tries = 0, .splits = splits_, .stop = alarm_.flag()};
  for (std::size_t i = 0; i < window.cut().size(); ++i) {
    const Window::Member of = window.member(Side::Source, window.cut()[i]);
    if (const Tensor* constant = pairing_->graph(of.side).constant(of.value))
      how.contents.emplace(i, *constant);
    if (how.contents.contains(i) && how.contents.at(i).count() <= kMostKeyed)
      content.add_bytes(how.contents.at(i).bytes.view());
  }
  key += std::to_string(content.value());
  const auto [it, is_new] = tried_.emplace(key, false);
  if (!is_new) return it->second;
  alarm_.set(options_.pair_seconds);
  const Verdict verdict = options_.prover(*source, *target, how);
  const auto* yes = std::get_if<Proved>(&verdict);
  if (yes == nullptr || !yes->guard.empty()) return false;
  assumptions_.insert(yes->assumptions.begin(), yes->assumptions.end());
  how.stop = options_.stop;  // which outlives this comparison
  readings_.add(*source, *target, how, yes->assumptions);
  return it->second = true;
}

/// The smallest window among the unpaired values that an unpaired output depends on.
void Sweep::find_unrelated() {
  const Graph& graph = pairing_->graph(Side::Target);
  std::vector<ValueId> next;
  std::optional<Failed> smallest;
  ValueId smallest_value;
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    const ValueId output = graph.outputs()[i];
    const ClassId wanted = pairing_->of(Side::Source, pairing_->graph(Side::Source).outputs()[i]);
    if (pairing_->of(Side::Target, output) == wanted) continue;
    next.push_back(output);
    failed_.emplace(output.index, Failed{wanted, Window::kMostNodes});
  }
  std::set<ValueId> seen;
  while (!next.empty()) {
    const ValueId value = next.back();
    next.pop_back();
    if (!seen.insert(value).second) continue;
    if (const auto it = failed_.find(value.index);
        it != failed_.end() && (!smallest || it->second.nodes < smallest->nodes)) {
      smallest = it->second;
      smallest_value = value;
    }
    if (const GraphNode* node = graph.producer(value))
      for (const ValueId operand : graph.inputs(*node))
        if (operand.present() && !pairing_->paired(pairing_->of(Side::Target, operand)))
          next.push_back(operand);
  }
  if (!smallest) return;
  const Window window(*pairing_, smallest->source, pairing_->of(Side::Target, smallest_value));
  auto source = window.graph(Side::Source), target = window.graph(Side::Target);
  if (source && target) result_.unrelated = Unrelated{*std::move(source), *std::move(target)};
}

std::size_t dequantizations(const Graph& graph) {
  return static_cast<std::size_t>(std::ranges::count_if(
      graph.nodes(), [](const GraphNode& node) { return node.op == op::dequantize_linear; }));
}

/// Proofs with scales as the products that they are computed as, in one direction or the other.
class ScaleSweeps {
 public:
  ScaleSweeps(const Aligned& aligned, const Aligned& reversed, const SweepOptions& options,
              ConstantReadings& readings)
      : of_{&aligned, &reversed}, options_(options), readings_(readings) {
    // Operators of integers are more easily found equal to what dequantizes their operands.
    if (dequantizations(reversed.source) > dequantizations(aligned.source))
      std::swap(order_[0], order_[1]);
  }

  /// Nothing where there is no proof.
  std::optional<SweepResult> matched_by_names() {
    for (const std::size_t i : order_) {
      auto models = prepared_pair(*of_[i], options_.stop, ScaleReading::Products);
      if (!models) return std::nullopt;
      if (!models_) models_ = in_order(*models, i);
      Sweep& sweep = sweeps_[i].emplace(*of_[i], options_, readings_);
      sweep.start(*std::move(models));
      if (sweep.match_all()) return result(sweep);
    }
    for (const std::size_t i : order_) {
      auto models = prepared_pair(*of_[i], options_.stop, ScaleReading::Integers);
      if (!models) return std::nullopt;
      Sweep sweep(*of_[i], options_, readings_);
      sweep.start(*models);
      if (!sweep.match_all()) continue;
      models_ = in_order(*models, i);
      return result(sweep);
    }
    return std::nullopt;
  }
  void use_exact_scales(ModelRuns& runs) const {
    if (models_) runs.use_exact_scales((*models_)[0], (*models_)[1]);
  }
  /// A refutation by the runs of the models.
  std::optional<Refuted> observe(ModelRuns& runs) {
    if (!models_) return std::nullopt;
    use_exact_scales(runs);
    const auto& [source, target] = *models_;
    auto refuted = runs.observe(source.graph, target.graph);
    if (sweeps_[0] && sweeps_[1]) {
      sweeps_[1]->runs().take_observations(runs);
      sweeps_[0]->runs().take_observations(sweeps_[1]->runs());
    }
    return refuted;
  }
  /// The same after `observe`, which shows tensors that are 128 apart or transposed, as those of
  /// images with channels last are.
  std::optional<SweepResult> matched_by_run() {
    if (!sweeps_[0] || !sweeps_[1]) return std::nullopt;
    for (const std::size_t i : order_)
      if (sweeps_[i]->match_all()) return result(*sweeps_[i]);
    return std::nullopt;
  }

 private:
  /// Source and target of what was prepared as `of_[i]`.
  static std::array<Prepared, 2> in_order(const std::array<Prepared, 2>& models, std::size_t i) {
    return i == 0 ? models : std::array{models[1], models[0]};
  }
  static SweepResult result(Sweep& sweep) {
    Proved proved = sweep.proved();
    SweepResult made = std::move(sweep).report();
    made.verdict = std::move(proved);
    return made;
  }

  std::array<const Aligned*, 2> of_;
  std::array<std::size_t, 2> order_ = {0, 1};
  const SweepOptions& options_;
  ConstantReadings& readings_;
  std::optional<std::array<Prepared, 2>> models_ = {};  // source and target
  std::array<std::optional<Sweep>, 2> sweeps_ = {};
};

/// A verdict that does not depend on which of the models is the source: proofs are looked for in
/// both directions before an input is looked for that tells the models apart.
SweepResult decided(const SizeCase& size_case, const SweepOptions& options,
                    ConstantReadings& readings) {
  const Aligned& aligned = size_case.aligned;
  const Aligned reversed{.source = aligned.target,
                         .target = aligned.source,
                         .inputs = aligned.inputs,
                         .assumptions = aligned.assumptions};
  Sweep forward(aligned, options, readings), backward(reversed, options, readings);
  const auto result = [&](Verdict verdict) {
    SweepResult made = std::move(forward).report();
    made.verdict = std::move(verdict);
    return made;
  };
  auto models = size_case.prepared ? Expected<std::array<Prepared, 2>>(*size_case.prepared)
                                   : prepared_pair(aligned, options.stop);
  if (!models) {
    auto refuted = forward.runs().search();
    if (!refuted) refuted = forward.runs().undefined_difference();
    return result(refuted ? Verdict(*std::move(refuted)) : Unknown{models.error().message});
  }
  // Guards that a target needs beyond its source make proofs one-sided.
  const auto proved_by = [&](bool (Sweep::*match)()) -> std::optional<SweepResult> {
    for (Sweep* sweep : {&forward, &backward})
      if ((sweep->*match)()) return result(forward.runs().confirmed(sweep->proved()));
    return std::nullopt;
  };
  const bool quantized = std::ranges::all_of(
      *models, [](const Prepared& prepared) { return is_quantized(prepared.graph); });
  forward.start(*models);
  // Tools keep most names, and large models take long to run.
  if (forward.match_all()) return result(forward.runs().confirmed(forward.proved()));
  if (quantized) {
    ScaleSweeps scales(aligned, reversed, options, readings);
    const auto proved_by_scales = [&](const SweepResult& exact) {
      scales.use_exact_scales(forward.runs());
      SweepResult made = result(forward.runs().confirmed(std::get<Proved>(exact.verdict)));
      made.values = exact.values;
      made.congruent = exact.congruent;
      made.proved = exact.proved;
      return made;
    };
    if (const auto exact = scales.matched_by_names()) return proved_by_scales(*exact);
    if (auto refuted = scales.observe(forward.runs())) return result(*std::move(refuted));
    if (const auto exact = scales.matched_by_run()) return proved_by_scales(*exact);
    // Some differences show where numbers leave the range of a type.
    if (auto refuted = forward.runs().search(kSearchSeconds)) return result(*std::move(refuted));
  }
  const bool is_suspect = forward.is_suspect();
  backward.start({std::move((*models)[1]), std::move((*models)[0])});
  if (!is_suspect && backward.match_all())
    return result(forward.runs().confirmed(backward.proved()));
  if (auto refuted = forward.observe()) {
    // Where something is not defined, that may be the whole difference.
    const bool doubtful = !std::isfinite(refuted->source) || !std::isfinite(refuted->target);
    if (doubtful)
      if (auto proved = proved_by(&Sweep::match_outputs_by_cases)) return *std::move(proved);
    return result(*std::move(refuted));
  }
  backward.runs().take_observations(forward.runs());
  for (const auto match : {&Sweep::match_all, &Sweep::match_outputs_by_cases})
    if (auto proved = proved_by(match)) return *std::move(proved);
  if (auto refuted = forward.runs().search()) return result(*std::move(refuted));
  if (auto proved = proved_by(&Sweep::match_by_cases)) return *std::move(proved);
  if (auto refuted = forward.runs().undefined_difference()) return result(*std::move(refuted));
  return result(forward.unknown());
}

}  // namespace

Expected<SweepResult> sweep(const Graph& source, const Graph& target, const SweepOptions& options) {
  TESSERA_TRY(const Aligned aligned, align(source, target, options.names));
  std::optional<SweepResult> all;
  std::set<Assumption> assumptions;
  ConstantReadings readings;  // in all cases
  for (const SizeCase& one : size_cases(aligned, options.stop)) {
    SweepResult result = decided(one, options, readings);
    const auto* proved = std::get_if<Proved>(&result.verdict);
    if (proved != nullptr)
      assumptions.insert(proved->assumptions.begin(), proved->assumptions.end());
    // A refutation says most; what is not known in one case is not known at all.
    if (!all || (std::holds_alternative<Proved>(all->verdict) && proved == nullptr) ||
        std::holds_alternative<Refuted>(result.verdict))
      all = std::move(result);
    if (std::holds_alternative<Refuted>(all->verdict)) return *std::move(all);
  }
  if (auto* proved = std::get_if<Proved>(&all->verdict))
    proved->assumptions.assign(assumptions.begin(), assumptions.end());
  return *std::move(all);
}

}  // namespace tessera::prove
