#include "python/bindings/executable.h"

#include <algorithm>

#include "tessera/runtime/arguments.h"
#include "tessera/runtime/program_file.h"

namespace tessera::python {
namespace {

bool is_boxed(const runtime::Program& program, runtime::ValueIndex value) {
  return program.values[value].home == runtime::Value::Home::Boxed;
}

/// A copy of a result whose memory may be that of an input or of a weight.
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

}  // namespace

Expected<std::unique_ptr<runtime::Session>> SessionPool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<runtime::Session> session = std::move(idle_.back());
      idle_.pop_back();
      return session;
    }
  }
  return runtime::Session::create(program_, session_options(options_));
}

Expected<std::vector<Datum>> SessionPool::run(std::span<const Datum> inputs) {
  TESSERA_TRY(std::unique_ptr<runtime::Session> session, take());
  auto outputs = run_in(*session, inputs);
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(session));
  return outputs;
}

Expected<std::vector<Datum>> SessionPool::run_in(runtime::Session& session,
                                                 std::span<const Datum> inputs) const {
  const runtime::Program& all = program();
  TESSERA_TRY_DONE(runtime::check_count(inputs.size(), all.inputs.size()));
  const auto boxed = [&](runtime::ValueIndex value) { return is_boxed(all, value); };
  if (std::ranges::any_of(all.inputs, boxed) || std::ranges::any_of(all.outputs, boxed)) {
    TESSERA_TRY(std::vector<Datum> outputs, session.run(inputs));
    for (Datum& output : outputs) output = own_copy(output);
    return outputs;
  }
  std::vector<Bytes> held;
  std::vector<const std::byte*> from;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    TESSERA_TRY(Bytes bytes, runtime::bytes_of(inputs[i], all.values[all.inputs[i]]));
    if (bytes.size() > 0 && !runtime::is_aligned(bytes.data())) bytes = Bytes::copy(bytes.view());
    from.push_back(bytes.data());
    held.push_back(std::move(bytes));
  }
  // Two inputs may be the same array, which sessions do not accept.
  for (std::size_t i = 0; i < held.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const bool apart = held[i].data() + held[i].size() <= held[j].data() ||
                         held[j].data() + held[j].size() <= held[i].data();
      if (apart || held[i].size() == 0) continue;
      held[i] = Bytes::copy(held[i].view());
      from[i] = held[i].data();
    }
  std::vector<Buffer> memory;
  std::vector<std::byte*> to;
  for (const runtime::ValueIndex output : all.outputs) {
    memory.emplace_back(static_cast<std::size_t>(all.values[output].bytes));
    to.push_back(memory.back().data());
  }
  TESSERA_TRY_DONE(session.run(from, to));
  std::vector<Datum> outputs;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const runtime::Value& value = all.values[all.outputs[i]];
    outputs.emplace_back(Tensor{value.dtype, value.shape, std::move(memory[i]).freeze()});
  }
  return outputs;
}

Executable::Executable(std::shared_ptr<const Model> model, CompileModelOptions compile,
                       ExecutionOptions run)
    : model_(std::move(model)), compile_(std::move(compile)), run_(std::move(run)) {
  if (!model_) return;
  for (const ValueId id : model_->graph.inputs()) input_names_.push_back(model_->graph.name(id));
  output_names_ = model_->output_names;
}

Expected<std::shared_ptr<Executable>> Executable::open(const std::filesystem::path& path,
                                                       ExecutionOptions run) {
  TESSERA_TRY(runtime::Program program, runtime::load(path));
  TESSERA_TRY(auto loaded, runtime::LoadedProgram::load(std::move(program)));
  auto executable = std::make_shared<Executable>(nullptr, CompileModelOptions{}, run);
  auto variant = std::make_shared<Variant>();
  variant->pool = std::make_shared<SessionPool>(std::move(loaded), std::move(run));
  const runtime::Program& all = variant->pool->program();
  for (const runtime::ValueIndex input : all.inputs)
    executable->input_names_.push_back(all.values[input].name);
  for (const runtime::ValueIndex output : all.outputs)
    executable->output_names_.push_back(all.values[output].name);
  executable->variants_.push_back(std::move(variant));
  return executable;
}

Expected<std::shared_ptr<const Executable::Variant>> Executable::variant_for(
    const InputShapes& shapes) {
  const std::lock_guard lock(mutex_);  // also while compiling: others would compile the same
  if (!model_) return variants_.front();
  const auto found = std::ranges::find_if(
      variants_, [&](const auto& variant) { return variant->shapes == shapes; });
  if (found != variants_.end()) {
    variants_.splice(variants_.begin(), variants_, found);
    return variants_.front();
  }
  TESSERA_TRY(CompiledModel compiled, compile_model(*model_, shapes, compile_));
  TESSERA_TRY(auto loaded, runtime::LoadedProgram::load(std::exchange(compiled.program, {})));
  auto variant = std::make_shared<Variant>();
  variant->shapes = shapes;
  variant->compiled = std::move(compiled);
  variant->pool = std::make_shared<SessionPool>(std::move(loaded), run_);
  variants_.push_front(std::move(variant));
  if (variants_.size() > kMaxVariants) variants_.pop_back();
  return variants_.front();
}

Expected<std::shared_ptr<const Executable::Variant>> Executable::variant_for(
    std::span<const Datum> inputs) {
  const auto same = [](const auto& shape, const Datum& datum) {
    return shape && datum.is_tensor() && *shape == datum.tensor().shape;
  };
  {
    const std::lock_guard lock(mutex_);
    if (!variants_.empty() &&
        (!model_ || std::ranges::equal(variants_.front()->shapes, inputs, same)))
      return variants_.front();
  }
  return variant_for(shapes_of(inputs));
}

Expected<std::vector<Datum>> Executable::run(std::span<const Datum> inputs) {
  TESSERA_TRY(const auto variant, variant_for(inputs));
  return variant->pool->run(inputs);
}

std::vector<std::shared_ptr<const Executable::Variant>> Executable::variants() const {
  const std::lock_guard lock(mutex_);
  return {variants_.begin(), variants_.end()};
}

}  // namespace tessera::python
