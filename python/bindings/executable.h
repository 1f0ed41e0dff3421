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

namespace tessera::python {

/// A program with sessions to run it in: one for each call at a time.
class SessionPool {
 public:
  SessionPool(std::shared_ptr<const runtime::LoadedProgram> program, ExecutionOptions options)
      : program_(std::move(program)), options_(std::move(options)) {}

  const runtime::Program& program() const { return program_->program(); }
  const std::shared_ptr<const runtime::LoadedProgram>& loaded() const { return program_; }
  /// Runs the program; any number of threads may ask at a time.
  Expected<std::vector<Datum>> run(std::span<const Datum> inputs);

 private:
  Expected<std::unique_ptr<runtime::Session>> take();
  Expected<std::vector<Datum>> run_in(runtime::Session& session,
                                      std::span<const Datum> inputs) const;

  std::shared_ptr<const runtime::LoadedProgram> program_;
  ExecutionOptions options_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<runtime::Session>> idle_;
};

/// A model compiled for the input shapes that it meets, or a saved program. Safe to be used by
/// several threads.
class Executable {
 public:
  /// One compilation: for these shapes, or from a file.
  struct Variant {
    InputShapes shapes = {};
    std::optional<CompiledModel> compiled = {};  // its program is in `pool`
    std::shared_ptr<SessionPool> pool = {};
  };

  static constexpr std::size_t kMaxVariants = 16;

  Executable(std::shared_ptr<const Model> model, CompileModelOptions compile, ExecutionOptions run);
  /// Opens a saved program.
  static Expected<std::shared_ptr<Executable>> open(const std::filesystem::path& path,
                                                    ExecutionOptions run);

  /// The variant for these shapes, compiled if there is none; the one used last is kept longest.
  Expected<std::shared_ptr<const Variant>> variant_for(const InputShapes& shapes);
  Expected<std::vector<Datum>> run(std::span<const Datum> inputs);
  /// Variants in memory, the one used last first.
  std::vector<std::shared_ptr<const Variant>> variants() const;

  const Model* model() const { return model_.get(); }  // null for a saved program
  const std::vector<std::string>& input_names() const { return input_names_; }
  const std::vector<std::string>& output_names() const { return output_names_; }
  const CompileModelOptions& compile_options() const { return compile_; }
  const ExecutionOptions& run_options() const { return run_; }

 private:
  Expected<std::shared_ptr<const Variant>> variant_for(std::span<const Datum> inputs);

  std::shared_ptr<const Model> model_;
  std::vector<std::string> input_names_, output_names_;
  CompileModelOptions compile_;
  ExecutionOptions run_;
  mutable std::mutex mutex_;
  std::list<std::shared_ptr<const Variant>> variants_;
};

}  // namespace tessera::python
