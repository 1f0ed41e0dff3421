#include "tessera/driver/native.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>

#include "tessera/codegen/compile.h"
#include "tessera/expr/text.h"
#include "tessera/interp/memory.h"
#include "tessera/ir/expand.h"
#include "tessera/ir/infer.h"
#include "tessera/lower/lower.h"
#include "tessera/machine/machine.h"

namespace tessera {
namespace {

/// The machine code of one definition on inputs of some sizes.
struct Program {
  struct Kernel {
    std::shared_ptr<const codegen::CompiledKernel> code;
    tile::Grid grid;
    std::vector<std::string> arguments;
  };
  std::vector<Kernel> kernels;  // one per output
};

/// Programs of this process, by what they were made from.
class Programs {
 public:
  using Made = Expected<std::shared_ptr<const Program>>;

  template <class Make>
  Made get(const std::string& key, const Make& make) {
    const std::scoped_lock lock(mutex_);
    if (const auto it = made_.find(key); it != made_.end()) return it->second;
    return made_.emplace(key, make()).first->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, Made> made_;
};

Programs& programs() {
  static Programs all;
  return all;
}

const machine::Machine& host_machine() {
  static const machine::Machine machine = machine::host();
  return machine;
}

bool is_aligned(const Tensor& tensor) {
  const auto width = static_cast<std::uintptr_t>(std::max(byte_width(tensor.dtype), 1));
  return reinterpret_cast<std::uintptr_t>(tensor.bytes.data()) % width == 0;
}

class NativeRunner {
 public:
  NativeRunner(const NativeOptions& options, interp::Memory& memory)
      : options_(options), memory_(memory) {}

  NativeReport report = {};

  Expected<std::vector<Datum>> run(const Graph& graph, std::span<const Datum> inputs,
                                   bool outermost);

 private:
  using Data = std::vector<Datum>;

  Expected<Data> run_node(const Graph& graph, const GraphNode& node, const Data& inputs);
  Expected<Data> run_core(const OpDef& op, const Attrs& attrs, const Data& inputs,
                          std::size_t outputs);
  Expected<std::shared_ptr<const Program>> compiled(const Definition& definition,
                                                    const Sizes& sizes, std::size_t outputs);
  Expected<Done> launch(const Program::Kernel& kernel, const std::map<std::string, Tensor>& inputs,
                        const tile::Argument& output);
  /// A graph of this node alone.
  Expected<Data> interpreted(const Graph& graph, const GraphNode& node, const Data& inputs,
                             std::string why);

  const NativeOptions& options_;
  interp::Memory& memory_;
};

Expected<std::vector<Datum>> NativeRunner::run(const Graph& graph, std::span<const Datum> inputs,
                                               bool outermost) {
  std::vector<int> uses(graph.value_count());
  for (const GraphNode& node : graph.nodes())
    for (const ValueId input : graph.inputs(node))
      if (input.present()) ++uses[input.index];
  for (const ValueId output : graph.outputs()) ++uses[output.index];
  Data values(graph.value_count());
  for (std::size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i].index] = inputs[i];
  for (std::uint32_t i = 0; i < values.size(); ++i)
    if (const Tensor* constant = graph.constant({i})) values[i] = *constant;

  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const GraphNode& node = graph.nodes()[n];
    if (options_.run.stop != nullptr && options_.run.stop->load(std::memory_order_relaxed))
      return Diagnostic{.id = "stopped", .message = "the run was stopped"};
    if (outermost && options_.run.progress)
      options_.run.progress({.done = n, .nodes = graph.nodes().size(), .op = node.op->name});
    Data arguments;
    for (const ValueId input : graph.inputs(node))
      arguments.push_back(input.present() ? values[input.index] : Datum{});
    auto results = run_node(graph, node, arguments);
    if (!results) {
      const std::string& name = graph.node_name(n);
      return located(std::move(results).error(),
                     {.item = name.empty() ? fmt::format("{} #{}", node.op->name, n) : name});
    }
    const auto outputs = graph.outputs(node);
    for (std::size_t i = 0; i < outputs.size() && i < results->size(); ++i)
      if (uses[outputs[i].index] > 0) values[outputs[i].index] = std::move((*results)[i]);
    for (const ValueId input : graph.inputs(node))
      if (input.present() && --uses[input.index] == 0) values[input.index] = {};
  }
  Data outputs;
  for (const ValueId output : graph.outputs()) outputs.push_back(values[output.index]);
  return outputs;
}

std::vector<Known> known_of(const std::vector<Datum>& inputs) {
  std::vector<Known> result;
  for (const Datum& input : inputs) {
    if (!input.present())
      result.push_back({.present = false});
    else if (!input.is_tensor())
      result.push_back({.type = {.kind = Type::Kind::Sequence}});
    else
      result.push_back(known(input.tensor()));
  }
  return result;
}

Expected<std::vector<Datum>> NativeRunner::run_node(const Graph& graph, const GraphNode& node,
                                                    const Data& inputs) {
  const OpDef& op = *node.op;
  const auto outputs = graph.outputs(node).size();
  switch (op.kind()) {
    case OpDef::Kind::Core: {
      auto results = run_core(op, *node.attrs, inputs, outputs);
      if (results) return results;
      // What is wrong with the operands, the interpreter says best.
      return interpreted(graph, node, inputs, results.error().message);
    }
    case OpDef::Kind::Composite: {
      TESSERA_TRY(const Graph body,
                  body_of(op, *node.attrs, known_of(inputs), static_cast<int>(outputs)));
      Data present;
      for (const Datum& input : inputs)
        if (input.present()) present.push_back(input);
      return run(body, present, false);
    }
    case OpDef::Kind::Opaque: return interpreted(graph, node, inputs, "it is no index notation");
    case OpDef::Kind::Control: break;
  }
  return interpreted(graph, node, inputs, "it is control flow");
}

Expected<std::vector<Datum>> NativeRunner::interpreted(const Graph& graph, const GraphNode& node,
                                                       const Data& inputs, std::string why) {
  auto& entry = report.interpreted[node.op->name];
  if (entry.count++ == 0) entry.why = std::move(why);
  Graph one;
  std::vector<ValueId> operands;
  Data present;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    operands.push_back({});
    if (!inputs[i].present()) continue;
    operands.back() = one.add_input(graph.type(graph.inputs(node)[i]), fmt::format("x{}", i));
    present.push_back(inputs[i]);
  }
  std::vector<Type> types;
  for (const ValueId output : graph.outputs(node)) types.push_back(graph.type(output));
  const auto subgraphs = graph.subgraphs(node);
  one.set_outputs(one.add_node({.op = node.op,
                                .attrs = *node.attrs,
                                .inputs = std::move(operands),
                                .outputs = std::move(types),
                                .subgraphs = {subgraphs.begin(), subgraphs.end()}}));
  interp::Options options = options_.run;
  options.progress = {};
  options.observe = {};
  options.memory_limit = memory_.left();
  return interp::run(one, present, options);
}

Expected<std::shared_ptr<const Program>> NativeRunner::compiled(const Definition& definition,
                                                                const Sizes& sizes,
                                                                std::size_t outputs) {
  std::string key = fmt::format("{}\n{}\n", outputs, to_text(definition));
  for (const auto& [name, size] : sizes) key += fmt::format("{} = {}\n", name, size.to_string());
  return programs().get(key, [&]() -> Programs::Made {
    const auto start = std::chrono::steady_clock::now();
    Definition wanted = definition;
    wanted.outputs.erase(wanted.outputs.begin() + static_cast<std::ptrdiff_t>(outputs),
                         wanted.outputs.end());
    TESSERA_TRY(tile::Stages stages, tile::stages_of(wanted, sizes));
    TESSERA_TRY(const tile::Schedule schedule,
                lower::default_schedule(std::move(stages), host_machine()));
    TESSERA_TRY(const std::vector<lower::Lowered> lowered, lower::lower(schedule));
    auto program = std::make_shared<Program>();
    for (const lower::Lowered& one : lowered) {
      TESSERA_TRY(auto code, codegen::compile(one.kernel, {.cache = options_.cache}));
      program->kernels.push_back({std::move(code), one.grid, one.arguments});
      ++report.compiled;
    }
    report.compile_seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::shared_ptr<const Program>(std::move(program));
  });
}

Expected<Done> NativeRunner::launch(const Program::Kernel& kernel,
                                    const std::map<std::string, Tensor>& inputs,
                                    const tile::Argument& output) {
  alignas(64) static std::byte nothing[64];  // the memory of empty tensors; never touched
  std::vector<tile::Argument> arguments;
  std::vector<Bytes> aligned;
  const auto& params = kernel.code->kernel().params();
  for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
    const bool viewed = kernel.code->kernel().type(params[i]).is_view();
    const auto it = inputs.find(kernel.arguments[i]);
    if (it == inputs.end()) {
      arguments.push_back(output);
      if (!viewed)
        arguments.back() = tile::Argument::pointer(output.type.dtype, output.data, output.bytes);
      continue;
    }
    const Tensor& tensor = it->second;
    const Bytes& bytes =
        is_aligned(tensor) ? tensor.bytes : aligned.emplace_back(Bytes::copy(tensor.bytes.view()));
    // Kernels read their operands alone.
    auto* data = const_cast<std::byte*>(bytes.data());
    arguments.push_back(
        viewed ? tile::Argument::view(tensor.dtype, data, tensor.shape)
        : data == nullptr
            ? tile::Argument::pointer(tensor.dtype, nothing, sizeof(nothing))
            : tile::Argument::pointer(tensor.dtype, data, static_cast<std::int64_t>(bytes.size())));
  }
  ++report.launches;
  return kernel.code->launch(arguments, kernel.grid, options_.run.threads);
}

Expected<std::vector<Datum>> NativeRunner::run_core(const OpDef& op, const Attrs& attrs,
                                                    const Data& inputs, std::size_t outputs) {
  const std::optional<Signature> signature = signature_of(known_of(inputs));
  if (!signature) return Diagnostic{.id = "lower-unsupported", .message = "it takes no tensors"};
  TESSERA_TRY(const Definition definition, op.define(attrs, *signature));
  TESSERA_TRY(const Sizes sizes, solve_sizes(definition, shapes_of(*signature)));
  TESSERA_TRY(const std::vector<TensorType> types, output_types(definition, sizes));
  const std::size_t wanted = std::min(outputs, types.size());
  TESSERA_TRY(const auto program, compiled(definition, sizes, wanted));

  std::map<std::string, Tensor> tensors;
  std::size_t next = 0;
  for (const Datum& input : inputs)
    if (input.present()) tensors.emplace(definition.inputs[next++].name, input.tensor());
  Data results;
  for (std::size_t i = 0; i < wanted; ++i) {
    std::vector<std::int64_t> shape;
    for (const Dim& dim : types[i].shape) shape.push_back(dim.constant().value_or(0));
    TESSERA_TRY(interp::Memory::Block block, memory_.allocate(shape, byte_width(types[i].dtype)));
    if (std::ranges::count(shape, 0) == 0)
      TESSERA_TRY_DONE(launch(program->kernels[i], tensors,
                              tile::Argument::view(types[i].dtype, block.data(), shape)));
    results.push_back(Tensor{types[i].dtype, shape, std::move(block).freeze()});
  }
  ++report.native;
  return results;
}

}  // namespace

Expected<NativeRun> run_native(const Graph& graph, std::span<const Datum> inputs,
                               const NativeOptions& options) {
  interp::Memory memory(options.run.memory_limit);
  NativeRunner runner(options, memory);
  NativeRun result;
  TESSERA_TRY(result.outputs, runner.run(graph, inputs, true));
  result.report = std::move(runner.report);
  return result;
}

std::string to_text(const NativeReport& report) {
  std::string text =
      fmt::format("{} operators as machine code, {} launches, {} kernels compiled in {:.2f} s\n",
                  report.native, report.launches, report.compiled, report.compile_seconds);
  for (const auto& [name, entry] : report.interpreted)
    text += fmt::format("interpreted: {} ({}): {}\n", name, entry.count, entry.why);
  return text;
}

}  // namespace tessera
