#include "tessera/driver/native_model.h"

#include <algorithm>

#include "tessera/driver/inputs.h"
#include "tessera/driver/program_cache.h"

namespace tessera {

NativeModel::NativeModel(std::shared_ptr<const Model> model, CompileModelOptions compile,
                         ExecutionOptions run)
    : model_(std::move(model)), compile_(std::move(compile)), run_(std::move(run)) {
  if (!model_) return;
  for (const ValueId id : model_->graph.inputs()) input_names_.push_back(model_->graph.name(id));
  output_names_ = model_->output_names;
}

Expected<std::shared_ptr<NativeModel>> NativeModel::load(runtime::Program program,
                                                         ExecutionOptions run) {
  TESSERA_TRY(auto runnable, RunnableProgram::create(std::move(program), run));
  auto native = std::make_shared<NativeModel>(nullptr, CompileModelOptions{}, std::move(run));
  const runtime::Program& loaded = runnable->program();
  for (const runtime::ValueIndex input : loaded.inputs)
    native->input_names_.push_back(loaded.values[input].name);
  for (const runtime::ValueIndex output : loaded.outputs)
    native->output_names_.push_back(loaded.values[output].name);
  auto entry = std::make_shared<Entry>();
  entry->runnable = std::move(runnable);
  native->programs_.push_back(std::move(entry));
  return native;
}

Expected<std::shared_ptr<const NativeModel::Entry>> NativeModel::program_for(
    const InputShapes& shapes) {
  const std::lock_guard lock(mutex_);  // also while compiling: others would compile the same
  if (!model_) return programs_.front();
  const auto found =
      std::ranges::find_if(programs_, [&](const auto& entry) { return entry->shapes == shapes; });
  if (found != programs_.end()) {
    programs_.splice(programs_.begin(), programs_, found);
    return programs_.front();
  }
  TESSERA_TRY(auto entry, new_entry(shapes));
  programs_.push_front(std::move(entry));
  if (programs_.size() > kMostPrograms) programs_.pop_back();
  return programs_.front();
}

Expected<std::shared_ptr<NativeModel::Entry>> NativeModel::new_entry(
    const InputShapes& shapes) const {
  auto entry = std::make_shared<Entry>();
  entry->shapes = shapes;
  const std::optional<ProgramCache> cache = ProgramCache::open(compile_.program_cache);
  const std::optional<std::string> key =
      cache ? program_key(*model_, shapes, compile_) : std::nullopt;
  if (key) {
    if (std::optional<runtime::Program> found = cache->find(*key)) {
      TESSERA_TRY(entry->runnable, RunnableProgram::create(*std::move(found), run_));
      return entry;
    }
  }
  TESSERA_TRY(CompiledModel compiled, compile_model(*model_, shapes, compile_));
  if (key) cache->store(*key, compiled.program);
  TESSERA_TRY(entry->runnable, RunnableProgram::create(std::exchange(compiled.program, {}), run_));
  entry->compiled = std::move(compiled);
  return entry;
}

Expected<std::shared_ptr<const NativeModel::Entry>> NativeModel::program_for_arrays(
    const InputShapes& shapes) {
  const auto is_there = [&] {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(programs_,
                               [&](const auto& entry) { return entry->shapes == shapes; });
  };
  if (model_ && !is_there()) TESSERA_TRY_DONE(check_shapes(model_->graph, shapes));
  return program_for(shapes);
}

Expected<std::vector<Datum>> NativeModel::run(std::span<const Datum> inputs) {
  TESSERA_TRY(const auto entry, program_for_arrays(shapes_of(inputs)));
  return entry->runnable->run(inputs);
}

bool NativeModel::is_for_gpu() const {
  return model_ ? compile_.code.machine.is_gpu() : programs().front()->program().is_for_gpu();
}

std::vector<std::shared_ptr<const NativeModel::Entry>> NativeModel::programs() const {
  const std::lock_guard lock(mutex_);
  return {programs_.begin(), programs_.end()};
}

}  // namespace tessera
