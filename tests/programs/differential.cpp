#include "tests/programs/differential.h"

#include <fmt/format.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <optional>
#include <set>

#include "tessera/driver/check_steps.h"
#include "tessera/driver/native_model.h"
#include "tessera/expr/walk.h"
#include "tessera/ir/expand.h"
#include "tessera/ir/text.h"
#include "tessera/passes/conv_transpose_subpixel.h"
#include "tessera/passes/dense_groups.h"
#include "tessera/passes/pipeline.h"
#include "tessera/program/stage.h"
#include "tessera/support/rng.h"
#include "tessera/support/rounding_mode.h"
#include "tests/programs/emulated_run.h"
#include "tests/programs/node_evaluation.h"

namespace tessera::testing {
namespace {

/// About two units in the last place.
double unit(DType dtype) {
  switch (dtype) {
    case DType::F64: return 0x1p-48;
    case DType::F16: return 0x1p-10;
    case DType::BF16: return 0x1p-7;
    default: return 0x1p-21;
  }
}

/// Short binary fractions: sums and products of them are not rounded.
bool is_short(const Datum& datum) {
  if (!datum.is_tensor())
    return datum.kind() == Datum::Kind::Nothing || std::ranges::all_of(datum.elements(), is_short);
  const Tensor& tensor = datum.tensor();
  if (tensor.dtype == DType::String || !is_float(tensor.dtype)) return true;
  for (std::int64_t i = 0; i < tensor.count(); ++i)
    if (const double x = number_at(tensor, i);
        std::isfinite(x) && (std::fabs(x) > 1024 || x * 64 != std::nearbyint(x * 64)))
      return false;
  return true;
}

/// The sign of what is not a number says nothing, and machines differ in it: all have one sign in
/// the first run, the other in the second, and any later.
Datum with_other_signs_of_nan(const Datum& datum, int sample, Rng& rng) {
  if (!datum.is_tensor() || datum.tensor().dtype == DType::String ||
      !is_float(datum.tensor().dtype))
    return datum;
  const Tensor& tensor = datum.tensor();
  std::vector<std::byte> bytes(tensor.bytes.view().begin(), tensor.bytes.view().end());
  const auto width = static_cast<std::size_t>(byte_width(tensor.dtype));
  if (width < 2) return datum;  // some types of a byte have one NaN, which is minus zero elsewhere
  constexpr std::byte kSign{0x80};
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    if (!std::isnan(number_at(tensor, i))) continue;
    const bool is_negative = sample < 2 ? sample == 0 : rng.uniform() < 0.5;
    std::byte& highest = bytes[(static_cast<std::size_t>(i) + 1) * width - 1];
    highest = is_negative ? highest | kSign : highest & ~kSign;
  }
  return Tensor{tensor.dtype, tensor.shape, Bytes::copy(bytes)};
}

Tensor moved(const Tensor& tensor, double by, Rng& rng) {
  if (tensor.dtype == DType::String || !is_float(tensor.dtype)) return tensor;
  std::vector<std::byte> bytes(tensor.bytes.view().begin(), tensor.bytes.view().end());
  double largest = 0;  // small elements may be what is left of larger ones
  for (std::int64_t i = 0; i < tensor.count(); ++i)
    if (const double x = std::fabs(number_at(tensor, i)); std::isfinite(x))
      largest = std::max(largest, x);
  for (std::int64_t i = 0; i < tensor.count(); ++i)
    if (number_at(tensor, i) != 0)
      store_number(tensor.dtype, bytes.data(), i,
                   number_at(tensor, i) * (1 + by * (2 * rng.uniform() - 1)) +
                       by / 16 * largest * (2 * rng.uniform() - 1));
  return {tensor.dtype, tensor.shape, Bytes::copy(bytes)};
}
Datum moved(const Datum& datum, double by, Rng& rng) {
  if (datum.is_tensor())
    return moved(datum.tensor(), std::max(by, unit(datum.tensor().dtype)), rng);
  if (datum.kind() != Datum::Kind::Sequence) return datum;
  std::vector<Datum> elements;
  for (const Datum& element : datum.elements()) elements.push_back(moved(element, by, rng));
  return Datum::sequence(std::move(elements));
}

/// How numbers within an operator are computed.
struct Arithmetic {
  bool narrow = false;          // in float, which overflows sooner than double, where none is f64
  int rounding = FE_TONEAREST;  // as <cfenv> has it
};

/// The values of all nodes of a graph, or why there are none. `noise`, if there is one, is given
/// the node and the operands, and afterwards the results.
class Evaluation {
 public:
  explicit Evaluation(const Graph& graph, Arithmetic arithmetic = {})
      : graph_(graph), arithmetic_(arithmetic) {}

  std::optional<std::vector<Datum>> run(
      std::span<const Datum> inputs,
      const std::function<void(std::size_t, std::vector<Datum>&)>& noise = {}) const {
    std::vector<Datum> values(graph_.value_count());
    for (std::size_t i = 0; i < inputs.size(); ++i) values[graph_.inputs()[i].index] = inputs[i];
    for (std::uint32_t v = 0; v < graph_.value_count(); ++v)
      if (const Tensor* constant = graph_.constant(ValueId{v})) values[v] = *constant;
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
      const GraphNode& node = graph_.nodes()[n];
      std::vector<Datum> operands;
      for (const ValueId id : graph_.inputs(node))
        operands.push_back(id.present() ? values[id.index] : Datum());
      if (noise) noise(n, operands);
      auto results = of_node(node, operands);
      if (!results) return std::nullopt;
      if (noise) noise(n, *results);
      for (std::size_t i = 0; i < results->size(); ++i)
        values[graph_.outputs(node)[i].index] = (*results)[i];
    }
    return values;
  }

 private:
  std::optional<std::vector<Datum>> of_node(const GraphNode& node,
                                            std::span<const Datum> operands) const {
    const NodeCall call{
        {.op = node.op,
         .attrs = *node.attrs,
         .outputs = std::vector<Type>(graph_.outputs(node).size()),
         .subgraphs = {graph_.subgraphs(node).begin(), graph_.subgraphs(node).end()}},
        operands};
    const bool takes_f64 = std::ranges::any_of(operands, [](const Datum& operand) {
      return operand.is_tensor() && operand.tensor().dtype == DType::F64;
    });
    const bool gives_f64 = std::ranges::any_of(graph_.outputs(node), [&](ValueId result) {
      return graph_.type(result).dtype == DType::F64;
    });
    const RoundingMode rounding(arithmetic_.rounding);
    return arithmetic_.narrow && !takes_f64 && !gives_f64 ? evaluate<float>(call)
                                                          : evaluate<double>(call);
  }

  const Graph& graph_;
  Arithmetic arithmetic_;
};

std::vector<Datum> outputs_of(const Graph& graph, const std::vector<Datum>& values) {
  std::vector<Datum> outputs;
  for (const ValueId id : graph.outputs()) outputs.push_back(values[id.index]);
  return outputs;
}

/// The reference's results, and those of runs with noise.
struct Expectation {
  std::vector<Datum> outputs;
  std::vector<std::vector<Datum>> noisy = {};
};

constexpr int kSamples = 3, kManySamples = 48;

std::optional<Expectation> expectation(const RandomProgram& program, const RunConfig& config,
                                       int samples) {
  auto expanded = expand(
      program.graph, [](const OpDef&) { return true; }, NeedsValue::Keep);
  const Graph& graph = expanded ? *expanded : program.graph;
  const Evaluation evaluation(graph);
  const auto plain = evaluation.run(program.inputs);
  if (!plain) return std::nullopt;
  std::vector<bool> rounds(graph.nodes().size());
  for (std::size_t n = 0; n < rounds.size(); ++n) {
    const GraphNode& node = graph.nodes()[n];
    for (const ValueId id : graph.inputs(node))
      if (id.present() && !is_short((*plain)[id.index])) rounds[n] = true;
    for (const ValueId id : graph.outputs(node))
      if (!is_short((*plain)[id.index])) rounds[n] = true;
  }
  Expectation expected{.outputs = outputs_of(graph, *plain)};
  std::vector<int> roundings{FE_TONEAREST};
  if (samples > kSamples) roundings = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  for (const int rounding : roundings) {
    const Evaluation other(graph, {.narrow = true, .rounding = rounding});
    const auto values = other.run(program.inputs);
    if (!values) return std::nullopt;
    expected.noisy.push_back(outputs_of(graph, *values));
  }
  for (int sample = 0; sample < samples; ++sample) {
    Rng rng(static_cast<std::uint64_t>(sample) + 1);
    const auto noise = [&](std::size_t n, std::vector<Datum>& data) {
      // Any sum of products may have factors of bf16.
      const bool moves = rounds[n] || config.bf16;
      for (Datum& datum : data) {
        if (moves) datum = moved(datum, config.bf16 ? 0x1p-7 : 0, rng);
        datum = with_other_signs_of_nan(datum, sample, rng);
      }
    };
    // Noise that makes a run fail says nothing of any element.
    if (auto values = evaluation.run(program.inputs, noise))
      expected.noisy.push_back(outputs_of(graph, *values));
    else
      return std::nullopt;
  }
  return expected;
}

/// By how much runs with noise move each element.
std::vector<double> spreads_of(const Tensor& expected, const std::vector<const Datum*>& noisy) {
  std::vector<double> spreads(static_cast<std::size_t>(expected.count()));
  for (std::int64_t i = 0; i < expected.count(); ++i) {
    const double e = number_at(expected, i);
    double& spread = spreads[static_cast<std::size_t>(i)];
    for (const Datum* one : noisy) {
      const double x = number_at(one->tensor(), i);
      if (std::isnan(x) && std::isnan(e)) continue;
      const double by = x == e ? 0 : std::fabs(x - e);
      spread = std::isnan(by) ? INFINITY : std::max(spread, by);
    }
  }
  return spreads;
}

/// Of those that are finite.
double root_mean_square(const std::vector<double>& numbers) {
  double sum = 0, count = 0;
  for (const double number : numbers) {
    if (!std::isfinite(number)) continue;
    sum += number * number;
    ++count;
  }
  return count > 0 ? std::sqrt(sum / count) : 0;
}

/// How far each element may be from the expected one; nothing if runs with noise differ by more
/// than numbers do.
std::optional<std::vector<double>> tolerance(const Tensor& expected,
                                             const std::vector<const Datum*>& noisy,
                                             const RunConfig& config) {
  for (const Datum* one : noisy)
    if (!one->is_tensor() || one->tensor().shape != expected.shape ||
        (expected.strings && *one->tensor().strings != *expected.strings))
      return std::nullopt;
  std::vector<double> allowed(static_cast<std::size_t>(expected.count()));
  if (expected.dtype == DType::String) return allowed;
  double largest = 0;
  for (std::int64_t i = 0; i < expected.count(); ++i)
    if (const double e = std::fabs(number_at(expected, i));
        is_float(expected.dtype) && std::isfinite(e))
      largest = std::max(largest, e);
  const std::vector<double> spreads = spreads_of(expected, noisy);
  // A few runs may spare an element of a recurrence that blows up what is rounded.
  const double typical = is_float(expected.dtype) ? root_mean_square(spreads) : 0;
  for (std::int64_t i = 0; i < expected.count(); ++i) {
    const double e = number_at(expected, i);
    double spread = std::max(spreads[static_cast<std::size_t>(i)], typical);
    // A position that depends on how numbers are rounded (`unique`, `top_k`) may be any other.
    const bool is_position = expected.dtype == DType::I64 || expected.dtype == DType::I32;
    if (is_position && spread > 0) spread = INFINITY;
    // Over the reals nothing is said of what is not finite.
    if (!config.exact && !std::isfinite(e)) spread = INFINITY;
    const double units = is_float(expected.dtype) ? 2 * unit(expected.dtype) : 0;
    const double size = std::isfinite(e) ? std::fabs(e) : 0;
    allowed[static_cast<std::size_t>(i)] =
        8 * spread + units * size + units / 4 * std::max(largest, 1.0) * (spread > 0 ? 1 : 0.25);
  }
  return allowed;
}

std::string difference(const Tensor& actual, const Tensor& expected,
                       const std::vector<const Datum*>& noisy, const RunConfig& config) {
  if (actual.dtype != expected.dtype)
    return fmt::format("is {} instead of {}", tessera::to_string(actual.dtype),
                       tessera::to_string(expected.dtype));
  const auto allowed = tolerance(expected, noisy, config);
  if (!allowed) return "";
  if (actual.shape != expected.shape)
    return fmt::format("has the shape [{}] instead of [{}]", fmt::join(actual.shape, ", "),
                       fmt::join(expected.shape, ", "));
  if (actual.dtype == DType::String)
    return *actual.strings == *expected.strings ? "" : "is another text";
  for (std::int64_t i = 0; i < expected.count(); ++i) {
    const double a = number_at(actual, i), e = number_at(expected, i);
    const double within = (*allowed)[static_cast<std::size_t>(i)];
    const bool same = is_float(expected.dtype) ? a == e || (std::isnan(a) && std::isnan(e))
                                               : integer_at(actual, i) == integer_at(expected, i);
    if (same || std::isinf(within) || std::fabs(a - e) <= within) continue;
    return fmt::format(
        "element {} is {} instead of {} (within {:.2g})", i,
        is_float(expected.dtype) ? fmt::format("{:.9g}", a) : std::to_string(integer_at(actual, i)),
        is_float(expected.dtype) ? fmt::format("{:.9g}", e)
                                 : std::to_string(integer_at(expected, i)),
        within);
  }
  return "";
}

/// Whether runs with noise have as many elements where the expected value is no tensor.
bool is_settled(const Datum& expected, const std::vector<const Datum*>& noisy) {
  return std::ranges::all_of(noisy, [&](const Datum* one) {
    return one->kind() == expected.kind() && (one->is_tensor() || !one->present() ||
                                              one->elements().size() == expected.elements().size());
  });
}
std::vector<const Datum*> elements_at(const std::vector<const Datum*>& data, std::size_t i) {
  std::vector<const Datum*> elements;
  for (const Datum* one : data) elements.push_back(&one->elements()[i]);
  return elements;
}

std::string difference(const Datum& actual, const Datum& expected,
                       const std::vector<const Datum*>& noisy, const RunConfig& config) {
  if (!is_settled(expected, noisy)) return "";
  if (actual.kind() != expected.kind()) return "is of another kind";
  if (!actual.present()) return "";
  if (actual.is_tensor()) return difference(actual.tensor(), expected.tensor(), noisy, config);
  if (actual.elements().size() != expected.elements().size())
    return "has another number of elements";
  for (std::size_t i = 0; i < actual.elements().size(); ++i)
    if (std::string why =
            difference(actual.elements()[i], expected.elements()[i], elements_at(noisy, i), config);
        !why.empty())
      return fmt::format("element {}: {}", i, why);
  return "";
}

/// The tolerances of all tensors of a value in a row; nothing where one has none.
std::optional<std::vector<double>> tolerances(const Datum& expected,
                                              const std::vector<const Datum*>& noisy,
                                              const RunConfig& config) {
  if (!is_settled(expected, noisy)) return std::nullopt;
  if (expected.is_tensor()) return tolerance(expected.tensor(), noisy, config);
  std::vector<double> all;
  for (std::size_t i = 0; expected.present() && i < expected.elements().size(); ++i) {
    const auto some = tolerances(expected.elements()[i], elements_at(noisy, i), config);
    if (!some) return std::nullopt;
    all.insert(all.end(), some->begin(), some->end());
  }
  return all;
}

std::vector<const Datum*> noisy_output(const Expectation& expected, std::size_t output) {
  std::vector<const Datum*> noisy;
  for (const auto& one : expected.noisy) noisy.push_back(&one[output]);
  return noisy;
}

std::string difference(const std::vector<Datum>& actual, const Expectation& expected,
                       const RunConfig& config) {
  if (actual.size() != expected.outputs.size()) return "there is another number of outputs";
  for (std::size_t i = 0; i < actual.size(); ++i)
    if (std::string why =
            difference(actual[i], expected.outputs[i], noisy_output(expected, i), config);
        !why.empty())
      return fmt::format("output {} {}", i, why);
  return "";
}

CompileModelOptions compile_options(const RunConfig& config) {
  CompileModelOptions options;
  options.code.passes.exact = config.exact;
  options.code.threads = config.threads;
  options.precision = config.bf16 ? Precision::Bf16 : Precision::F32;
  if (config.gpu) options.code.machine = machine::cuda();
  if (!config.machine.empty()) options.code.machine = *machine::named(config.machine);
  if (!config.disabled_pass.empty()) options.code.passes.disabled.insert(config.disabled_pass);
  return options;
}

Expected<std::vector<Datum>> run(const Model& model, const std::vector<Datum>& inputs,
                                 const RunConfig& config) {
  const CompileModelOptions options = compile_options(config);
  if (!config.gpu && config.machine.empty())
    return NativeModel(model, options, {.threads = config.threads}).run(inputs);
  TESSERA_TRY(const CompiledModel compiled, compile_model(model, shapes_of(inputs), options));
  if (!config.gpu) return emulated_run(compiled, inputs, config.emulator);
  TESSERA_TRY(StepCheckReport report, check_steps(compiled, inputs, {}));
  for (const StepCheckReport::Difference& difference : report.differences)
    if (config.exact || difference.step == StepCheckReport::kWhole)
      return Diagnostic{.id = "step", .message = difference.what};
  return std::move(report.outputs);
}

/// What is not finite becomes no number at all.
Datum without_infinities(const Datum& datum) {
  if (!datum.is_tensor() || datum.tensor().dtype == DType::String ||
      !is_float(datum.tensor().dtype))
    return datum;
  const Tensor& tensor = datum.tensor();
  std::vector<std::byte> bytes(tensor.bytes.view().begin(), tensor.bytes.view().end());
  for (std::int64_t i = 0; i < tensor.count(); ++i)
    if (!std::isfinite(number_at(tensor, i)))
      store_number(tensor.dtype, bytes.data(), i, std::nan(""));
  return Tensor{tensor.dtype, tensor.shape, Bytes::copy(bytes)};
}

/// Core operators, after the passes that multiply more numbers by zero than the definitions do.
Graph with_zero_products(const Graph& given, const machine::Machine& machine) {
  const auto expanded = expand(
      given, [](const OpDef&) { return true; }, NeedsValue::Keep);
  if (!expanded) return given;
  const auto subpixel = passes::conv_transpose_subpixel(*expanded);
  return passes::dense_groups(subpixel ? *subpixel : *expanded, machine);
}

/// Over the reals nothing is said of what depends on a number that is not finite: such results, if
/// they are not finite themselves, become the expected ones.
void excuse_infinities(const RandomProgram& program, const RunConfig& config,
                       const std::vector<Datum>& expected, std::vector<Datum>& actual) {
  const Graph graph = with_zero_products(program.graph, compile_options(config).code.machine);
  const auto values =
      Evaluation(graph).run(program.inputs, [](std::size_t, std::vector<Datum>& of) {
        for (Datum& datum : of) datum = without_infinities(datum);
      });
  if (!values) return;
  const std::vector<Datum> undefined = outputs_of(graph, *values);
  for (std::size_t i = 0; i < actual.size() && i < expected.size(); ++i) {
    if (!actual[i].is_tensor() || !expected[i].is_tensor() || !undefined[i].is_tensor()) continue;
    const Tensor &found = actual[i].tensor(), &right = expected[i].tensor();
    if (!is_float(found.dtype) || found.dtype != right.dtype || found.shape != right.shape ||
        undefined[i].tensor().shape != right.shape)
      continue;
    std::vector<std::byte> bytes(found.bytes.view().begin(), found.bytes.view().end());
    for (std::int64_t at = 0; at < found.count(); ++at)
      if (!std::isfinite(number_at(found, at)) && std::isnan(number_at(undefined[i].tensor(), at)))
        store_number(found.dtype, bytes.data(), at, number_at(right, at));
    actual[i] = Tensor{found.dtype, found.shape, Bytes::copy(bytes)};
  }
}

std::string text_of(const Datum& datum) {
  if (!datum.present()) return "nothing";
  if (!datum.is_tensor()) {
    std::string text = "(";
    for (const Datum& element : datum.elements()) text += text_of(element) + " ";
    return text + ")";
  }
  const Tensor& tensor = datum.tensor();
  std::string text =
      fmt::format("{}[{}] [", tessera::to_string(tensor.dtype), fmt::join(tensor.shape, ", "));
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    if (i > 0) text += ", ";
    if (tensor.dtype == DType::String)
      text += '"' + (*tensor.strings)[static_cast<std::size_t>(i)] + '"';
    else if (is_float(tensor.dtype))
      text += fmt::format("{:.9g}", number_at(tensor, i));
    else
      text += std::to_string(integer_at(tensor, i));
  }
  return text + "]";
}

}  // namespace

std::string to_string(const RunConfig& config) {
  return fmt::format("--threads {} --numerics {} --precision {}{}{}{}", config.threads,
                     config.exact ? "exact" : "reals", config.bf16 ? "bf16" : "f32",
                     config.gpu ? " --target cuda:sm_90a --check-steps" : "",
                     config.machine.empty() ? "" : " --machine " + config.machine,
                     config.disabled_pass.empty() ? "" : " --disable-pass " + config.disabled_pass);
}

std::optional<std::vector<ToleratedOutput>> tolerated_outputs(const RandomProgram& program) {
  const RunConfig config{.exact = true};
  auto expected = expectation(program, config, 12);
  if (!expected) return std::nullopt;
  std::vector<ToleratedOutput> outputs;
  for (std::size_t i = 0; i < expected->outputs.size(); ++i)
    outputs.push_back({expected->outputs[i],
                       tolerances(expected->outputs[i], noisy_output(*expected, i), config)});
  return outputs;
}

std::string difference(const RandomProgram& program, const RunConfig& config) {
  if (!config.machine.empty() && !can_be_emulated(program.graph)) return "";
  const auto expected = expectation(program, config, kSamples);
  if (!expected) return "";
  const Model model{.graph = program.graph, .output_names = {}};
  auto actual = run(model, program.inputs, config);
  if (!actual) return "diagnostic: " + tessera::to_string(actual.error());
  if (difference(*actual, *expected, config).empty()) return "";
  const auto surer = expectation(program, config, kManySamples);
  if (!surer) return "";
  if (!config.exact) excuse_infinities(program, config, surer->outputs, *actual);
  return difference(*actual, *surer, config);
}

namespace {

/// Whether the definitions leave one order to compute in. A sum of floats has the order of the
/// kernel that it is a part of, and which one that is depends on its neighbours; bodies of control
/// flow are interpreted, in double precision, unless folding takes a branch.
bool has_one_order(const Graph& given) {
  const auto expanded = expand(
      given, [](const OpDef&) { return true; }, NeedsValue::Keep);
  if (!expanded) return false;
  bool result = true;
  for (const GraphNode& node : expanded->nodes()) {
    if (node.op->kind() == OpDef::Kind::Opaque) continue;
    if (node.op->kind() != OpDef::Kind::Core) return false;
    const auto stages = program::stages_of_node(*expanded, node);
    if (!stages) return false;
    for (const tile::Stage& stage : *stages) {
      if (stage.output.forward) return false;
      for_each_within(stage.output.value, [&](const Scalar& part) {
        result = result && !(std::holds_alternative<node::Component>(part.node()) &&
                             part.sort() == Sort::Value);
      });
    }
  }
  return result;
}

}  // namespace

std::string bit_difference(const RandomProgram& program, const RunConfig& config) {
  if (!has_one_order(program.graph)) return "";
  const Model model{.graph = program.graph, .output_names = {}};
  CompileModelOptions options = compile_options(config);
  options.code.passes.exact = true;
  const auto all = NativeModel(model, options, {.threads = config.threads}).run(program.inputs);
  for (const std::string& name : passes::pass_names())
    if (name != "expand") options.code.passes.disabled.insert(name);
  const auto none = NativeModel(model, options, {.threads = config.threads}).run(program.inputs);
  if (!all || !none) {
    if (!all && !none) return "";
    return "diagnostic: " + tessera::to_string(all ? none.error() : all.error());
  }
  for (std::size_t i = 0; i < all->size(); ++i) {
    if (!(*all)[i].is_tensor() || !(*none)[i].is_tensor()) continue;
    const Tensor &a = (*all)[i].tensor(), &b = (*none)[i].tensor();
    if (a.dtype != b.dtype || a.shape != b.shape)
      return fmt::format("output {} is of another type", i);
    if (a.dtype == DType::String) continue;
    const auto width = static_cast<std::size_t>(byte_width(a.dtype));
    for (std::int64_t at = 0; at < a.count(); ++at) {
      const auto from = static_cast<std::size_t>(at) * width;
      if (std::ranges::equal(a.bytes.view().subspan(from, width),
                             b.bytes.view().subspan(from, width)) ||
          (is_float(a.dtype) && std::isnan(number_at(a, at)) && std::isnan(number_at(b, at))))
        continue;
      return fmt::format("output {} element {} is {:.9g} with passes and {:.9g} without", i, at,
                         number_at(a, at), number_at(b, at));
    }
  }
  return "";
}

namespace {

/// The part of a program that computes these values; of nodes that are cut, results are inputs.
RandomProgram part(const RandomProgram& program, const std::vector<Datum>& values,
                   const std::set<std::size_t>& cut, const std::vector<ValueId>& outputs) {
  const Graph& graph = program.graph;
  std::vector<bool> needed(graph.value_count());
  for (const ValueId id : outputs) needed[id.index] = true;
  for (std::size_t n = graph.nodes().size(); n-- > 0;) {
    const GraphNode& node = graph.nodes()[n];
    if (cut.contains(n) ||
        std::ranges::none_of(graph.outputs(node), [&](ValueId id) { return needed[id.index]; }))
      continue;
    for (const ValueId id : graph.inputs(node))
      if (id.present()) needed[id.index] = true;
  }
  RandomProgram made;
  std::vector<ValueId> now(graph.value_count());
  const auto add_input = [&](ValueId id) {
    const Datum& datum = values[id.index];
    const Type type = datum.is_tensor()
                          ? Type::tensor(datum.tensor().dtype,
                                         {datum.tensor().shape.begin(), datum.tensor().shape.end()})
                          : graph.type(id);
    now[id.index] = made.graph.add_input(type, fmt::format("v{}", id.index));
    made.inputs.push_back(datum);
  };
  for (const ValueId id : graph.inputs())
    if (needed[id.index]) add_input(id);
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const GraphNode& node = graph.nodes()[n];
    if (!cut.contains(n)) continue;
    for (const ValueId id : graph.outputs(node))
      if (needed[id.index]) add_input(id);
  }
  for (std::uint32_t v = 0; v < graph.value_count(); ++v)
    if (const Tensor* constant = graph.constant(ValueId{v}); constant != nullptr && needed[v])
      now[v] = made.graph.add_constant(*constant, "");
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const GraphNode& node = graph.nodes()[n];
    if (cut.contains(n) ||
        std::ranges::none_of(graph.outputs(node), [&](ValueId id) { return needed[id.index]; }))
      continue;
    std::vector<ValueId> inputs;
    for (const ValueId id : graph.inputs(node)) inputs.push_back(id.present() ? now[id.index] : id);
    std::vector<Type> types;
    for (const ValueId id : graph.outputs(node)) types.push_back(graph.type(id));
    const auto subgraphs = graph.subgraphs(node);
    const auto results = made.graph.add_node(
        {node.op, *node.attrs, inputs, types, {subgraphs.begin(), subgraphs.end()}});
    for (std::size_t i = 0; i < results.size(); ++i) now[graph.outputs(node)[i].index] = results[i];
  }
  std::vector<ValueId> results;
  for (const ValueId id : outputs) results.push_back(now[id.index]);
  made.graph.set_outputs(results);
  return made;
}

}  // namespace

RandomProgram shrunk(RandomProgram program,
                     const std::function<bool(const RandomProgram&)>& fails) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    const auto values = Evaluation(program.graph).run(program.inputs);
    if (!values) return program;
    const Graph& graph = program.graph;
    const std::vector<ValueId> outputs(graph.outputs().begin(), graph.outputs().end());
    std::vector<RandomProgram> candidates;
    // The first result that differs, alone.
    if (graph.nodes().size() > 1 || outputs.size() > 1)
      for (const GraphNode& node : graph.nodes())
        for (const ValueId id : graph.outputs(node))
          if (outputs.size() > 1 || outputs[0] != id)
            candidates.push_back(part(program, *values, {}, {id}));
    if (graph.nodes().size() > 1)
      for (std::size_t n = 0; n < graph.nodes().size(); ++n)
        candidates.push_back(part(program, *values, {n}, outputs));
    for (RandomProgram& candidate : candidates) {
      const bool less = candidate.graph.nodes().size() < graph.nodes().size() ||
                        candidate.graph.outputs().size() < outputs.size();
      if (!less || !fails(candidate)) continue;
      program = std::move(candidate);
      smaller = true;
      break;
    }
  }
  return program;
}

std::string to_text(const RandomProgram& program) {
  std::string text = tessera::to_text(program.graph);
  for (std::size_t i = 0; i < program.inputs.size(); ++i)
    text += fmt::format("{} = {}\n", program.graph.name(program.graph.inputs()[i]),
                        text_of(program.inputs[i]));
  return text;
}

}  // namespace tessera::testing
