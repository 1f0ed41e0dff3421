#include "tessera/superopt/mutate/regions.h"

#include <algorithm>
#include <map>
#include <set>

#include "tessera/ir/bind.h"
#include "tessera/prove/prove.h"
#include "tessera/prove/sizes.h"
#include "tessera/rules/proof.h"
#include "tessera/superopt/mutate/positions.h"

namespace tessera::superopt {
namespace {

using rules::Box;
using rules::Interval;
using rules::Region;

Diagnostic no_region(std::string why) {
  return {.id = "mutant-region", .message = std::move(why)};
}

/// Cells of an output between borders, and which of them are wrong.
struct Cells {
  std::vector<std::vector<std::int64_t>> borders;  // by axis, from 0 to the size
  std::vector<bool> wrong;                         // row-major over the cells

  std::vector<std::size_t> counts() const {
    std::vector<std::size_t> counts;
    for (const auto& axis : borders) counts.push_back(axis.size() - 1);
    return counts;
  }
};

/// Differences at one choice of sizes.
struct Sample {
  SizeValues sizes;
  std::vector<Cells> outputs;
  double agreement = 1;
};

/// Calls `visit` with each multi-index below `counts`, and its row-major number.
template <class Visit>
void for_each_index(const std::vector<std::size_t>& counts, const Visit& visit) {
  std::vector<std::size_t> at(counts.size(), 0);
  std::size_t all = 1;
  for (const std::size_t count : counts) all *= count;
  for (std::size_t number = 0; number < all; ++number) {
    visit(at, number);
    for (std::size_t axis = counts.size(); axis-- > 0;) {
      if (++at[axis] < counts[axis]) break;
      at[axis] = 0;
    }
  }
}

Cells cells_of(const OutputDifference& output) {
  Cells cells{.borders = borders_of(output), .wrong = {}};
  for_each_index(cells.counts(), [&](const std::vector<std::size_t>& at, std::size_t) {
    std::size_t position = 0;
    for (std::size_t axis = 0; axis < at.size(); ++axis)
      position = position * static_cast<std::size_t>(output.shape[axis]) +
                 static_cast<std::size_t>(cells.borders[axis][at[axis]]);
    cells.wrong.push_back(output.differs[position]);
  });
  return cells;
}

/// Evaluates two graphs at random sizes. Sizes along which nothing changes are kept small.
class SizeSampler {
 public:
  SizeSampler(const Graph& source, const Graph& mutant, Guard facts, std::uint64_t seed)
      : source_(source), mutant_(mutant), facts_(std::move(facts)), rng_(seed) {
    prove::GraphSymbols symbols = prove::symbols_of(source);
    symbols.add(prove::symbols_of(mutant));
    symbols_.insert(symbols.sizes.begin(), symbols.sizes.end());
    attributes_.insert(symbols.attributes.begin(), symbols.attributes.end());
    has_lists_ = !symbols.entries.empty();
    for (const ValueId id : source.outputs())
      for (const Dim& dim : source.type(id).shape.value_or(Shape{}))
        dim.collect_symbols(of_outputs_);
  }

  bool has_lists() const { return has_lists_; }
  const std::set<std::string>& symbols() const { return symbols_; }
  /// Symbols that differences depend on.
  std::set<std::string>& wide() { return wide_; }

  std::optional<Sample> draw(bool first) {
    constexpr int kTries = 30;
    for (int i = 0; i < kTries; ++i) {
      SizeValues sizes;
      for (const std::string& name : symbols_) sizes[name] = size_of(name, first);
      for (const std::string& name : attributes_) sizes[name] = 1 + rng_.below(2);
      if (const auto fits = holds(facts_, sizes); !fits || !*fits) continue;
      auto source = bound(source_, sizes), mutant = bound(mutant_, sizes);
      if (!source || !mutant || is_large(*source) || is_large(*mutant)) continue;
      auto outputs = differing_positions(*source, *mutant, rng_);
      if (!outputs) continue;
      Sample sample{.sizes = std::move(sizes), .outputs = {}};
      double equal = 0, all = 0;
      for (const OutputDifference& output : *outputs) {
        if (output.differs.empty()) return std::nullopt;
        equal += static_cast<double>(std::ranges::count(output.differs, false));
        all += static_cast<double>(output.differs.size());
        sample.outputs.push_back(cells_of(output));
      }
      sample.agreement = equal / all;
      return sample;
    }
    return std::nullopt;
  }

 private:
  std::int64_t size_of(const std::string& name, bool first) {
    if (first) {
      const bool window = !of_outputs_.contains(name);
      return window ? 1 : 3 + static_cast<std::int64_t>(rng_.below(3));
    }
    if (wide_.contains(name)) return 4 + static_cast<std::int64_t>(rng_.below(6));
    if (!of_outputs_.contains(name)) return 1 + static_cast<std::int64_t>(rng_.below(3));
    return 1 + static_cast<std::int64_t>(rng_.below(2));
  }

  static bool is_large(const Graph& graph) {
    constexpr std::int64_t kMostElements = 20'000;
    std::int64_t elements = 0;
    for (std::uint32_t v = 0; v < graph.value_count(); ++v)
      if (const auto shape = static_shape(graph.type(ValueId{v})))
        elements += element_count(*shape).value_or(kMostElements);
    return elements > kMostElements;
  }

  const Graph &source_, &mutant_;
  Guard facts_;
  Rng rng_;
  std::set<std::string> symbols_, attributes_, of_outputs_, wide_;
  bool has_lists_ = false;
};

/// Number of cells of all outputs: the largest where no border coincides with another.
std::size_t cell_count(const Sample& sample) {
  std::size_t count = 0;
  for (const Cells& cells : sample.outputs) count += cells.wrong.size();
  return count;
}

bool is_alike(const Sample& a, const Sample& b) {
  return std::ranges::equal(a.outputs, b.outputs, [](const Cells& x, const Cells& y) {
    return x.counts() == y.counts() && x.wrong == y.wrong;
  });
}

/// The samples with the most frequent pattern among those with the most cells.
std::vector<Sample> regular(std::vector<Sample> samples) {
  std::vector<Sample> best;
  std::ranges::stable_sort(samples, std::greater<>(), cell_count);
  for (const Sample& sample : samples) {
    std::vector<Sample> group;
    for (const Sample& other : samples)
      if (is_alike(sample, other)) group.push_back(other);
    constexpr std::size_t kFew = 4;  // a pattern that few samples have is that of small sizes
    if (group.size() >= std::min(kFew, samples.size())) return group;
    if (group.size() > best.size()) best = std::move(group);
  }
  return best;
}

/// The simplest sum of a number and small multiples of at most two symbols that has these values.
std::optional<Dim> fitted(const std::set<std::string>& symbols, const std::vector<Sample>& samples,
                          const std::vector<std::int64_t>& values) {
  struct Multiple {
    std::string symbol;
    std::int64_t factor = 0;
  };
  const auto fits = [&](const std::vector<Multiple>& multiples) -> std::optional<Dim> {
    std::optional<std::int64_t> constant;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      std::int64_t rest = values[i];
      for (const Multiple& part : multiples) rest -= part.factor * samples[i].sizes.at(part.symbol);
      if (constant && *constant != rest) return std::nullopt;
      constant = rest;
    }
    Dim sum = *constant;
    for (const Multiple& part : multiples) sum = sum + Dim::symbol(part.symbol) * part.factor;
    return sum;
  };
  if (auto constant = fits({})) return constant;
  constexpr std::int64_t kFactors[] = {1, 2, -1, 3, -2};
  for (const std::int64_t factor : kFactors)
    for (const std::string& symbol : symbols)
      if (auto sum = fits({{symbol, factor}})) return sum;
  for (const std::int64_t first : kFactors)
    for (const std::int64_t second : kFactors)
      for (const std::string& a : symbols)
        for (const std::string& b : symbols)
          if (a < b)
            if (auto sum = fits({{a, first}, {b, second}})) return sum;
  return std::nullopt;
}

/// Covers the wrong cells by boxes of cells that do not overlap; `first` and `last` by axis.
struct CellBox {
  std::vector<std::size_t> first, last;
};
std::vector<CellBox> boxes_of(Cells cells) {
  const std::vector<std::size_t> counts = cells.counts();
  std::vector<CellBox> boxes;
  const auto number = [&](const std::vector<std::size_t>& at) {
    std::size_t all = 0;
    for (std::size_t axis = 0; axis < at.size(); ++axis) all = all * counts[axis] + at[axis];
    return all;
  };
  const auto for_each_in = [&](const CellBox& box, const auto& visit) {
    std::vector<std::size_t> extents;
    for (std::size_t axis = 0; axis < counts.size(); ++axis)
      extents.push_back(box.last[axis] - box.first[axis] + 1);
    for_each_index(extents, [&](std::vector<std::size_t> at, std::size_t) {
      for (std::size_t axis = 0; axis < at.size(); ++axis) at[axis] += box.first[axis];
      visit(number(at));
    });
  };
  for_each_index(counts, [&](const std::vector<std::size_t>& at, std::size_t cell) {
    if (!cells.wrong[cell]) return;
    CellBox box{at, at};
    for (std::size_t axis = 0; axis < counts.size(); ++axis)
      while (box.last[axis] + 1 < counts[axis]) {
        CellBox next = box;
        next.first[axis] = next.last[axis] = box.last[axis] + 1;
        bool all_wrong = true;
        for_each_in(next, [&](std::size_t i) { all_wrong = all_wrong && cells.wrong[i]; });
        if (!all_wrong) break;
        ++box.last[axis];
      }
    for_each_in(box, [&](std::size_t i) { cells.wrong[i] = false; });
    boxes.push_back(std::move(box));
  });
  return boxes;
}

/// Borders of all cells as sizes, boxes over them, and the conditions that keep borders in order.
Expected<Done> describe(const std::vector<Sample>& samples, const std::set<std::string>& symbols,
                        MutantRegion& region) {
  for (std::size_t output = 0; output < samples[0].outputs.size(); ++output) {
    const Cells& cells = samples[0].outputs[output];
    const Shape shape = *region.source.type(region.source.outputs()[output]).shape;
    std::vector<Shape> borders;
    for (std::size_t axis = 0; axis < cells.borders.size(); ++axis) {
      Shape& own = borders.emplace_back();
      for (std::size_t i = 0; i < cells.borders[axis].size(); ++i) {
        if (i + 1 == cells.borders[axis].size()) {
          own.push_back(shape[axis]);
          break;
        }
        std::vector<std::int64_t> values;
        for (const Sample& sample : samples)
          values.push_back(sample.outputs[output].borders[axis][i]);
        const std::optional<Dim> border = fitted(symbols, samples, values);
        if (!border)
          return no_region(fmt::format("a border along axis {} is not linear in the sizes", axis));
        own.push_back(*border);
      }
      for (std::size_t i = 0; i + 1 < own.size() && own.size() > 2; ++i)
        if (const Condition order = at_most(own[i], own[i + 1]);
            (order.right - order.left).least().value_or(-1) < 0 &&
            std::ranges::none_of(region.order, [&](const Condition& known) {
              return known.right - known.left == order.right - order.left;
            }))
          region.order.push_back(order);
    }
    for (const CellBox& cell : boxes_of(cells)) {
      Box box{.output = output, .axes = {}};
      for (std::size_t axis = 0; axis < borders.size(); ++axis) {
        const bool whole = cell.first[axis] == 0 && cell.last[axis] + 2 == borders[axis].size();
        if (whole)
          box.axes.emplace_back();
        else
          box.axes.emplace_back(
              Interval{borders[axis][cell.first[axis]], borders[axis][cell.last[axis] + 1]});
      }
      if (std::ranges::none_of(box.axes, [](const auto& axis) { return axis.has_value(); }))
        return no_region(fmt::format("output {} differs everywhere", output));
      region.wrong.push_back(std::move(box));
    }
  }
  return Done{};
}

/// The region without restrictions along an axis; nothing where a box would be a whole output.
std::optional<Region> relaxed(const Region& region, std::size_t axis) {
  Region wider;
  bool changed = false;
  for (Box box : region) {
    if (axis < box.axes.size() && box.axes[axis]) {
      box.axes[axis].reset();
      changed = true;
    }
    if (std::ranges::none_of(box.axes, [](const auto& part) { return part.has_value(); }))
      return std::nullopt;
    if (std::ranges::find(wider, box) == wider.end()) wider.push_back(std::move(box));
  }
  return changed ? std::optional(std::move(wider)) : std::nullopt;
}

/// The region without positions before the first one: a box may begin outside of a small output.
Region clipped(Region region) {
  for (Box& box : region)
    for (auto& interval : box.axes)
      if (interval && interval->begin.least().value_or(-1) < 0)
        interval->begin = max(interval->begin, 0);
  return region;
}

/// Whether a region is most of the outputs, for images of a moderate size and small windows.
bool is_most(const Region& region, const Graph& source) {
  constexpr std::int64_t kImage = 16;
  SizeValues sizes;
  std::set<std::string> of_outputs;
  for (const ValueId id : source.outputs())
    for (const Dim& dim : source.type(id).shape.value_or(Shape{})) dim.collect_symbols(of_outputs);
  for (const std::string& name : prove::symbols_of(source).sizes)
    sizes[name] = of_outputs.contains(name) ? kImage : 1;
  const auto share = rules::share_of(region, source, sizes);
  return share && *share > 0.5;
}

Expected<CorrectedRule> proved_correction(const MutantRegion& region, const Region& wrong,
                                          const RegionOptions& options) {
  CorrectedRule result;
  rules::Rule& rule = result.rule;
  rule.source = region.source;
  rule.target = region.mutant;
  rule.guard = region.guard;
  if (!wrong.empty()) {
    TESSERA_TRY(rule.target, rules::corrected(region.source, region.mutant, wrong));
    rule.mutant = rules::Mutant{region.mutant, wrong};
  }
  TESSERA_TRY_DONE(rules::check(rule));
  result.verdict = rules::verdict_of(rule, rules::Guards::Stated,
                                     {.tries = 8,
                                      .most_terms = 500,
                                      .most_steps = 800,
                                      .named_reals = false,
                                      .stop = options.stop});
  return result;
}

}  // namespace

Expected<MutantRegion> region_of(const Graph& source, const Graph& mutant,
                                 const RegionOptions& options) {
  for (const ValueId id : source.inputs())
    if (const Type& type = source.type(id); !type.is_ranked_tensor() || !is_float(type.dtype))
      return Diagnostic{.id = "mutant-invalid",
                        .message = fmt::format("input {} is {}", source.name(id), to_string(type)),
                        .note = "mutants are compared on tensors of floats of known rank"};
  TESSERA_TRY(const std::vector<prove::Setting> settings, prove::settings_of(source, mutant));
  if (settings.empty()) return no_region("the two graphs do not fit together at any sizes");
  const prove::Setting& setting = settings[0];
  MutantRegion region{setting.source, setting.target, {}, setting.guard, {}, 1};
  // What was solved for is put in.
  const std::set<std::string> left = prove::symbols_of(setting.source).sizes;
  std::erase_if(region.guard, [&](const Condition& condition) {
    const auto gone = [&](std::string_view name) { return !left.contains(std::string(name)); };
    return condition.left.any_symbol(gone) || condition.right.any_symbol(gone);
  });
  SizeSampler sampler(setting.source, setting.target, setting.facts, options.seed);
  if (sampler.has_lists()) return no_region("attributes that are lists have to be numbers");

  constexpr int kFirst = 3, kSamples = 16;
  std::vector<Sample> samples;
  for (int i = 0; i < kFirst; ++i)
    if (auto sample = sampler.draw(true)) samples.push_back(*std::move(sample));
  if (samples.empty()) return no_region("no small sizes were found that both graphs accept");
  if (std::ranges::all_of(samples, [](const Sample& sample) { return sample.agreement == 0; }))
    return no_region("the two graphs differ everywhere");
  for (const Sample& sample : samples)
    for (std::size_t output = 0; output < sample.outputs.size(); ++output)
      for (std::size_t axis = 0; axis < sample.outputs[output].borders.size(); ++axis)
        if (sample.outputs[output].borders[axis].size() > 2)
          (*setting.source.type(setting.source.outputs()[output]).shape)[axis].collect_symbols(
              sampler.wide());
  if (!sampler.symbols().empty()) {
    samples.clear();
    for (int i = 0; i < kSamples; ++i) {
      if (options.stop != nullptr && *options.stop) return no_region("stopped");
      if (auto sample = sampler.draw(false)) samples.push_back(*std::move(sample));
      // Nothing differs: a few sizes are enough for a guess, which is proved later.
      if (i + 1 == kFirst &&
          std::ranges::all_of(samples, [](const Sample& sample) { return sample.agreement == 1; }))
        break;
    }
    samples = regular(std::move(samples));
  }
  // A pattern of one size says nothing of others.
  for (const std::string& name : sampler.wide()) {
    std::set<std::int64_t> seen;
    for (const Sample& sample : samples) seen.insert(sample.sizes.at(name));
    if (seen.size() < 2) samples.clear();
  }
  constexpr std::size_t kLeastSamples = 3;
  if (samples.empty() || (!sampler.symbols().empty() && samples.size() < kLeastSamples))
    return no_region("the differences are not alike at different sizes");
  region.agreement = std::ranges::max_element(samples, {}, [](const Sample& sample) {
                       return sample.agreement;
                     })->agreement;
  TESSERA_TRY_DONE(describe(samples, sampler.symbols(), region));
  return region;
}

Expected<CorrectedRule> corrected_rule(const MutantRegion& region, const RegionOptions& options) {
  // The guard keeps borders apart, or boxes are clipped.
  const Region wrong = region.order.empty() ? region.wrong : clipped(region.wrong);
  TESSERA_TRY(CorrectedRule result, proved_correction(region, wrong, options));
  const auto is_proved = [](const CorrectedRule& rule) {
    return std::holds_alternative<prove::Proved>(rule.verdict);
  };
  // A larger region may be easier to prove: one image less to correct is no gain.
  std::size_t rank = 0;
  for (const Box& box : wrong) rank = std::max(rank, box.axes.size());
  for (std::size_t axis = 0; axis < rank && !is_proved(result); ++axis) {
    const std::optional<Region> wider = relaxed(wrong, axis);
    if (!wider || is_most(*wider, region.source)) continue;
    TESSERA_TRY(CorrectedRule other, proved_correction(region, *wider, options));
    if (is_proved(other)) result = std::move(other);
  }
  if (is_proved(result) || region.order.empty()) return result;
  // Where borders meet, the region may be another one.
  MutantRegion apart = region;
  std::ranges::copy(region.order, std::back_inserter(apart.guard));
  apart.order.clear();
  TESSERA_TRY(CorrectedRule other, corrected_rule(apart, options));
  return is_proved(other) ? std::move(other) : std::move(result);
}

}  // namespace tessera::superopt
