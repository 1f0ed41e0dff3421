#include "tessera/driver/native.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>

#include "tessera/codegen/compile.h"
#include "tessera/expr/text.h"
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

/// Computes operators as machine code, and takes note of those that it does not.
class NativeEvaluator {
 public:
  explicit NativeEvaluator(const NativeOptions& options) : options_(options) {}

  NativeReport report = {};

  Expected<bool> compute(const interp::Computation& computation);

 private:
  Expected<std::shared_ptr<const Program>> compiled(const interp::Computation& computation);
  Expected<Done> launch(const Program::Kernel& kernel, const interp::Computation& computation,
                        const interp::Computation::Output& output);
  bool left_to_interpreter(const OpDef& op, std::string why);

  const NativeOptions& options_;
};

bool NativeEvaluator::left_to_interpreter(const OpDef& op, std::string why) {
  auto& entry = report.interpreted[op.name];
  if (entry.count++ == 0) entry.why = std::move(why);
  return false;
}

Expected<bool> NativeEvaluator::compute(const interp::Computation& computation) {
  if (computation.definition == nullptr)
    return left_to_interpreter(computation.op, "it is no index notation");
  const auto program = compiled(computation);
  if (!program) return left_to_interpreter(computation.op, program.error().message);
  for (std::size_t i = 0; i < computation.outputs.size(); ++i) {
    const interp::Computation::Output& output = computation.outputs[i];
    if (std::ranges::count(output.shape, 0) > 0) continue;
    if (const auto launched = launch((*program)->kernels[i], computation, output); !launched)
      return left_to_interpreter(computation.op, launched.error().message);
  }
  ++report.native;
  return true;
}

Expected<std::shared_ptr<const Program>> NativeEvaluator::compiled(
    const interp::Computation& computation) {
  const std::size_t outputs = computation.outputs.size();
  std::string key = fmt::format("{}\n{}\n", outputs, to_text(*computation.definition));
  for (const auto& [name, size] : *computation.sizes)
    key += fmt::format("{} = {}\n", name, size.to_string());
  return programs().get(key, [&]() -> Programs::Made {
    const auto start = std::chrono::steady_clock::now();
    Definition wanted = *computation.definition;
    wanted.outputs.erase(wanted.outputs.begin() + static_cast<std::ptrdiff_t>(outputs),
                         wanted.outputs.end());
    TESSERA_TRY(tile::Stages stages, tile::stages_of(wanted, *computation.sizes));
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

Expected<Done> NativeEvaluator::launch(const Program::Kernel& kernel,
                                       const interp::Computation& computation,
                                       const interp::Computation::Output& output) {
  alignas(64) static std::byte nothing[64];  // the memory of empty tensors; never touched
  std::vector<tile::Argument> arguments;
  std::vector<Bytes> aligned;
  const auto& params = kernel.code->kernel().params();
  const std::vector<Operand>& operands = computation.definition->inputs;
  for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
    const bool viewed = kernel.code->kernel().type(params[i]).is_view();
    const auto it = std::ranges::find(operands, kernel.arguments[i], &Operand::name);
    if (it == operands.end()) {
      arguments.push_back(tile::Argument::view(output.dtype, output.data, output.shape));
      if (!viewed)
        arguments.back() =
            tile::Argument::pointer(output.dtype, output.data, arguments.back().bytes);
      continue;
    }
    const Tensor& tensor = computation.inputs[static_cast<std::size_t>(it - operands.begin())];
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

}  // namespace

Expected<NativeRun> run_native(const Graph& graph, std::span<const Datum> inputs,
                               const NativeOptions& options) {
  NativeEvaluator native(options);
  interp::Options run = options.run;
  run.compute = [&](const interp::Computation& c) { return native.compute(c); };
  NativeRun result;
  TESSERA_TRY(result.outputs, interp::run(graph, inputs, run));
  result.report = std::move(native.report);
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
