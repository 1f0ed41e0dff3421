#include "cli/native_runner.h"

#include <algorithm>

#include "tessera/support/stopwatch.h"

namespace tessera::cli {
namespace {

/// Refuses flags whose effect was fixed when the program was compiled.
Expected<Done> check_flags(const runtime::Program& program, const CompileFlags& flags) {
  const auto fixed = [&](std::string flag) {
    return Diagnostic{.id = "cli-saved-program",
                      .message = fmt::format("{} has no effect on a saved program", flag),
                      .note = fmt::format("it is machine code for {}", program.architecture),
                      .help = "give the flag to `tessera compile`, or run the model itself"};
  };
  const bool is_gpu_code = program.architecture.starts_with("sm_");
  if (flags.target != "cpu" && !is_gpu_code) return fixed("--target " + flags.target);
  if (flags.precision != CompileFlags{}.precision) return fixed("--precision " + flags.precision);
  return Done{};
}

}  // namespace

Expected<std::unique_ptr<NativeRunner>> NativeRunner::prepare(const Source& source,
                                                              std::vector<Datum> inputs,
                                                              const CompileFlags& flags,
                                                              Context& context) {
  std::unique_ptr<NativeRunner> native(new NativeRunner(context));
  ExecutionOptions options = execution_options(flags, context);
  native->inputs_ = std::move(inputs);
  if (source.program) {
    TESSERA_TRY_DONE(check_flags(*source.program, flags));
    TESSERA_TRY(native->model_, NativeModel::load(*source.program, std::move(options)));
  } else {
    TESSERA_TRY(CompileModelOptions compile_as, compile_options(flags, context, native->line_));
    native->model_ =
        std::make_shared<NativeModel>(source.model, std::move(compile_as), std::move(options));
  }
  TESSERA_TRY(native->entry_, native->model_->program_for(shapes_of(native->inputs_)));
  native->line_.clear();
  TESSERA_TRY(RunnableProgram::Lease session, native->entry_->runnable->lease());
  native->session_.emplace(std::move(session));
  for (Datum& input : native->inputs_) {
    if (!input.is_tensor()) continue;
    // Sessions require aligned memory, and mapped files may be misaligned.
    const Tensor& tensor = input.tensor();
    input = Tensor{tensor.dtype, tensor.shape, Bytes::copy(tensor.bytes.view()), tensor.strings};
  }
  native->place_arguments(ArgumentMemory::Session);
  return native;
}

void NativeRunner::place_arguments(ArgumentMemory where) {
  in_place_ = where != ArgumentMemory::Tensors && entry_->runnable->has_static_arguments();
  memory_.clear();
  from_.clear();
  to_.clear();
  if (!in_place_) return;
  const auto allocate = [&](std::size_t bytes) -> std::byte* {
    if (where == ArgumentMemory::Session) {
      memory_.push_back((*session_)->host_memory(bytes));
    } else {
      const auto buffer = std::make_shared<Buffer>(bytes);
      memory_.emplace_back(buffer, buffer->data());
    }
    return memory_.back().get();
  };
  for (const Datum& input : inputs_) {
    const Bytes& bytes = input.tensor().bytes;
    std::byte* const copy = allocate(bytes.size());
    std::ranges::copy(bytes.view(), copy);
    from_.push_back(copy);
  }
  for (const runtime::ValueIndex output : program().outputs)
    to_.push_back(allocate(static_cast<std::size_t>(program().values[output].bytes)));
}

std::int64_t NativeRunner::argument_bytes() const {
  std::int64_t bytes = 0;
  for (const auto* const list : {&program().inputs, &program().outputs})
    for (const runtime::ValueIndex value : *list) bytes += program().values[value].bytes;
  return bytes;
}

Expected<Done> NativeRunner::run_again() {
  if (in_place_) return (*session_)->run(from_, to_);
  TESSERA_TRY(const std::vector<Datum> ignored, run());
  return Done{};
}

Expected<std::optional<double>> NativeRunner::time_steps() {
  constexpr int kRuns = 200;
  TESSERA_TRY_DONE((*session_)->time_steps(kRuns / 10));  // to warm up
  return (*session_)->time_steps(kRuns);
}

Expected<std::vector<double>> NativeRunner::time(int runs) {
  std::vector<double> milliseconds;
  for (int i = 0; i < runs; ++i) {
    const Stopwatch watch;
    TESSERA_TRY_DONE(run_again());
    milliseconds.push_back(1e3 * watch.seconds());
  }
  return milliseconds;
}

}  // namespace tessera::cli
