#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/driver/compile_model.h"
#include "tessera/driver/runnable_program.h"

namespace tessera {

/// Model compiled just in time for the input shapes it is run with, or a saved program. The most
/// recently used programs are cached. Thread-safe.
class NativeModel {
 public:
  static constexpr std::size_t kMostPrograms = 16;

  NativeModel(std::shared_ptr<const Model> model, CompileModelOptions compile,
              ExecutionOptions run);
  /// The caller keeps the model alive.
  NativeModel(const Model& model, CompileModelOptions compile, ExecutionOptions run)
      : NativeModel(std::shared_ptr<const Model>(std::shared_ptr<void>(), &model),
                    std::move(compile), std::move(run)) {}
  /// A saved program, which runs on inputs of its own shapes alone.
  static Expected<std::shared_ptr<NativeModel>> load(runtime::Program program,
                                                     ExecutionOptions run);

  /// Program for inputs of these shapes.
  struct Entry {
    InputShapes shapes = {};  // empty for a saved program
    /// Without its program, which is in `runnable`; none for programs that were saved or cached.
    std::optional<CompiledModel> compiled = {};
    std::shared_ptr<RunnableProgram> runnable = {};

    const runtime::Program& program() const { return runnable->program(); }
  };
  /// Program for these shapes, compiled unless it is cached, whatever the model declares. A saved
  /// program is given for any.
  Expected<std::shared_ptr<const Entry>> program_for(const InputShapes& shapes);
  /// The same for shapes of arrays: those that do not fit what the model declares are refused,
  /// unless there is a program for them.
  Expected<std::shared_ptr<const Entry>> program_for_arrays(const InputShapes& shapes);
  /// Cached program that matches(entry) accepts, which becomes the most recently used. Null if
  /// there is none, or if another thread is compiling: this does not wait.
  template <class Matches>
  std::shared_ptr<const Entry> find_cached(Matches&& matches);
  /// Outputs share no memory with inputs, weights or other runs.
  Expected<std::vector<Datum>> run(std::span<const Datum> inputs);

  /// Cached programs, the most recently used first.
  std::vector<std::shared_ptr<const Entry>> programs() const;
  bool is_saved_program() const { return model_ == nullptr; }
  /// Null for a saved program.
  const std::shared_ptr<const Model>& model() const { return model_; }
  const CompileModelOptions& compile_options() const { return compile_; }
  bool is_for_gpu() const;
  const std::vector<std::string>& input_names() const { return input_names_; }
  const std::vector<std::string>& output_names() const { return output_names_; }
  const ExecutionOptions& run_options() const { return run_; }

 private:
  /// Program for these shapes: that of the program cache, or compiled.
  Expected<std::shared_ptr<Entry>> new_entry(const InputShapes& shapes) const;

  std::shared_ptr<const Model> model_;
  std::vector<std::string> input_names_, output_names_;
  CompileModelOptions compile_;
  ExecutionOptions run_;
  mutable std::mutex mutex_;
  std::list<std::shared_ptr<const Entry>> programs_;  // most recently used first
};

template <class Matches>
std::shared_ptr<const NativeModel::Entry> NativeModel::find_cached(Matches&& matches) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return nullptr;
  for (auto entry = programs_.begin(); entry != programs_.end(); ++entry) {
    if (!matches(**entry)) continue;
    programs_.splice(programs_.begin(), programs_, entry);
    return programs_.front();
  }
  return nullptr;
}

}  // namespace tessera
