#include "tessera/prove/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "tessera/interp/interp.h"
#include "tessera/ir/control.h"
#include "tessera/ir/text.h"
#include "tessera/prove/alarm.h"
#include "tessera/prove/constants.h"
#include "tessera/prove/distinguish.h"
#include "tessera/prove/fingerprint.h"
#include "tessera/prove/prove.h"

namespace tessera::prove {
namespace {

using Clock = Alarm::Clock;

constexpr std::int64_t kMostPrinted = 1 << 20;  // elements of a constant

/// Whether every run of the graph gives the same.
bool is_pure(const Graph& graph) {
  return std::ranges::all_of(graph.nodes(), [&](const GraphNode& node) {
    return node.op->pure && std::ranges::all_of(graph.subgraphs(node), [](const auto& subgraph) {
             return is_pure(*subgraph);
           });
  });
}

using Prints = std::vector<std::optional<Fingerprint>>;  // by value

class Sweep {
 public:
  Sweep(Aligned aligned, const SweepOptions& options)
      : aligned_(std::move(aligned)), options_(options), alarm_(options.stop) {}

  Expected<SweepResult> run();

 private:
  Verdict proved() const;
  Verdict unknown(std::string why);
  /// One run of both in which fingerprints are taken; a refutation where it is one already.
  std::optional<Refuted> observe();
  bool run_both(const std::vector<Tensor>& inputs, std::array<std::vector<Datum>, 2>& outputs);
  std::optional<Refuted> search();

  /// Tries to find an equal value of the source for each value of the target, and whether this is
  /// so for all outputs.
  bool match_all();
  void match(ValueId target);
  struct Candidate {
    ValueId value;
    enum class As : std::uint8_t { Same, Reshaped, Transposed } as = As::Same;
    Ints order = {};
  };
  std::vector<Candidate> candidates(ValueId target) const;
  std::optional<ValueId> derived(const Candidate& candidate, ValueId target);
  bool prove_pair(ClassId source, ValueId target);
  bool prove_window(const Window& window);
  void find_unrelated();

  DistinguishOptions running() const {
    return {
        .threads = options_.threads, .memory_limit = options_.memory_limit, .stop = options_.stop};
  }
  void report(std::size_t done, std::string_view what) const {
    if (options_.progress) options_.progress({done, aligned_.target.value_count() + 1, what});
  }

  Aligned aligned_;
  const SweepOptions& options_;
  Alarm alarm_;
  std::optional<Pairing> pairing_;
  std::optional<ConstantMatcher> constants_;
  std::array<Prints, 2> prints_;
  std::optional<std::vector<Type>> sized_;
  std::vector<std::int64_t> below_;  // what integers the models take
  std::map<std::string, bool> tried_;
  struct Failed {
    ClassId source = 0;     // what the value may be equal to
    std::size_t nodes = 0;  // in the smallest window
  };
  std::map<std::uint32_t, Failed> failed_;  // by value of the target
  std::set<std::string> assumptions_;
  int failures_ = 0;
  SweepResult result_;
};

Expected<SweepResult> Sweep::run() {
  const Graph& target_graph = aligned_.target;
  for (const ValueId id : aligned_.source.inputs())
    result_.input_names.push_back(aligned_.source.name(id));
  assumptions_.insert(aligned_.assumptions.begin(), aligned_.assumptions.end());

  auto source =
      prepare(aligned_.source, {.inputs = aligned_.inputs, .scope = "s", .stop = options_.stop});
  auto target =
      prepare(target_graph, {.inputs = aligned_.inputs, .scope = "t", .stop = options_.stop});
  if (!source || !target) {
    if (auto refuted = search()) {
      result_.verdict = *std::move(refuted);
    } else {
      const Diagnostic& problem = source ? target.error() : source.error();
      result_.verdict = Unknown{problem.message};
    }
    return std::move(result_);
  }
  pairing_.emplace(*std::move(source), *std::move(target));
  pairing_->number(Side::Source);
  pairing_->number(Side::Target);
  const Prepared& prepared = pairing_->prepared(Side::Target);
  for (std::uint32_t i = 0; i < prepared.graph.value_count(); ++i)
    if (prepared.live[i]) {
      ++result_.values;
      if (pairing_->paired(pairing_->of(Side::Target, {i}))) ++result_.congruent;
    }
  if (pairing_->all_outputs_paired()) {
    result_.verdict = proved();
    return std::move(result_);
  }
  constants_.emplace(*pairing_);
  // Tools keep most names, and large models take long to run.
  if (match_all()) {
    result_.verdict = proved();
    return std::move(result_);
  }
  if (auto refuted = observe()) {
    result_.verdict = *std::move(refuted);
    return std::move(result_);
  }
  if (match_all()) {
    result_.verdict = proved();
    return std::move(result_);
  }
  if (auto refuted = search()) {
    result_.verdict = *std::move(refuted);
    return std::move(result_);
  }
  find_unrelated();
  result_.verdict = unknown(alarm_.over() ? "the time is over" : "a pair of values is not related");
  return std::move(result_);
}

Verdict Sweep::proved() const {
  Proved proved;
  proved.assumptions.assign(assumptions_.begin(), assumptions_.end());
  if (constants_)
    for (std::string& assumption : constants_->assumptions())
      proved.assumptions.push_back(std::move(assumption));
  return proved;
}

Verdict Sweep::unknown(std::string why) {
  return Unknown{std::move(why)};
}

bool Sweep::run_both(const std::vector<Tensor>& inputs,
                     std::array<std::vector<Datum>, 2>& outputs) {
  std::vector<interp::Value> values;
  for (const Tensor& input : inputs) values.push_back({input});
  for (const Side side : kSides) {
    const Graph& graph = pairing_->graph(side);
    const std::vector<bool>& live = pairing_->prepared(side).live;
    Prints& prints = prints_[static_cast<std::size_t>(side)];
    prints.assign(graph.value_count(), std::nullopt);
    const auto print = [&](ValueId id, const interp::Value& value) {
      if (value.datum.is_tensor()) prints[id.index] = fingerprint(value.datum.tensor());
    };
    for (std::size_t i = 0; i < inputs.size(); ++i) print(graph.inputs()[i], values[i]);
    for (std::uint32_t i = 0; i < live.size(); ++i)
      if (const Tensor* constant = graph.constant({i});
          constant != nullptr && live[i] && constant->count() <= kMostPrinted)
        print({i}, {*constant});
    const auto results = interp::run_as<float>(graph, values,
                                               {.threads = options_.threads,
                                                .memory_limit = options_.memory_limit,
                                                .stop = options_.stop,
                                                .observe = print});
    if (!results) return false;
    auto& mine = outputs[static_cast<std::size_t>(side)];
    mine.clear();
    for (const interp::Value& result : *results) mine.push_back(result.datum);
  }
  return true;
}

std::optional<Refuted> Sweep::observe() {
  report(0, "running both models");
  const bool open = concrete(aligned_.inputs, 3) != concrete(aligned_.inputs, 8);
  for (const std::int64_t size : {3, 8, 32, 64, 224}) {
    const auto types = concrete(aligned_.inputs, size);
    if (!types || (size != 3 && !open)) break;
    for (const std::vector<std::int64_t>& below : integer_ranges(aligned_.inputs)) {
      if (alarm_.over()) return std::nullopt;
      const std::vector<Tensor> inputs =
          make_inputs(*types, {.seed = options_.seed, .below = below});
      std::array<std::vector<Datum>, 2> outputs;
      if (!run_both(inputs, outputs) || !mostly_finite(outputs[0])) continue;
      sized_ = types;
      below_ = below;
      if (furthest_apart(outputs[0], outputs[1]).relative > kDiffers) {
        auto refuted = distinguishes(aligned_.source, aligned_.target, inputs, running());
        if (refuted && *refuted) return **std::move(refuted);
      }
      return std::nullopt;
    }
  }
  for (auto& prints : prints_) prints.clear();
  return std::nullopt;
}

std::optional<Refuted> Sweep::search() {
  const std::optional<std::vector<Type>> types = sized_ ? sized_ : concrete(aligned_.inputs, 8);
  if (!types) return std::nullopt;
  const std::vector<Recipe> list =
      recipes(options_.seed + 1, below_, differing_rows(aligned_.source, aligned_.target));
  for (const Recipe& recipe : list) {
    if (alarm_.over()) return std::nullopt;
    report(0, "searching for an input that tells them apart");
    DistinguishOptions how = running();
    how.may_overflow = recipe.scale > 1;
    auto refuted =
        distinguishes(aligned_.source, aligned_.target, make_inputs(*types, recipe), how);
    if (refuted && *refuted) return **std::move(refuted);
  }
  return std::nullopt;
}

std::vector<Sweep::Candidate> Sweep::candidates(ValueId target) const {
  constexpr std::size_t kMost = 4;
  std::vector<Candidate> found;
  const Prepared &ours = pairing_->prepared(Side::Source),
                 &theirs = pairing_->prepared(Side::Target);
  const Prints &source_prints = prints_[0], &target_prints = prints_[1];
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
      return pairing_->derive(Side::Source, "reshape", {},
                              {candidate.value, pairing_->derive_constant(
                                                    Side::Source, Tensor::of<std::int64_t>(
                                                                      DType::I64, {rank}, shape))});
    }
    case Candidate::As::Transposed:
      return pairing_->derive(Side::Source, "transpose", {{"perm", candidate.order}},
                              {candidate.value});
  }
  return std::nullopt;
}

bool Sweep::match_all() {
  result_.proved = 0;
  failures_ = 0;
  failed_.clear();
  pairing_->number(Side::Target, [this](ValueId value) { match(value); });
  return pairing_->all_outputs_paired();
}

void Sweep::match(ValueId target) {
  // What follows on a pair that is not related is hardly ever related. Names alone tell less.
  const int patience = sized_ ? 24 : 4;
  if (alarm_.over() || failures_ > patience) return;
  report(target.index, "proving pairs of values");
  if (pairing_->graph(Side::Target).constant(target) != nullptr) {
    if (constants_->match(target)) ++result_.proved;
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
  const auto start = Clock::now();
  const ClassId own = pairing_->of(Side::Target, target);
  Window window(*pairing_, source, own);
  failed_.emplace(target.index, Failed{source, window.nodes()});
  for (int step = 0; step <= options_.most_growth && !window.too_large(); ++step) {
    for (int again = 0;
         again < 4 && !(window.loose(Side::Source).empty() && window.loose(Side::Target).empty());
         ++again) {
      if (!constants_->absorb(window)) break;
      window = Window(*pairing_, source, own);
      for (int i = 0; i < step; ++i) window.grow();
    }
    if (prove_window(window)) {
      pairing_->assign(Side::Target, target, source);
      return true;
    }
    const std::chrono::duration<double> spent = Clock::now() - start;
    if (alarm_.over() || spent.count() > options_.pair_seconds || !window.grow()) return false;
  }
  return false;
}

bool Sweep::prove_window(const Window& window) {
  if (window.too_large() || !window.loose(Side::Source).empty() ||
      !window.loose(Side::Target).empty())
    return false;
  const auto source = window.graph(Side::Source), target = window.graph(Side::Target);
  if (!source || !target || !is_pure(*source) || !is_pure(*target)) return false;
  const std::string key = to_text(*source) + to_text(*target);
  const auto [it, is_new] = tried_.emplace(key, false);
  if (!is_new) return it->second;
  alarm_.set(options_.pair_seconds);
  const Verdict verdict =
      prove(*source, *target, {.seed = options_.seed, .tries = 0, .stop = alarm_.flag()});
  const auto* yes = std::get_if<Proved>(&verdict);
  if (yes == nullptr || !yes->guard.empty()) return false;
  assumptions_.insert(yes->assumptions.begin(), yes->assumptions.end());
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

}  // namespace

Expected<SweepResult> sweep(const Graph& source, const Graph& target, const SweepOptions& options) {
  TESSERA_TRY(Aligned aligned, align(source, target, options.names));
  return Sweep(std::move(aligned), options).run();
}

}  // namespace tessera::prove
