#include "tessera/interp/interp.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <unordered_map>

#include "tessera/expr/eval.h"
#include "tessera/expr/exact_cast.h"
#include "tessera/expr/number.h"
#include "tessera/expr/shape.h"
#include "tessera/interp/memory.h"
#include "tessera/ir/data_movement.h"
#include "tessera/ir/expand.h"
#include "tessera/ir/infer.h"
#include "tessera/ops/text.h"
#include "tessera/runtime/host/host.h"

namespace tessera::interp {
namespace {

/// Lifted types other than float and double have no storage form as a dtype.
template <class T>
inline constexpr bool kAlwaysLifts = !std::is_floating_point_v<T>;

template <class T>
class Runner {
 public:
  Runner(const Options& options, Memory& memory) : options_(options), memory_(memory) {}

  Expected<std::vector<Value>> run(const Graph& graph, std::span<const Value> inputs,
                                   bool outermost);
  Expected<std::vector<Value>> run_op(const OpDef& op, const Attrs& attrs,
                                      std::span<const Value> inputs, int outputs);

 private:
  using Values = std::vector<Value>;

  Expected<Values> run_node(const Graph& graph, const GraphNode& node,
                            std::span<const Value> inputs);
  Expected<Values> run_on_text(const OpDef& op, const Attrs& attrs, std::span<const Value> inputs,
                               int outputs);
  Expected<Values> run_core(const OpDef& op, const Attrs& attrs, std::span<const Value> inputs,
                            int outputs);
  Expected<Values> run_composite(const OpDef& op, const Attrs& attrs, std::span<const Value> inputs,
                                 int outputs);
  Expected<Values> run_opaque(const OpDef& op, const Attrs& attrs, std::span<const Value> inputs,
                              int outputs);
  Expected<Values> run_if(const Graph& graph, const GraphNode& node, std::span<const Value> inputs);
  Expected<Values> run_loop(const Graph& graph, const GraphNode& node,
                            std::span<const Value> inputs);
  Expected<Values> run_scan(const Graph& graph, const GraphNode& node,
                            std::span<const Value> inputs);

  /// Joins slices along a new axis.
  Expected<Value> stacked(const std::vector<Value>& slices, const Type& type, std::int64_t axis);
  /// One slice of a tensor along an axis.
  Expected<Value> slice(const Value& whole, std::int64_t axis, std::int64_t at);

  bool stopped() const {
    return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed);
  }

  const Options& options_;
  Memory& memory_;
  std::int64_t iterations_ = 0;  // of all loops so far
};

Diagnostic stop_diagnostic() {
  return {.id = "stopped", .message = "the run was stopped"};
}

template <class T>
std::int64_t width_of(DType dtype, bool lifted) {
  return lifted && is_float(dtype) ? static_cast<std::int64_t>(sizeof(T)) : byte_width(dtype);
}

std::vector<ValueInfo> known_of(std::span<const Value> inputs) {
  std::vector<ValueInfo> result;
  for (const Value& input : inputs) {
    if (!input.datum.present()) {
      result.push_back({.present = false});
    } else if (!input.datum.is_tensor()) {
      result.push_back({.type = {.kind = Type::Kind::Sequence}});
    } else if (input.lifted) {
      const Tensor& tensor = input.datum.tensor();
      result.push_back(
          {.type = Type::tensor(tensor.dtype, {tensor.shape.begin(), tensor.shape.end()})});
    } else {
      result.push_back(constant_info(input.datum.tensor()));
    }
  }
  return result;
}

bool is_text(const Value& value) {
  return value.datum.is_tensor() && value.datum.tensor().dtype == DType::String;
}

/// Whether storing a result rounds it: results of arithmetic to types other than f32, in which
/// definitions compute, and what is moved into a type that does not have all numbers of its own.
bool is_rounded(const OpDef& op, const Attrs& attrs, const std::vector<ValueInfo>& inputs,
                DType to) {
  const auto moved = data_movement(op, attrs, inputs);
  if (!moved) return to != DType::F32;
  const DType from = inputs[moved->operand].type.dtype;
  return !is_float(from) || !is_exact_cast(from, to);  // that integers are small is not known
}

/// Records that elements are stored.
void trace_rounding(DType dtype, Memory::Block& block, const std::vector<std::int64_t>& shape) {
  auto* numbers = reinterpret_cast<TracedNumber*>(block.data());
  for (std::int64_t i = 0; i < *element_count(shape); ++i)
    numbers[i] = TracedNumber::stored(dtype, numbers[i]);
}

/// Bytes that a datum holds, shared or not.
std::int64_t bytes_of(const Datum& datum) {
  std::size_t bytes = 0;
  if (datum.is_tensor()) {
    bytes = datum.tensor().bytes.size();
    if (datum.tensor().strings)
      for (const std::string& text : *datum.tensor().strings)
        bytes += sizeof(std::string) + text.size();
  } else if (datum.present()) {
    for (const Datum& element : datum.elements())
      bytes += sizeof(element) + static_cast<std::size_t>(bytes_of(element));
  }
  return static_cast<std::int64_t>(bytes);
}

/// Number that controls a branch or loop: the first of a tensor, 0 of an empty one.
Expected<std::int64_t> steering(const Value& value) {
  if (!value.datum.is_tensor() || value.datum.tensor().dtype == DType::String)
    return bad_operands("the condition is text or not a tensor",
                        "a boolean or an integer is expected");
  return value.datum.tensor().count() == 0 ? 0 : integer_at(value.datum.tensor(), 0);
}

/// Number of remaining reads of each value.
std::vector<int> uses_of(const Graph& graph) {
  std::vector<int> uses(graph.value_count());
  for (const GraphNode& node : graph.nodes())
    for (const ValueId input : graph.inputs(node))
      if (input.present()) ++uses[input.index];
  for (const ValueId output : graph.outputs()) ++uses[output.index];
  return uses;
}

template <class T>
Expected<std::vector<Value>> Runner<T>::run(const Graph& graph, std::span<const Value> inputs,
                                            bool outermost) {
  TESSERA_CHECK(inputs.size() == graph.inputs().size(), "{} inputs for a graph with {}",
                inputs.size(), graph.inputs().size());
  std::vector<int> uses = uses_of(graph);
  std::vector<Value> values(graph.value_count());
  for (std::size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i].index] = inputs[i];
  for (std::uint32_t i = 0; i < values.size(); ++i)
    if (const Tensor* constant = graph.constant({i})) values[i] = {*constant};
  if constexpr (kAlwaysLifts<T>) {
    for (Value& value : values)
      if (!value.lifted && value.datum.is_tensor() && is_float(value.datum.tensor().dtype))
        value = {lift<T>(value.datum.tensor()), true};
  }

  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const GraphNode& node = graph.nodes()[n];
    if (stopped()) return stop_diagnostic();
    if (outermost && options_.progress)
      options_.progress({.done = n, .nodes = graph.nodes().size(), .op = node.op->name});
    std::vector<Value> arguments;
    for (const ValueId input : graph.inputs(node))
      arguments.push_back(input.present() ? values[input.index] : Value{});
    auto results = run_node(graph, node, arguments);
    if (!results) {
      const std::string& name = graph.node_name(n);
      return located(std::move(results).error(),
                     {.item = name.empty() ? fmt::format("{} #{}", node.op->name, n) : name});
    }
    const auto outputs = graph.outputs(node);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (i >= results->size())
        return Diagnostic{.id = "run-missing-result",
                          .where = {.item = node.op->name},
                          .message = fmt::format("there is no result {}", i)};
      if (outermost && options_.observe) options_.observe(outputs[i], (*results)[i]);
      if (uses[outputs[i].index] > 0) values[outputs[i].index] = std::move((*results)[i]);
    }
    for (const ValueId input : graph.inputs(node))
      if (input.present() && --uses[input.index] == 0) values[input.index] = {};
  }
  std::vector<Value> outputs;
  for (const ValueId output : graph.outputs()) outputs.push_back(values[output.index]);
  return outputs;
}

template <class T>
Expected<std::vector<Value>> Runner<T>::run_node(const Graph& graph, const GraphNode& node,
                                                 std::span<const Value> inputs) {
  switch (node.op->control) {
    case OpDef::Control::If: return run_if(graph, node, inputs);
    case OpDef::Control::Loop: return run_loop(graph, node, inputs);
    case OpDef::Control::Scan: return run_scan(graph, node, inputs);
    case OpDef::Control::None: break;
  }
  return run_op(*node.op, *node.attrs, inputs, static_cast<int>(graph.outputs(node).size()));
}

template <class T>
Expected<std::vector<Value>> Runner<T>::run_op(const OpDef& op, const Attrs& attrs,
                                               std::span<const Value> inputs, int outputs) {
  std::vector<bool> present;
  for (const Value& input : inputs) present.push_back(input.datum.present());
  TESSERA_TRY_DONE(check_arity(op, present));
  if (const Attrs::Entry* open = attrs.symbolic(); open != nullptr)
    return bad_operands(fmt::format("attribute {} has no value", open->first),
                        "only the graphs of rules leave attributes open");
  switch (op.kind()) {
    case OpDef::Kind::Core: return run_core(op, attrs, inputs, outputs);
    case OpDef::Kind::Composite: return run_composite(op, attrs, inputs, outputs);
    case OpDef::Kind::Opaque: return run_opaque(op, attrs, inputs, outputs);
    case OpDef::Kind::Control: break;
  }
  TESSERA_CHECK(false, "{} runs with its subgraphs only", op.name);
  return Values{};
}

template <class T>
Expected<std::vector<Value>> Runner<T>::run_core(const OpDef& op, const Attrs& attrs,
                                                 std::span<const Value> inputs, int outputs) {
  const std::optional<Signature> signature = signature_of(known_of(inputs));
  if (!signature) return bad_operands(fmt::format("{} takes tensors", op.name));
  if (std::ranges::any_of(inputs, is_text)) return run_on_text(op, attrs, inputs, outputs);
  const auto shared = defined(op, attrs, *signature);
  if (!shared && is_needs_value(shared.error()))
    return bad_operands(
        shared.error().message,
        fmt::format("content is tracked for tensors of up to {} elements", kSmallTensor));
  if (!shared) return shared.error();
  const Definition& definition = **shared;
  TESSERA_TRY(const Sizes sizes, solve_sizes(definition, shapes_of(*signature)));
  TESSERA_TRY(const std::vector<TensorType> types, output_types(definition, sizes));

  std::vector<ConstArray> arrays;
  for (const Value& input : inputs)
    if (input.datum.present())
      arrays.push_back({.dtype = input.datum.tensor().dtype,
                        .data = input.datum.tensor().bytes.data(),
                        .lifted = input.lifted});
  const std::size_t wanted = std::min<std::size_t>(static_cast<std::size_t>(outputs), types.size());
  std::vector<Memory::Block> blocks;
  std::vector<MutableArray> into;
  std::vector<std::vector<std::int64_t>> shapes;
  for (std::size_t i = 0; i < wanted; ++i) {
    std::vector<std::int64_t>& shape = shapes.emplace_back();
    for (const Dim& dim : types[i].shape) {
      TESSERA_CHECK(dim.constant().has_value(), "{} has no size", dim.to_string());
      shape.push_back(*dim.constant());
    }
    const bool lifted = kAlwaysLifts<T> && is_float(types[i].dtype);
    TESSERA_TRY(Memory::Block block, memory_.allocate(shape, width_of<T>(types[i].dtype, lifted)));
    into.push_back({.dtype = types[i].dtype, .data = block.data(), .lifted = lifted});
    blocks.push_back(std::move(block));
  }
  TESSERA_TRY_DONE(
      eval<T>(definition, sizes, arrays, into,
              {.threads = options_.threads, .stop = options_.stop, .in_order = options_.in_order}));
  if constexpr (std::is_same_v<T, TracedNumber>)
    for (std::size_t i = 0; i < wanted && options_.traces_rounding; ++i)
      if (into[i].lifted && is_rounded(op, attrs, known_of(inputs), types[i].dtype))
        trace_rounding(types[i].dtype, blocks[i], shapes[i]);
  Values results;
  for (std::size_t i = 0; i < wanted; ++i)
    results.push_back(
        {Tensor{types[i].dtype, shapes[i], std::move(blocks[i]).freeze()}, into[i].lifted});
  return results;
}

template <class T>
Expected<std::vector<Value>> Runner<T>::run_on_text(const OpDef& op, const Attrs& attrs,
                                                    std::span<const Value> inputs, int outputs) {
  const std::optional<Signature> signature = signature_of(known_of(inputs));
  TESSERA_TRY(const std::vector<bool> text_results, tessera::text_results(op, attrs, *signature));
  // Maps each distinct string to a number; the empty string is 0, the value of an access out of
  // range.
  std::vector<std::string> texts = {{}};
  std::unordered_map<std::string, std::int64_t> numbers = {{{}, 0}};
  Values numbered(inputs.begin(), inputs.end());
  for (Value& input : numbered) {
    if (!is_text(input)) continue;
    const Tensor& text = input.datum.tensor();
    TESSERA_TRY(Memory::Block block, memory_.allocate(text.shape, sizeof(std::int64_t)));
    for (std::size_t i = 0; i < text.strings->size(); ++i) {
      const auto [entry, added] =
          numbers.emplace((*text.strings)[i], static_cast<std::int64_t>(texts.size()));
      if (added) texts.push_back(entry->first);
      store_integer(DType::I64, block.data(), static_cast<std::int64_t>(i), entry->second);
    }
    input = {.datum = Tensor{DType::I64, text.shape, std::move(block).freeze()}};
  }
  TESSERA_TRY(Values results, run_core(op, attrs, numbered, outputs));
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!text_results[i]) continue;
    const Tensor found = results[i].datum.tensor();
    std::int64_t bytes = 0;
    for (std::int64_t at = 0; at < found.count(); ++at)
      bytes += static_cast<std::int64_t>(
          sizeof(std::string) + texts[static_cast<std::size_t>(integer_at(found, at))].size());
    // Checks the strings against the memory limit; the block itself is not used.
    TESSERA_TRY_DONE(memory_.allocate(std::array{bytes}, 1));
    std::vector<std::string> strings;
    strings.reserve(static_cast<std::size_t>(found.count()));
    for (std::int64_t at = 0; at < found.count(); ++at)
      strings.push_back(texts[static_cast<std::size_t>(integer_at(found, at))]);
    Datum datum = Tensor::of_strings(found.shape, std::move(strings));
    auto charge = memory_.charge(bytes_of(datum));
    results[i] = {.datum = std::move(datum), .charge = std::move(charge)};
  }
  return results;
}

template <class T>
Expected<std::vector<Value>> Runner<T>::run_composite(const OpDef& op, const Attrs& attrs,
                                                      std::span<const Value> inputs, int outputs) {
  TESSERA_TRY(const Graph body, body_of(op, attrs, known_of(inputs), outputs));
  std::vector<Value> present;
  for (const Value& input : inputs)
    if (input.datum.present()) present.push_back(input);
  return run(body, present, false);
}

template <class T>
Expected<std::vector<Value>> Runner<T>::run_opaque(const OpDef& op, const Attrs& attrs,
                                                   std::span<const Value> inputs, int outputs) {
  const host::Function function = host::find(op.name);
  if (function == nullptr)
    return Diagnostic{.id = "run-no-host-function",
                      .message = fmt::format("{} has no host function", op.name)};
  std::vector<Datum> plain;
  for (const Value& input : inputs) {
    if (input.lifted)
      return Diagnostic{.id = "run-opaque-number",
                        .message = fmt::format("{} runs on floats only", op.name)};
    plain.push_back(input.datum);
  }
  TESSERA_TRY(
      std::vector<Datum> results,
      function(
          {.inputs = plain, .attrs = attrs, .outputs = outputs, .memory_limit = memory_.left()}));
  Values values;
  for (Datum& result : results) {
    auto charge = memory_.charge(bytes_of(result));
    values.push_back({.datum = std::move(result), .charge = std::move(charge)});
  }
  return values;
}

template <class T>
Expected<std::vector<Value>> Runner<T>::run_if(const Graph& graph, const GraphNode& node,
                                               std::span<const Value> inputs) {
  const auto branches = graph.subgraphs(node);
  TESSERA_TRY(const std::int64_t condition, steering(inputs[0]));
  return run(*branches[condition != 0 ? 0 : 1], inputs.subspan(1), false);
}

template <class T>
Expected<std::vector<Value>> Runner<T>::run_loop(const Graph& graph, const GraphNode& node,
                                                 std::span<const Value> inputs) {
  const Graph& body = *graph.subgraphs(node)[0];
  const auto states = static_cast<std::size_t>(node.attrs->i("states"));
  const std::size_t stacks = body.outputs().size() - 1 - states;
  std::int64_t trips = std::numeric_limits<std::int64_t>::max();
  if (inputs[0].datum.present()) {
    if (!inputs[0].datum.is_tensor() || inputs[0].datum.tensor().count() != 1)
      return bad_operands("the trip count of a loop is not one number");
    TESSERA_TRY(trips, steering(inputs[0]));
  }
  std::int64_t go = 1;
  if (inputs[1].datum.present()) {
    TESSERA_TRY(go, steering(inputs[1]));
  }
  std::vector<Value> carried(inputs.begin() + 2, inputs.begin() + 2 + static_cast<long>(states));
  const std::span<const Value> captures = inputs.subspan(2 + states);
  std::vector<std::vector<Value>> slices(stacks);
  for (std::int64_t step = 0; step < trips && go != 0; ++step) {
    if (stopped()) return stop_diagnostic();
    if (++iterations_ > options_.max_iterations)
      return Diagnostic{.id = "loop-limit",
                        .message = fmt::format("the loop did not end after {} iterations", step),
                        .note = fmt::format("the loops of a run are limited to {} iterations",
                                            options_.max_iterations),
                        .help = "allow as many as fit into a time with --time-limit"};
    std::vector<Value> arguments;
    arguments.push_back({Tensor::of<std::int64_t>(DType::I64, {}, std::span(&step, 1))});
    const std::uint8_t truth = 1;
    arguments.push_back({Tensor::of<std::uint8_t>(DType::Bool, {}, std::span(&truth, 1))});
    arguments.insert(arguments.end(), carried.begin(), carried.end());
    arguments.insert(arguments.end(), captures.begin(), captures.end());
    TESSERA_TRY(Values results, run(body, arguments, false));
    TESSERA_TRY(go, steering(results[0]));
    for (std::size_t i = 0; i < states; ++i) carried[i] = std::move(results[1 + i]);
    for (std::size_t i = 0; i < stacks; ++i)
      slices[i].push_back(std::move(results[1 + states + i]));
  }
  for (std::size_t i = 0; i < stacks; ++i) {
    TESSERA_TRY(Value whole, stacked(slices[i], body.type(body.outputs()[1 + states + i]), 0));
    carried.push_back(std::move(whole));
  }
  return carried;
}

template <class T>
Expected<std::vector<Value>> Runner<T>::run_scan(const Graph& graph, const GraphNode& node,
                                                 std::span<const Value> inputs) {
  const Graph& body = *graph.subgraphs(node)[0];
  const auto states = static_cast<std::size_t>(node.attrs->i("states"));
  const auto elements = static_cast<std::size_t>(node.attrs->i("elements"));
  const std::size_t stacks = body.outputs().size() - states;
  const auto list_at = [&](const char* name, std::size_t i) {
    const Ints& list = node.attrs->ints(name);
    return i < list.size() ? list[i] : 0;
  };
  std::vector<Value> carried(inputs.begin(), inputs.begin() + static_cast<long>(states));
  const std::span<const Value> scanned = inputs.subspan(states, elements);
  const std::span<const Value> captures = inputs.subspan(states + elements);
  std::int64_t steps = -1;
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < elements; ++i) {
    if (!scanned[i].datum.is_tensor()) return bad_operands("a scan runs over tensors");
    const Tensor& tensor = scanned[i].datum.tensor();
    TESSERA_TRY(const int axis,
                normal_axis(list_at("input_axes", i), static_cast<int>(tensor.shape.size())));
    const std::int64_t extent = tensor.shape[static_cast<std::size_t>(axis)];
    if (steps >= 0 && extent != steps)
      return bad_operands(
          fmt::format("the elements of a scan have {} and {} slices", steps, extent));
    steps = extent;
    axes.push_back(axis);
  }
  std::vector<std::vector<Value>> slices(stacks);
  for (std::int64_t step = 0; step < steps; ++step) {
    if (stopped()) return stop_diagnostic();
    std::vector<Value> arguments = carried;
    for (std::size_t i = 0; i < elements; ++i) {
      const bool backwards = list_at("input_directions", i) != 0;
      TESSERA_TRY(Value one, slice(scanned[i], axes[i], backwards ? steps - 1 - step : step));
      arguments.push_back(std::move(one));
    }
    arguments.insert(arguments.end(), captures.begin(), captures.end());
    TESSERA_TRY(Values results, run(body, arguments, false));
    for (std::size_t i = 0; i < states; ++i) carried[i] = std::move(results[i]);
    for (std::size_t i = 0; i < stacks; ++i) slices[i].push_back(std::move(results[states + i]));
  }
  for (std::size_t i = 0; i < stacks; ++i) {
    if (list_at("output_directions", i) != 0) std::ranges::reverse(slices[i]);
    TESSERA_TRY(Value whole, stacked(slices[i], body.type(body.outputs()[states + i]),
                                     list_at("output_axes", i)));
    carried.push_back(std::move(whole));
  }
  return carried;
}

template <class T>
Expected<Value> Runner<T>::slice(const Value& whole, std::int64_t axis, std::int64_t at) {
  const Tensor& tensor = whole.datum.tensor();
  const std::int64_t width = width_of<T>(tensor.dtype, whole.lifted);
  const auto split = tensor.shape.begin() + axis;
  std::int64_t outer = 1, inner = width;
  for (auto it = tensor.shape.begin(); it != split; ++it) outer *= *it;
  for (auto it = split + 1; it != tensor.shape.end(); ++it) inner *= *it;
  std::vector<std::int64_t> shape(tensor.shape.begin(), split);
  shape.insert(shape.end(), split + 1, tensor.shape.end());
  if (outer == 1)  // a stretch of the whole
    return Value{Tensor{tensor.dtype, std::move(shape),
                        tensor.bytes.slice(static_cast<std::size_t>(at * inner),
                                           static_cast<std::size_t>(inner))},
                 whole.lifted};
  TESSERA_TRY(Memory::Block block, memory_.allocate(shape, width));
  for (std::int64_t i = 0; i < outer; ++i)
    std::memcpy(block.data() + i * inner, tensor.bytes.data() + (i * *split + at) * inner,
                static_cast<std::size_t>(inner));
  return Value{Tensor{tensor.dtype, std::move(shape), std::move(block).freeze()}, whole.lifted};
}

template <class T>
Expected<Value> Runner<T>::stacked(const std::vector<Value>& slices, const Type& type,
                                   std::int64_t axis) {
  if (slices.empty()) {  // the shape is what inference knows; what it does not know has no extent
    std::vector<std::int64_t> shape;
    if (type.shape)
      for (const Dim& dim : *type.shape) shape.push_back(dim.constant().value_or(0));
    TESSERA_TRY(const int at, normal_axis(axis, static_cast<int>(shape.size()) + 1));
    shape.insert(shape.begin() + at, 0);
    return Value{Tensor{type.dtype, shape, {}}, kAlwaysLifts<T> && is_float(type.dtype)};
  }
  if (!slices[0].datum.is_tensor()) return bad_operands("only tensors are stacked");
  const Tensor& first = slices[0].datum.tensor();
  const std::int64_t width = width_of<T>(first.dtype, slices[0].lifted);
  TESSERA_TRY(const int at, normal_axis(axis, static_cast<int>(first.shape.size()) + 1));
  std::int64_t outer = 1, inner = width;
  for (std::size_t i = 0; i < first.shape.size(); ++i)
    (static_cast<int>(i) < at ? outer : inner) *= first.shape[i];
  const auto count = static_cast<std::int64_t>(slices.size());
  std::vector<std::int64_t> shape = first.shape;
  shape.insert(shape.begin() + at, count);
  TESSERA_TRY(Memory::Block block, memory_.allocate(shape, width));
  for (std::int64_t s = 0; s < count; ++s) {
    const Value& one = slices[static_cast<std::size_t>(s)];
    if (!one.datum.is_tensor() || one.datum.tensor().shape != first.shape ||
        one.datum.tensor().dtype != first.dtype)
      return bad_operands("the results of the steps differ in shape or type");
    for (std::int64_t i = 0; i < outer && inner > 0; ++i)
      std::memcpy(block.data() + (i * count + s) * inner,
                  one.datum.tensor().bytes.data() + i * inner, static_cast<std::size_t>(inner));
  }
  return Value{Tensor{first.dtype, std::move(shape), std::move(block).freeze()}, slices[0].lifted};
}

}  // namespace

template <class T>
Tensor lift(const Tensor& tensor) {
  Buffer buffer(static_cast<std::size_t>(tensor.count()) * sizeof(T));
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    const T element = number_of<T>(number_at(tensor, i));
    std::memcpy(buffer.data() + i * static_cast<std::int64_t>(sizeof(T)), &element, sizeof(T));
  }
  return {tensor.dtype, tensor.shape, std::move(buffer).freeze()};
}

template <class T>
Expected<std::vector<Value>> run_as(const Graph& graph, std::span<const Value> inputs,
                                    const Options& options) {
  Memory memory(options.memory_limit);
  return Runner<T>(options, memory).run(graph, inputs, true);
}

template <class T>
Expected<std::vector<Value>> run_op(const OpDef& op, const Attrs& attrs,
                                    std::span<const Value> inputs, int outputs,
                                    const Options& options) {
  Memory memory(options.memory_limit);
  return Runner<T>(options, memory).run_op(op, attrs, inputs, outputs);
}

Expected<std::vector<Datum>> run(const Graph& graph, std::span<const Datum> inputs,
                                 const Options& options) {
  std::vector<Value> values;
  for (const Datum& input : inputs) values.push_back({input});
  TESSERA_TRY(std::vector<Value> results, run_as<double>(graph, values, options));
  std::vector<Datum> plain;
  for (Value& result : results) plain.push_back(std::move(result.datum));
  return plain;
}

#define TESSERA_INSTANTIATE(T)                                                          \
  template Tensor lift<T>(const Tensor&);                                               \
  template Expected<std::vector<Value>> run_as<T>(const Graph&, std::span<const Value>, \
                                                  const Options&);                      \
  template Expected<std::vector<Value>> run_op<T>(const OpDef&, const Attrs&,           \
                                                  std::span<const Value>, int, const Options&);
TESSERA_NUMBER_TYPES(TESSERA_INSTANTIATE)
#undef TESSERA_INSTANTIATE

}  // namespace tessera::interp
