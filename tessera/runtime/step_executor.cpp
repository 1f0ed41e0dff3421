#include "tessera/runtime/step_executor.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/runtime/arguments.h"
#include "tessera/runtime/indices.h"

namespace tessera::runtime {
namespace {

using Home = Value::Home;

std::int64_t clock() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

StepExecutor::StepExecutor(std::shared_ptr<const LoadedProgram> loaded,
                           const SessionOptions& options)
    : loaded_(std::move(loaded)),
      program_(loaded_->program()),
      options_(options),
      boxes_(program_.values.size()) {
  for (std::size_t i = 0; i < boxes_.size(); ++i)
    if (program_.values[i].home == Home::Boxed) boxed_.push_back(static_cast<ValueIndex>(i));
  loops_.reserve(static_cast<std::size_t>(std::ranges::count_if(
      program_.steps, [](const Step& step) { return std::holds_alternative<step::Loop>(step); })));
}

Expected<std::vector<Datum>> StepExecutor::run(std::span<const Datum> inputs) {
  TESSERA_TRY_DONE(check_count(inputs.size(), program_.inputs.size()));
  forget();
  std::vector<const std::byte*> from(inputs.size(), nullptr);
  std::vector<Bytes> realigned;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ValueIndex index = program_.inputs[i];
    const Value& value = program_.values[index];
    if (value.home == Home::Boxed) {
      boxes_[index] = inputs[i];
      continue;
    }
    TESSERA_TRY(const Bytes bytes, bytes_of(inputs[i], value));
    from[i] = bytes.data();
    if (reinterpret_cast<std::uintptr_t>(from[i]) % host_alignment() != 0)
      from[i] = realigned.emplace_back(Bytes::copy(bytes.view())).data();
  }
  std::vector<std::shared_ptr<std::byte>> results;
  std::vector<std::byte*> to;
  for (const ValueIndex output : program_.outputs) {
    const Value& value = program_.values[output];
    results.push_back(
        value.home == Home::Boxed ? nullptr : host_memory(static_cast<std::size_t>(value.bytes)));
    to.push_back(results.back().get());
  }
  TESSERA_TRY_DONE(execute(from, to));
  std::vector<Datum> data;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const ValueIndex index = program_.outputs[i];
    const Value& value = program_.values[index];
    if (value.home == Home::Boxed)
      data.push_back(boxes_[index]);
    else
      data.emplace_back(
          Tensor{value.dtype,
                 value.shape,
                 {results[i], {results[i].get(), static_cast<std::size_t>(value.bytes)}}});
  }
  forget();
  return data;
}

Expected<Done> StepExecutor::run(std::span<const std::byte* const> inputs,
                                 std::span<std::byte* const> outputs) {
  TESSERA_TRY_DONE(check_memory(inputs, program_, program_.inputs, host_alignment()));
  TESSERA_TRY_DONE(check_memory(outputs, program_, program_.outputs, host_alignment()));
  forget();
  return execute(inputs, outputs);
}

void StepExecutor::forget() {
  for (const ValueIndex index : boxed_) boxes_[index] = {};
}

Expected<Done> StepExecutor::run_steps() {
  loops_.clear();
  next_ = 0;
  while (next_ < program_.steps.size()) {
    const std::size_t now = next_++;
    if (options_.observe) TESSERA_TRY_DONE(begin_step(now));
    if (options_.inspect) TESSERA_TRY_DONE(inspect(now, false));
    TESSERA_TRY_DONE(
        std::visit([&](const auto& step) { return run_step(step, now); }, program_.steps[now]));
    if (options_.inspect) TESSERA_TRY_DONE(inspect(now, true));
    if (options_.observe) TESSERA_TRY_DONE(end_step(now));
    end_rounds();
  }
  return Done{};
}

Expected<Done> StepExecutor::inspect(std::size_t step, bool done) {
  const auto* launch = std::get_if<step::Launch>(&program_.steps[step]);
  if (launch == nullptr) return Done{};
  return options_.inspect({.step = step,
                           .launch = *launch,
                           .done = done,
                           .memory = [&](const step::Launch::Patch& patch) {
                             return copy_of(patch.at, static_cast<std::size_t>(patch.bytes));
                           }});
}

Expected<Done> StepExecutor::begin_step(std::size_t) {
  step_start_ = clock();
  return Done{};
}

Expected<Done> StepExecutor::end_step(std::size_t step) {
  options_.observe(step, step_start_, clock());
  return Done{};
}

/// At the end of a loop: starts the next iteration, or leaves the loop.
void StepExecutor::end_rounds() {
  while (!loops_.empty() && next_ == loops_.back().end) {
    Frame& loop = loops_.back();
    if (++loop.done < loop.rounds) {
      next_ = loop.begin;
      return;
    }
    loops_.pop_back();
  }
}

Expected<Done> StepExecutor::run_step(const step::Host& host, std::size_t) {
  // A boxed value may be a view of an operand, whose memory is reused: it is copied.
  const bool copied = std::ranges::any_of(
      host.outputs, [&](ValueIndex output) { return program_.values[output].home == Home::Boxed; });
  std::vector<Datum> inputs;
  for (const ValueIndex input : host.inputs) {
    TESSERA_TRY(Datum datum, datum_of(input, copied));
    inputs.push_back(std::move(datum));
  }
  TESSERA_TRY(std::vector<Datum> outputs, options_.host(program_.texts[host.text], inputs));
  if (outputs.size() != host.outputs.size())
    return Diagnostic{.id = "program-host",
                      .message = fmt::format("{} results of a host step", outputs.size()),
                      .note = fmt::format("the program expects {}", host.outputs.size())};
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const ValueIndex output = host.outputs[i];
    const Value& value = program_.values[output];
    if (value.home == Home::Boxed) {
      boxes_[output] = std::move(outputs[i]);
      continue;
    }
    TESSERA_TRY(const Bytes bytes, bytes_of(outputs[i], value));
    if (bytes.size() > 0) TESSERA_TRY_DONE(write(output, bytes.view()));
  }
  return Done{};
}

Expected<Datum> StepExecutor::datum_of(ValueIndex index, bool copied) {
  const Value& value = program_.values[index];
  if (value.home == Home::Boxed) return boxes_[index];
  Tensor tensor{value.dtype, value.shape, {}};
  const auto size = static_cast<std::size_t>(tensor.count() * byte_width(value.dtype));
  if (value.home == Home::Weight) {
    tensor.bytes = program_.weights.slice(static_cast<std::size_t>(value.offset), size);
  } else {
    TESSERA_TRY(tensor.bytes, read(index, size, copied));
  }
  return Datum(std::move(tensor));
}

Expected<Done> StepExecutor::run_step(const step::Branch& branch, std::size_t) {
  const Value& value = program_.values[branch.condition];
  Bytes condition;
  if (value.home == Home::Boxed) {
    const Datum& box = boxes_[branch.condition];
    if (!box.is_tensor() || box.tensor().dtype != DType::Bool || box.tensor().count() != 1)
      return Diagnostic{.id = "program-host",
                        .where = {.item = value.name},
                        .message = "a condition is not one bool"};
    condition = box.tensor().bytes;
  } else {
    TESSERA_TRY(condition, read(branch.condition, 1, false));
  }
  if (*condition.data() == std::byte{0}) next_ = branch.otherwise;
  return Done{};
}

Expected<Done> StepExecutor::check_indices(const step::CheckIndices& check, std::size_t step,
                                           const std::byte* elements) const {
  const Value& value = program_.values[check.at.value];
  const auto wrong = index_outside(check, value.dtype, elements, options_.threads);
  if (!wrong) return Done{};
  return Diagnostic{
      .id = "eval-index",
      .where = {.item = program_.notes[step].what},
      .message = fmt::format("index {}{} is out of range", *wrong,
                             value.name.empty() ? "" : fmt::format(" of {}", value.name)),
      .note = fmt::format("the axis has size {}", check.high + 1)};
}

Expected<Done> StepExecutor::run_step(const step::Jump& jump, std::size_t) {
  next_ = jump.target;
  return Done{};
}

Expected<Done> StepExecutor::run_step(const step::Loop& loop, std::size_t now) {
  if (loop.rounds == 0 || loop.end == now + 1)
    next_ = loop.end;
  else
    loops_.push_back({now + 1, loop.end, loop.rounds, 0, loop.backwards});
  return Done{};
}

}  // namespace tessera::runtime
