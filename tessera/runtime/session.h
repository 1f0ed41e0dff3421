#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/runtime/program.h"
#include "tessera/support/datum.h"
#include "tessera/support/expected.h"

namespace tessera::runtime {

/// Validates a program: every index, offset, size and target is in range, addresses of kernels stay
/// in their values in every iteration, entries are in the image.
Expected<Done> check(const Program& program);

/// Interpreter of host steps, given their text.
using Host = std::function<Expected<std::vector<Datum>>(const std::string& text,
                                                        std::span<const Datum> inputs)>;

struct SessionOptions {
  int threads = 1;  // number of threads; 0: one per core
  Host host = {};   // none: a program with host steps is rejected
  /// GPU only: folder of the cache of machine code that the driver makes of PTX; empty: no cache.
  std::filesystem::path cache = {};
  /// Folder of the temporary file of a program with a memory limit.
  std::filesystem::path swap_folder = "/var/tmp";
  /// Emulator of GPU kernels, for tests: runs the launches of a GPU program on host memory.
  std::function<Expected<Done>(const step::Launch& launch, std::span<const std::uint64_t> words)>
      emulate = {};
  /// Fills the arena with bytes of ones (NaN, -1) before every run, to expose reads of
  /// uninitialized memory.
  bool poison = false;
  /// Memory of a launch, shown to `inspect` before the launch (`done` is false) and after it. Steps
  /// then run one by one.
  struct Inspection {
    std::size_t step = 0;
    const step::Launch& launch;
    bool done = false;
    /// Current content of the memory that a patch of the launch may access.
    std::function<Expected<Bytes>(const step::Launch::Patch& patch)> memory;
  };
  std::function<Expected<Done>(const Inspection& inspection)> inspect = {};
  /// Profiler callback: time of each step; timing every step has a small cost.
  std::function<void(std::size_t step, std::int64_t start_ns, std::int64_t end_ns)> observe = {};
};

/// Memory of a caller on a GPU, and the stream that orders a run among the caller's own work.
struct DeviceArguments {
  std::span<const std::uint64_t> inputs = {}, outputs = {};  // addresses, aligned to kAlignment
  void* stream = nullptr;  // CUstream of the primary context; null is the default stream
  int device = 0;          // ordinal of the GPU
};

/// GPU state that the sessions of a program share; the first of them creates it.
struct SharedGpuState {
  std::mutex mutex = {};
  std::shared_ptr<const void> content = {};
};

/// A program that is loaded and validated, shared by any number of sessions. CPU: its code is
/// mapped read and execute, never writable; its weights are where they were loaded. GPU: the first
/// session uploads code and weights for all (on_gpu).
class LoadedProgram {
 public:
  /// Validates the program; rejects one for another kind of CPU. A GPU program is matched with the
  /// GPU when a session is created.
  static Expected<std::shared_ptr<const LoadedProgram>> load(Program program);
  virtual ~LoadedProgram() = default;
  /// The program; on a CPU, the image is the executable mapping.
  virtual const Program& program() const = 0;
  virtual SharedGpuState& on_gpu() const = 0;
};

/// An execution context of a program with its own activation memory (arena), like an ONNX Runtime
/// session or a TensorRT execution context. Results are bit-identical in every run and for any
/// number of threads. Not thread-safe; use one session per thread.
class Session {
 public:
  static Expected<std::unique_ptr<Session>> create(std::shared_ptr<const LoadedProgram> program,
                                                   const SessionOptions& options = {});
  virtual ~Session() = default;

  /// Runs the program on tensors; inputs of other types or shapes are a diagnostic.
  virtual Expected<std::vector<Datum>> run(std::span<const Datum> inputs) = 0;
  /// Runs the program on memory of the caller, aligned to host_alignment() and without overlap. On
  /// a CPU, no copies and, but for host steps, no allocations. Boxed inputs or outputs are a
  /// diagnostic.
  virtual Expected<Done> run(std::span<const std::byte* const> inputs,
                             std::span<std::byte* const> outputs) = 0;
  virtual std::size_t host_alignment() const { return kAlignment; }
  /// Memory for inputs and outputs, aligned to kAlignment, with undefined content; it may outlive
  /// the session. For a GPU program it is page-locked as far as the system allows, and then the GPU
  /// copies it by itself; `run` on tensors returns such memory. Other memory is copied by the
  /// threads of the session. Before the memory is dropped, asynchronous copies of it that others
  /// began must be complete. Throws std::bad_alloc.
  virtual std::shared_ptr<std::byte> host_memory(std::size_t bytes);
  /// GPU: submits a run on device memory to a stream of the caller, without copies, and returns
  /// before it has completed; the memory must stay valid until then. Later runs of this session
  /// wait for it on the GPU. Outputs must not overlap other arguments. Waits where a step needs the
  /// host, and for inputs that are indices, which are checked on the host. In a stream that is
  /// being captured, the steps become a part of that CUDA graph, which must not be launched after
  /// the session has ended. On a CPU: a diagnostic.
  virtual Expected<Done> run_on_device(const DeviceArguments& arguments);
  /// GPU, after a run: milliseconds of the steps without the copies of inputs and outputs, the mean
  /// of so many consecutive runs. None on a CPU, or where steps need the host.
  virtual Expected<std::optional<double>> time_steps(int) { return std::optional<double>(); }
};

}  // namespace tessera::runtime
