#include "tessera/prove/distinguish.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <set>

#include "tessera/expr/number.h"
#include "tessera/interp/interp.h"
#include "tessera/prove/align.h"
#include "tessera/prove/draw.h"
#include "tessera/prove/elements.h"
#include "tessera/prove/exact_scales.h"
#include "tessera/prove/random_rounding.h"
#include "tessera/prove/widen.h"
#include "tessera/support/rng.h"

namespace tessera::prove {
namespace {

constexpr std::int64_t kBelow = 1000;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double normal(Rng& rng) {
  const double radius = std::sqrt(-2 * std::log(1 - rng.uniform()));
  return radius * std::cos(2 * std::numbers::pi * rng.uniform());
}

double element(const Recipe& recipe, Rng& rng, std::int64_t i) {
  switch (recipe.kind) {
    case Recipe::Kind::Normal: return recipe.scale * normal(rng);
    // Ties, zeros and what lies between two integers.
    case Recipe::Kind::Halves: return recipe.scale * (static_cast<double>(rng.below(17)) - 8) / 2;
    // Few numbers, so that also the largest of a short row is often there twice.
    case Recipe::Kind::Ties: return recipe.scale * (static_cast<double>(rng.below(3)) - 1);
    case Recipe::Kind::Telling:
      if (!recipe.numbers.empty() && rng.below(4) != 0)
        return recipe.numbers[rng.below(recipe.numbers.size())];
      return recipe.scale * (static_cast<double>(rng.below(17)) - 8) / 2;
    case Recipe::Kind::Positive: return recipe.scale * std::fabs(normal(rng));
    case Recipe::Kind::Sparse: return rng.below(16) == 0 ? 4 * recipe.scale * normal(rng) : 0;
    case Recipe::Kind::Waves:
      return recipe.scale * (std::sin(0.05 * static_cast<double>(i)) + 0.1 * normal(rng));
  }
  return 0;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// How far two numbers are apart; not numbers are equal to each other.
double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double d = std::fabs(a - b);
  return std::isnan(d) ? kInfinity : d;
}

/// The indices of an element of a dense tensor.
std::vector<std::int64_t> position_of(std::int64_t element,
                                      const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> position(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    position[axis] = element % shape[axis];
    element /= shape[axis];
  }
  return position;
}

Apart texts_apart(const Tensor& a, const Tensor& b) {
  const auto differing = std::ranges::mismatch(*a.strings, *b.strings);
  if (differing.in1 == a.strings->end()) return {};
  return {.position = position_of(differing.in1 - a.strings->begin(), a.shape),
          .relative = kInfinity,
          .what = fmt::format("\"{}\" and \"{}\"", *differing.in1, *differing.in2)};
}

/// Whether an element is NaN or infinity; minus infinity is what masks are made of.
bool has_undefined_element(const Tensor& tensor) {
  if (!is_float(tensor.dtype)) return false;
  const Elements elements(tensor);
  for (std::int64_t i = 0; i < tensor.count(); ++i)
    if (std::isnan(elements[i]) || elements[i] == kInfinity) return true;
  return false;
}

}  // namespace

Apart apart(const Tensor& a, const Tensor& b) {
  if (a.shape != b.shape)
    return {
        .relative = kInfinity,
        .what = fmt::format("the shapes are {} and {}", shape_text(a.shape), shape_text(b.shape))};
  if (a.dtype != b.dtype) return {.relative = kInfinity, .what = "the types differ"};
  if (a.dtype == DType::String) return texts_apart(a, b);
  const std::int64_t count = a.count();
  double squares = 0, most = 0;
  std::int64_t finite = 0, at = 0;
  const bool exact = is_integer(a.dtype);
  const Elements source(a), target(b);
  for (std::int64_t i = 0; i < count; ++i) {
    const double x = source[i], y = target[i];
    double d = distance(x, y);
    // Integers that differ are at least 1 apart, also those that are the same double.
    if (exact && d == 0 && integer_at(a, i) != integer_at(b, i)) d = 1;
    for (const double number : {x, y})
      if (std::isfinite(number)) {
        squares += number * number;
        ++finite;
      }
    if (d > most) {
      most = d;
      at = i;
    }
  }
  if (most == 0) return {};
  Apart result{.source = number_at(a, at), .target = number_at(b, at)};
  const double rms = std::sqrt(squares / static_cast<double>(std::max<std::int64_t>(finite, 1)));
  result.relative = most / (rms > 0 ? rms : 1);
  result.position = position_of(at, a.shape);
  result.what = fmt::format("{:.6g} and {:.6g}, {:.2g} of the root mean square apart",
                            result.source, result.target, result.relative);
  return result;
}

std::vector<Tensor> make_inputs(const std::vector<Type>& types, const Recipe& recipe) {
  std::vector<Tensor> inputs;
  Rng rng(recipe.seed);
  for (std::size_t input = 0; input < types.size(); ++input) {
    const DType dtype = types[input].dtype;
    std::vector<std::int64_t> shape;
    for (const Dim& dim : *types[input].shape) shape.push_back(*dim.constant());
    if (dtype == DType::String) {
      inputs.push_back(draw_text(std::move(shape), rng));
      continue;
    }
    const std::int64_t count = *element_count(shape);
    const std::int64_t below = input < recipe.below.size() ? recipe.below[input] : kBelow;
    const auto integer = [&]() -> std::int64_t {
      if (dtype == DType::Bool) return static_cast<std::int64_t>(rng.below(2));
      // Truth values and kinds of tokens are not rows of the table in question.
      if (!recipe.integers.empty() && below > 2)
        return recipe.integers[rng.below(recipe.integers.size())];
      const auto drawn = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(below)));
      return recipe.negative && rng.below(2) == 0 ? -1 - drawn : drawn;
    };
    Buffer buffer(static_cast<std::size_t>(count * byte_width(dtype)));
    for (std::int64_t i = 0; i < count; ++i) {
      if (is_float(dtype))
        store_number(dtype, buffer.data(), i, element(recipe, rng, i));
      else
        store_integer(dtype, buffer.data(), i, integer());
    }
    inputs.push_back({dtype, std::move(shape), std::move(buffer).freeze()});
  }
  return inputs;
}

bool holds_undefined(const Graph& graph) {
  constexpr std::int64_t kMostElements = 1 << 12;
  for (std::uint32_t v = 0; v < graph.value_count(); ++v) {
    const Tensor* constant = graph.constant({v});
    if (constant != nullptr && constant->count() <= kMostElements &&
        has_undefined_element(*constant))
      return true;
  }
  return false;
}

bool mostly_finite(const std::vector<Datum>& outputs) {
  std::int64_t finite = 0, all = 0;
  for (const Datum& output : outputs) {
    if (!output.is_tensor() || output.tensor().dtype == DType::String) continue;
    const std::int64_t count = output.tensor().count();
    all += count;
    const Elements elements(output.tensor());
    for (std::int64_t i = 0; i < count; ++i)
      if (std::isfinite(elements[i])) ++finite;
  }
  return 2 * finite >= all;
}

Apart furthest_apart(const std::vector<Datum>& source, const std::vector<Datum>& target) {
  Apart furthest;
  for (std::size_t i = 0; i < std::min(source.size(), target.size()); ++i) {
    if (!source[i].is_tensor() || !target[i].is_tensor()) continue;
    Apart here = apart(source[i].tensor(), target[i].tensor());
    here.output = i;
    if (here.relative > furthest.relative) furthest = std::move(here);
  }
  return furthest;
}

namespace {

/// The outputs of a run of a joint graph, source and target.
std::array<std::vector<Datum>, 2> halves(const std::vector<interp::Value>& outputs) {
  std::array<std::vector<Datum>, 2> result;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    result[2 * i < outputs.size() ? 0 : 1].push_back(outputs[i].datum);
  return result;
}

/// The same in double; some operators have results of single precision whatever their operands are.
std::array<std::vector<Datum>, 2> wide_halves(const std::vector<interp::Value>& outputs) {
  auto result = halves(outputs);
  for (std::vector<Datum>& side : result)
    for (Datum& output : side)
      if (output.is_tensor()) output = widened(output.tensor());
  return result;
}

/// Puts NaN in place of numbers that the other side has a NaN for: it is not defined there.
void mask_undefined(std::array<std::vector<Datum>, 2>& outputs) {
  for (std::size_t i = 0; i < std::min(outputs[0].size(), outputs[1].size()); ++i) {
    if (!outputs[0][i].is_tensor() || !outputs[1][i].is_tensor()) continue;
    const Tensor source = outputs[0][i].tensor(), target = outputs[1][i].tensor();
    if (!is_float(source.dtype) || source.dtype != target.dtype || source.shape != target.shape)
      continue;
    const Elements a(source), b(target);
    for (const std::size_t side : {0, 1}) {
      const Tensor& tensor = side == 0 ? source : target;
      Buffer buffer(tensor.bytes.size());
      std::ranges::copy(tensor.bytes.view(), buffer.data());
      for (std::int64_t at = 0; at < tensor.count(); ++at)
        if (std::isnan(a[at]) != std::isnan(b[at]))
          store_number(tensor.dtype, buffer.data(), at, std::numeric_limits<double>::quiet_NaN());
      outputs[side][i] = Tensor{tensor.dtype, tensor.shape, std::move(buffer).freeze()};
    }
  }
}

/// Whether a difference is another one where results are rounded up or down at random: that of the
/// choices that a model makes among numbers which rounding tells apart or takes for the same.
bool is_unstable(const Graph& wide, const std::vector<interp::Value>& inputs,
                 const std::array<std::vector<Datum>, 2>& outputs, double relative,
                 const interp::Options& run) {
  for (const std::uint64_t seed : {1, 2}) {
    const auto results = run_with_random_rounding(wide, inputs, seed, run);
    if (!results) return false;
    auto moved = wide_halves(*results);
    mask_undefined(moved);
    if (!(furthest_apart(moved[0], moved[1]).relative > kDiffers)) return true;
    for (const std::size_t side : {0, 1})
      if (!(relative > kBeyondRounding * furthest_apart(outputs[side], moved[side]).relative))
        return true;
  }
  return false;
}

/// Whether a difference is gone, or a thousandth of what it was, where results are kept in double,
/// or is made by how these are rounded; `is_choice`: the output is of integers or truth values. Not
/// looked at where weights are large: among so many terms, a run in single precision tells what
/// rounding does.
bool is_made_by_rounding(const Graph& joint, const Apart& found, bool is_choice,
                         const std::vector<Tensor>& inputs, interp::Options run) {
  constexpr std::int64_t kMostElements = 1 << 22;
  std::int64_t elements = 0;
  for (std::uint32_t i = 0; i < joint.value_count(); ++i)
    if (const Tensor* constant = joint.constant({i})) elements += constant->count();
  for (const Tensor& input : inputs) elements += input.count();
  if (elements > kMostElements) return false;
  std::vector<interp::Value> values;
  for (const Tensor& input : inputs) values.push_back({widened(input)});
  run.observe = {};
  const Graph wide_graph = widened(joint);
  // A choice among numbers of which one is not defined tells nothing, and is a number itself.
  bool has_undefined = false;
  if (is_choice && !holds_undefined(joint))
    run.observe = [&](ValueId, const interp::Value& value) {
      has_undefined =
          has_undefined || (value.datum.is_tensor() && has_undefined_element(value.datum.tensor()));
    };
  const auto results = interp::run_as<double>(wide_graph, values, run);
  if (!results) return false;
  if (has_undefined) return true;
  auto wide = wide_halves(*results);
  mask_undefined(wide);
  const Apart apart = furthest_apart(wide[0], wide[1]);
  if (!(apart.relative > kDiffers)) return mostly_finite(wide[0]);
  return distance(apart.source, apart.target) < 1e-3 * distance(found.source, found.target) ||
         is_unstable(wide_graph, values, wide, apart.relative, run);
}

/// Whether models with quantized tensors differ with exact scales, by more than ties make.
bool differ_with(const ExactScales& exact_scales, const std::vector<Tensor>& inputs,
                 const DistinguishOptions& options, interp::Options run) {
  std::vector<interp::Value> values;
  for (const Tensor& input : inputs) values.push_back({widened(input)});
  std::optional<std::array<std::vector<Datum>, 2>> before;
  for (const std::uint64_t seed : {1, 2}) {
    const Widened moved = exact_scales.moved(seed);
    std::vector<ValueId> of(moved.graph.value_count());  // the value of the joint graph
    for (std::uint32_t i = 0; i < moved.values.size(); ++i)
      if (moved.values[i].present()) of[moved.values[i].index] = {i};
    run.observe = {};
    if (options.observe && !before)
      run.observe = [&](ValueId id, const interp::Value& value) {
        if (of[id.index].present()) options.observe(of[id.index], value);
      };
    const auto results = interp::run_as<double>(moved.graph, values, run);
    if (!results) return false;
    auto outputs = halves(*results);
    const double apart = furthest_apart(outputs[0], outputs[1]).relative;
    if (!(apart > kDiffers) || !mostly_finite(outputs[0])) return false;
    for (const std::size_t side : {0, 1})
      if (before &&
          !(apart > kBeyondRounding * furthest_apart(outputs[side], (*before)[side]).relative))
        return false;
    before = std::move(outputs);
  }
  return true;
}

}  // namespace

Expected<std::optional<Refuted>> distinguishes(const JointGraph& joint,
                                               const std::vector<Tensor>& inputs,
                                               const DistinguishOptions& options) {
  std::vector<interp::Value> values;
  for (const Tensor& input : inputs) values.push_back({input});
  interp::Options run{.threads = options.threads,
                      .memory_limit = options.memory_limit,
                      .stop = options.stop,
                      .observe = options.exact_scales ? nullptr : options.observe};
  TESSERA_TRY(const std::vector<interp::Value> results,
              interp::run_as<double>(joint.graph, values, run));
  auto exact = halves(results);
  Apart furthest = furthest_apart(exact[0], exact[1]);
  // Numbers say more than what is not defined on one side.
  if (std::isnan(furthest.source) != std::isnan(furthest.target)) {
    auto defined = exact;
    mask_undefined(defined);
    if (Apart here = furthest_apart(defined[0], defined[1]); here.relative > kDiffers) {
      furthest = std::move(here);
      exact = std::move(defined);
    }
  }
  // Where nothing is rounded, integers that are not the same differ, however large they are.
  for (std::size_t i = 0; i < joint.is_integral.size() && !(furthest.relative > kDiffers); ++i) {
    if (!joint.is_integral[i] || !exact[0][i].is_tensor() || !exact[1][i].is_tensor()) continue;
    Apart here = apart(exact[0][i].tensor(), exact[1][i].tensor());
    if (here.relative == 0) continue;
    here.output = i;
    here.relative = 1;
    furthest = std::move(here);
  }
  const bool overflow =
      options.may_overflow && !(std::isfinite(furthest.source) && std::isfinite(furthest.target));
  if (!(furthest.relative > kDiffers) || overflow) return std::optional<Refuted>{};
  // Some ways to compute the same lose more digits than others.
  std::array<std::vector<Datum>, 2> single;
  if (options.rounded == nullptr) {
    run.observe = {};
    TESSERA_TRY(const std::vector<interp::Value> rounded,
                interp::run_as<float>(joint.graph, values, run));
    single = halves(rounded);
  }
  const auto& rounded = options.rounded != nullptr ? *options.rounded : single;
  const auto is_beyond_rounding = [&] {
    if (options.exact_scales != nullptr)
      return differ_with(*options.exact_scales, inputs, options, run);
    for (const std::size_t side : {0, 1})
      if (!(furthest.relative >
            kBeyondRounding * furthest_apart(exact[side], rounded[side]).relative))
        return false;
    const bool can_round = !joint.is_integral[furthest.output] && std::isfinite(furthest.relative);
    const Datum& output = exact[0][furthest.output];
    const bool is_choice = output.is_tensor() && !is_float(output.tensor().dtype);
    return !can_round || !is_made_by_rounding(joint.graph, furthest, is_choice, inputs, run);
  };
  if (!is_beyond_rounding()) return std::optional<Refuted>{};
  return std::optional(Refuted{.sizes = {},
                               .inputs = inputs,
                               .output = furthest.output,
                               .position = furthest.position,
                               .source = furthest.source,
                               .target = furthest.target,
                               .what = furthest.what});
}

Expected<std::optional<Refuted>> distinguishes(const Graph& source, const Graph& target,
                                               const std::vector<Tensor>& inputs,
                                               const DistinguishOptions& options) {
  return distinguishes(joint_graph(source, target), inputs, options);
}

TellingNumbers telling_numbers(const Graph& source, const Graph& target) {
  std::set<std::int64_t> integers;
  std::map<std::string, const Tensor*> by_name;
  for (std::uint32_t i = 0; i < source.value_count(); ++i)
    if (const Tensor* tensor = source.constant({i})) by_name[source.name({i})] = tensor;
  for (std::uint32_t i = 0; i < target.value_count(); ++i) {
    const Tensor* theirs = target.constant({i});
    if (theirs == nullptr || theirs->shape.size() < 2 || theirs->dtype == DType::String) continue;
    const auto ours = by_name.find(target.name({i}));
    if (ours == by_name.end() || ours->second->shape != theirs->shape ||
        ours->second->dtype != theirs->dtype)
      continue;
    const auto a = ours->second->bytes.view(), b = theirs->bytes.view();
    const std::size_t row =
        a.size() / static_cast<std::size_t>(std::max<std::int64_t>(theirs->shape[0], 1));
    for (std::size_t at = 0; row > 0 && at < a.size() && integers.size() < 16;) {
      const auto differing = std::ranges::mismatch(a.subspan(at), b.subspan(at)).in1;
      const auto place = static_cast<std::size_t>(differing - a.begin());
      if (place >= a.size()) break;
      integers.insert(static_cast<std::int64_t>(place / row));
      at = (place / row + 1) * row;
    }
  }
  // Numbers that the models compare with or look up, and their neighbours.
  constexpr std::size_t kMostNumbers = 32;
  constexpr std::int64_t kMostElements = 8;
  std::set<double> floats;
  const auto add = [&](double number) {
    if (std::isfinite(number) && floats.size() < kMostNumbers)
      for (const double by : {-1.0, 0.0, 1.0}) floats.insert(number + by);
  };
  for (const Graph* graph : {&source, &target}) {
    for (std::uint32_t i = 0; i < graph->value_count(); ++i) {
      const Tensor* tensor = graph->constant({i});
      if (tensor == nullptr || tensor->dtype == DType::String || tensor->count() > kMostElements)
        continue;
      for (std::int64_t at = 0; at < tensor->count(); ++at)
        if (is_float(tensor->dtype))
          add(number_at(*tensor, at));
        else if (integers.size() < kMostNumbers && tensor->dtype != DType::Bool)
          for (const std::int64_t by : {-1, 0, 1})
            integers.insert(integer::add(integer_at(*tensor, at), by));
    }
    for (const GraphNode& node : graph->nodes())
      for (const auto& [name, attr] : node.attrs->entries()) {
        if (const auto* number = std::get_if<double>(&attr)) add(*number);
        if (const auto* list = std::get_if<Floats>(&attr))
          for (const double number : *list) add(number);
      }
  }
  return {{integers.begin(), integers.end()}, {floats.begin(), floats.end()}};
}

bool is_small(const std::vector<Type>& types) {
  constexpr std::int64_t kMostElements = 1 << 20;
  std::int64_t count = 0;
  for (const Type& type : types) {
    const std::int64_t more = product(*type.shape).constant().value_or(kMostElements + 1);
    if (more > kMostElements) return false;
    count += more;
  }
  return count <= kMostElements;
}

std::vector<Recipe> probes(std::uint64_t seed, const std::vector<std::int64_t>& below) {
  using Kind = Recipe::Kind;
  return {{.kind = Kind::Normal, .seed = seed + 101, .below = below},
          {.kind = Kind::Sparse, .seed = seed + 102, .scale = 4, .below = below},
          {.kind = Kind::Halves, .seed = seed + 103, .below = below}};
}

std::vector<std::vector<Type>> probe_types(const std::vector<Type>& inputs) {
  constexpr std::int64_t kLargeImage = 96, kSmallImage = 64;
  std::set<std::string> symbols;
  bool large = false;
  for (const Type& type : inputs) {
    if (!type.shape) return {};
    for (const Dim& dim : *type.shape) dim.collect_symbols(symbols);
    for (std::size_t axis = 2; axis < type.shape->size(); ++axis)
      large = large || (*type.shape)[axis].constant().value_or(0) > kLargeImage;
  }
  std::vector<Sizes> choices;
  const auto choose = [&](auto size) {
    Sizes sizes;
    std::int64_t number = 0;
    for (const std::string& symbol : symbols) sizes.emplace(symbol, size(number++));
    choices.push_back(std::move(sizes));
  };
  choose([](std::int64_t number) { return 3 + 2 * number; });
  if (!symbols.empty()) {
    choose([](std::int64_t) { return 1; });
    choose([](std::int64_t number) { return number % 2 == 0 ? 1 : 4; });
    choose([](std::int64_t number) { return number % 2 == 0 ? 4 : 1; });
    choose([](std::int64_t) { return 8; });
    choose([](std::int64_t) { return 64; });
  }
  std::vector<std::vector<Type>> list;
  for (const bool small : {true, false})
    for (const Sizes& sizes : choices) {
      if (small && !large) continue;
      std::vector<Type> types = inputs;
      for (Type& type : types) {
        type = with_sizes(std::move(type), sizes);
        for (std::size_t axis = 2; small && axis < type.shape->size(); ++axis)
          if ((*type.shape)[axis].constant().value_or(0) > kLargeImage)
            (*type.shape)[axis] = kSmallImage;
      }
      const auto is_concrete = [](const Type& type) {
        return type.is_ranked_tensor() && std::ranges::all_of(*type.shape, [](const Dim& dim) {
                 return dim.constant().value_or(-1) >= 0;
               });
      };
      if (std::ranges::all_of(types, is_concrete) && (symbols.empty() || is_small(types)))
        list.push_back(std::move(types));
    }
  return list;
}

std::vector<Recipe> recipes(std::uint64_t seed, std::size_t inputs,
                            const std::vector<std::int64_t>& below, const TellingNumbers& telling) {
  using Kind = Recipe::Kind;
  std::vector<Recipe> list;
  const std::vector<std::int64_t>& integers = telling.integers;
  if (!integers.empty()) list.push_back({.seed = seed, .below = below, .integers = integers});
  for (const auto& [kind, scale] : {std::pair{Kind::Normal, 1.0},
                                    {Kind::Normal, 10.0},
                                    {Kind::Normal, 0.1},
                                    {Kind::Waves, 1.0},
                                    {Kind::Sparse, 1.0},
                                    {Kind::Normal, 0.01},
                                    {Kind::Normal, 100.0},
                                    {Kind::Waves, 10.0},
                                    {Kind::Normal, 0.001}})
    list.push_back({.kind = kind,
                    .seed = seed + list.size(),
                    .scale = scale,
                    .below = below,
                    .integers = list.size() % 2 == 0 ? integers : std::vector<std::int64_t>{}});
  const std::vector<std::int64_t> many(inputs, 100'000), few(inputs, 10), fewest(inputs, 3),
      ties(inputs, 2);
  const auto add = [&](Recipe recipe) {
    recipe.seed = seed + list.size();
    list.push_back(std::move(recipe));
  };
  add({.kind = Kind::Halves, .below = few});
  add({.kind = Kind::Halves, .below = few, .negative = true});
  add({.kind = Kind::Halves, .scale = 0.25, .below = fewest, .negative = true});
  add({.kind = Kind::Halves, .scale = 0.25, .below = ties, .negative = true});
  add({.below = below, .negative = true});
  add({.below = many, .negative = true});
  add({.kind = Kind::Telling, .below = fewest, .numbers = telling.floats});
  add({.kind = Kind::Telling, .below = below, .integers = integers, .numbers = telling.floats});
  add({.kind = Kind::Normal, .scale = 1e5, .below = below});
  add({.kind = Kind::Positive, .below = below});
  for (int i = 0; i < 3; ++i) add({.kind = Kind::Ties, .below = ties, .negative = true});
  return list;
}

}  // namespace tessera::prove
