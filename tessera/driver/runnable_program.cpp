#include "tessera/driver/runnable_program.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/engine/engine.h"

namespace tessera {
namespace {

/// Copy of an output whose memory may be that of an input or of a weight.
Datum own_copy(const Datum& datum) {
  if (datum.is_tensor()) {
    const Tensor& tensor = datum.tensor();
    return Tensor{tensor.dtype, tensor.shape, Bytes::copy(tensor.bytes.view()), tensor.strings};
  }
  if (!datum.present()) return datum;
  std::vector<Datum> elements;
  for (const Datum& element : datum.elements()) elements.push_back(own_copy(element));
  if (datum.kind() == Datum::Kind::Sequence) return Datum::sequence(std::move(elements));
  return elements.empty() ? Datum::optional() : Datum::optional(std::move(elements[0]));
}

/// Rejects a program that needs more host memory than the limit.
Expected<Done> check_memory_limit(const runtime::Program& program, std::int64_t limit) {
  if (program.is_for_gpu()) return Done{};
  std::int64_t results = 0;
  for (const runtime::ValueIndex output : program.outputs)
    results += std::min(program.values[output].bytes, limit + 1);
  const std::int64_t needed = std::max(program.arena_bytes, results);
  if (needed <= limit) return Done{};
  return Diagnostic{.id = "memory-limit",
                    .message = fmt::format("the program needs {} bytes", needed),
                    .note = fmt::format("{} bytes are left", limit),
                    .help = "allow more with --memory-limit"};
}

}  // namespace

runtime::SessionOptions session_options(const ExecutionOptions& options) {
  return {.threads = options.threads,
          .host = engine::interpreter_host({.threads = options.threads,
                                            .memory_limit = options.memory_limit,
                                            .max_iterations = options.max_iterations,
                                            .stop = options.stop}),
          .cache = options.cache,
          .observe = options.observe};
}

RunnableProgram::RunnableProgram(std::shared_ptr<const runtime::LoadedProgram> loaded,
                                 ExecutionOptions options)
    : loaded_(std::move(loaded)), options_(std::move(options)) {
  for (const auto* const list : {&program().inputs, &program().outputs})
    for (const runtime::ValueIndex value : *list)
      if (program().values[value].home == runtime::Value::Home::Boxed)
        has_static_arguments_ = false;
}

Expected<std::shared_ptr<RunnableProgram>> RunnableProgram::create(runtime::Program program,
                                                                   ExecutionOptions options) {
  TESSERA_TRY_DONE(check_memory_limit(program, options.memory_limit));
  TESSERA_TRY(auto loaded, runtime::LoadedProgram::load(std::move(program)));
  return std::shared_ptr<RunnableProgram>(
      new RunnableProgram(std::move(loaded), std::move(options)));
}

Expected<RunnableProgram::Lease> RunnableProgram::lease() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      Slot slot = std::move(idle_.back());
      idle_.pop_back();
      return Lease(*this, std::move(slot));
    }
  }
  TESSERA_TRY(auto session, runtime::Session::create(loaded_, session_options(options_)));
  return Lease(*this, {.session = std::move(session)});
}

std::byte* RunnableProgram::Lease::staging(std::size_t input) {
  const runtime::Program& program = pool_->program();
  slot_.staging.resize(program.inputs.size());
  std::optional<Buffer>& buffer = slot_.staging[input];
  if (!buffer) {
    const runtime::Value& value = program.values[program.inputs[input]];
    buffer.emplace(static_cast<std::size_t>(value.bytes));
  }
  return buffer->data();
}

void RunnableProgram::give_back(Slot slot) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(slot));
}

Expected<std::shared_ptr<std::byte>> RunnableProgram::host_memory(std::size_t bytes) {
  TESSERA_TRY(const Lease session, lease());
  return session->host_memory(bytes);
}

Expected<std::vector<Datum>> RunnableProgram::run(std::span<const Datum> inputs) {
  TESSERA_TRY(const Lease session, lease());
  TESSERA_TRY(std::vector<Datum> outputs, session->run(inputs));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (program().values[program().outputs[i]].home == runtime::Value::Home::Boxed)
      outputs[i] = own_copy(outputs[i]);
  return outputs;
}

bool is_saved_program(const std::filesystem::path& path) {
  return path.extension() == ".tsr";
}

}  // namespace tessera
