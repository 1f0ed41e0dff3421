#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "tessera/codegen/llvm/math.h"
#include "tessera/machine/machine.h"
#include "tessera/support/expected.h"
#include "tessera/tile/argument.h"
#include "tessera/tile/kernel.h"

namespace tessera::codegen {

/// Compilation options of a CPU kernel.
struct Options {
  Precision precision = Precision::Exact;
  /// GPU only: f32 operands of matmuls may be rounded to tf32, for tensor cores.
  bool tf32 = false;
  /// Debug mode: every access is checked against the memory of its argument, and assertions are
  /// checked.
  bool checked = false;
  /// Assertions on scalars are checked outside of debug mode too.
  bool assertions = false;
  /// Folder of the object cache; empty: no cache.
  std::filesystem::path cache = {};
};

/// A kernel compiled to machine code for this computer. Safe to launch from several threads.
class CompiledKernel {
 public:
  virtual ~CompiledKernel() = default;

  virtual const tile::Kernel& kernel() const = 0;
  /// Whether the object code came from the cache.
  virtual bool from_cache() const = 0;
  /// Scratch memory per thread.
  virtual std::int64_t scratch_bytes() const = 0;

  /// Runs every program of the grid on up to `threads` threads (0: one per core; little work runs
  /// on the calling thread alone). Arguments are checked. They may share memory: a program performs
  /// all loads before its stores.
  virtual Expected<Done> launch(std::span<const tile::Argument> arguments, const tile::Grid& grid,
                                int threads = 1) const = 0;

  /// Unchecked launch on the words (tile::words_of) of arguments that share no memory, for repeated
  /// launches of the same arguments. Not in debug mode.
  virtual void run(std::span<const std::uint64_t> words, const tile::Grid& grid,
                   int threads = 1) const = 0;
};

/// Just-in-time compilation for this computer.
Expected<std::shared_ptr<const CompiledKernel>> compile(const tile::Kernel& kernel,
                                                        const Options& options = {});

/// Intermediate forms of a CPU compilation, for any CPU: tile IR after the passes (T), loop nests
/// (S), LLVM IR, assembly.
enum class Form : std::uint8_t { T, S, Llvm, Assembly };
Expected<std::string> form_of(const tile::Kernel& kernel, Form form,
                              const machine::Machine& machine, const Options& options = {});

}  // namespace tessera::codegen
