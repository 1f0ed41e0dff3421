#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/runtime/cuda/driver.h"
#include "tessera/runtime/cuda/tensor_map.h"
#include "tessera/support/expected.h"

namespace tessera::runtime::cuda {

/// Owning handle of a driver object (RAII).
template <class Handle>
class UniqueHandle {
 public:
  using Free = Result (*)(Handle);
  UniqueHandle() = default;
  UniqueHandle(Handle handle, Free free) : handle_(handle), free_(free) {}
  UniqueHandle(UniqueHandle&& other) noexcept
      : handle_(std::exchange(other.handle_, {})), free_(std::exchange(other.free_, nullptr)) {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(free_, other.free_);
    return *this;
  }
  ~UniqueHandle() {
    if (free_ != nullptr) free_(handle_);
  }
  Handle get() const { return handle_; }

 private:
  Handle handle_ = {};
  Free free_ = nullptr;
};

/// Whether each block of a kernel awaits the grids before its own, so that a launch may be a
/// programmatic dependent of the one before it.
bool awaits_grids(std::string_view ptx);

/// Whether text is PTX that reallocates registers between warps (setmaxnreg).
bool reallocates_registers(std::string_view text);
/// PTX without its setmaxnreg: all threads keep the registers that they start with.
std::string without_reallocation(std::string_view ptx);

/// Page-locking of host memory, which the GPU then copies by itself, at the full bandwidth of the
/// bus. Valid as long as a Device of this GPU exists.
class PageLocks {
 public:
  PageLocks(const Driver* driver, ContextHandle context) : driver_(driver), context_(context) {}
  /// Locks whole pages; false where the system refuses.
  bool lock(std::byte* memory, std::size_t bytes) const;
  /// No copy of the memory may be in flight.
  void unlock(std::byte* memory) const;

 private:
  const Driver* driver_;
  ContextHandle context_;
};

class Device;

/// Device memory.
class Memory {
 public:
  Memory() = default;
  Address address() const { return memory_.get(); }
  std::int64_t bytes() const { return bytes_; }
  Expected<Done> write(std::span<const std::byte> from, std::int64_t at = 0);
  Expected<Done> read(std::span<std::byte> to, std::int64_t at = 0) const;
  Expected<Done> fill(std::byte value);

 private:
  friend class Device;
  const Driver* driver_ = nullptr;
  UniqueHandle<Address> memory_;
  std::int64_t bytes_ = 0;
};

/// A loaded GPU kernel with its module.
class Function {
 public:
  /// Grid of programs, which may be empty, and the parameters as words.
  struct Launch {
    std::array<std::int64_t, 3> grid = {1, 1, 1};
    std::span<const std::uint64_t> words = {};
  };
  Expected<Done> launch(const Launch& launch, StreamHandle stream = nullptr) const;
  int registers() const { return registers_; }
  /// Local memory per thread in bytes: mostly spilled registers.
  int local_bytes() const { return local_bytes_; }

 private:
  friend class Device;
  const Driver* driver_ = nullptr;
  UniqueHandle<ModuleHandle> module_;
  FunctionHandle function_ = nullptr;
  int threads_ = 0, shared_bytes_ = 0, programs_ = 1, registers_ = 0, local_bytes_ = 0;
  std::vector<TensorMap> maps_;
  /// Dynamic shared memory with which the blocks of a grid spread evenly over the SMs. They are
  /// scheduled while the blocks of earlier grids occupy some SMs: without a limit, the others would
  /// get several each, which compete for the SM once they run.
  int spread_bytes(std::int64_t blocks) const;

  bool awaits_grids_ = false;
  int shared_of_sm_ = 0, reserved_bytes_ = 0, multiprocessors_ = 1;
  std::int64_t resident_ = 0;  // maximum number of resident blocks, for persistent kernels
};

/// CUDA graph: work captured from a stream, to be launched at once.
class Graph {
 public:
  Expected<Done> launch(StreamHandle stream) const {
    return driver_->check(driver_->launch_graph(run_.get(), stream), "launching a graph");
  }

 private:
  friend class Stream;
  const Driver* driver_ = nullptr;
  UniqueHandle<GraphRunHandle> run_;
};

class Event;

/// CUDA stream. Created by Device::stream, or borrowed from a caller.
class Stream {
 public:
  StreamHandle get() const { return stream_.get(); }
  Expected<Done> wait() const { return driver_->check(driver_->wait_stream(get()), "waiting"); }
  /// Asynchronous copies to the device and back; host memory must stay valid until `wait`.
  Expected<Done> send(Address to, std::span<const std::byte> from) const;
  Expected<Done> fetch(std::span<std::byte> to, Address from) const;
  Expected<Done> copy(Address to, Address from, std::int64_t bytes) const;
  /// Captures the work that is submitted to this stream as a graph; it is not executed.
  Expected<Graph> capture(const std::function<Expected<Done>()>& work) const;
  /// Whether work in this stream is being captured, by whomever.
  bool is_capturing() const;
  /// Makes later work in this stream start after an event; the host does not wait.
  Expected<Done> wait_for(const Event& event) const;

 private:
  friend class Device;
  const Driver* driver_ = nullptr;
  UniqueHandle<StreamHandle> stream_;
};

/// CUDA event: a point in a stream.
class Event {
 public:
  Expected<Done> record(StreamHandle stream = nullptr);
  /// Waits on the host until the event has completed; returns at once if it was never recorded.
  Expected<Done> wait() const;
  /// Elapsed milliseconds between two events, once both have completed.
  Expected<double> since(const Event& earlier) const;

 private:
  friend class Device;
  friend class Stream;
  const Driver* driver_ = nullptr;
  UniqueHandle<EventHandle> event_;
};

/// A GPU, current in the thread that opened it. Objects created by it must not outlive it.
class Device {
 public:
  static Expected<Device> open(int number = 0);

  /// Makes the device current in this thread.
  Expected<Done> use() const {
    return driver_->check(driver_->set_context(handle_), "using a GPU");
  }
  const std::string& name() const { return name_; }
  int multiprocessors() const { return multiprocessors_; }
  int compute() const { return compute_; }  // 90: compute capability 9.0
  int driver_version() const { return driver_version_; }
  std::int64_t memory_bytes() const { return memory_bytes_; }

  /// Allocates from a pool that all users of this GPU share and that keeps freed memory. Work on
  /// the memory must have completed before it is freed. Never a part of a capture.
  Expected<Memory> allocate(std::int64_t bytes) const;
  /// PTX or machine code, with launch parameters.
  struct Code {
    std::string text;
    std::string entry;
    int threads = 32, shared_bytes = 0;
    /// Programs of the grid per block, along axis 0.
    int programs = 1;
    /// Whether blocks are persistent: no more are launched than are resident at once. Then, and
    /// where a block has several programs, an additional word is the number of programs.
    bool persistent = false;
    /// TMA tensor maps, the last parameters; a word before them is 1 if all could be encoded.
    std::vector<TensorMap> maps = {};
    bool awaits_grids = false;  // awaits_grids(ptx)
  };
  /// PTX that reallocates registers and keeps some in local memory is assembled again without the
  /// first: ptxas 12.9 to 13.3 loses the address of a thread's local memory where registers are
  /// reallocated, so that results are wrong.
  Expected<Function> load(const Code& code) const;
  /// Assembles PTX to machine code of this GPU.
  Expected<std::string> assembled(const std::string& ptx) const;
  Expected<Stream> stream() const;
  /// A stream of the caller in the primary context; null is the default stream.
  Stream borrowed_stream(void* handle) const;
  int number() const { return number_; }  // ordinal of the GPU
  /// An event; one without a time is cheaper to record.
  Expected<Event> event(bool is_timed = true) const;
  PageLocks page_locks() const { return {driver_, handle_}; }
  /// Whether memory belongs to one allocation that the driver knows: page-locked by whomever (torch
  /// for example), managed, or of a GPU.
  bool knows(const std::byte* memory, std::size_t bytes) const;
  Expected<Done> copy(const Memory& to, const Memory& from, StreamHandle stream = nullptr) const;
  Expected<Done> wait() const { return driver_->check(driver_->wait_stream(nullptr), "waiting"); }

 private:
  Expected<Function> load_as_it_is(const Code& code) const;

  const Driver* driver_ = nullptr;
  UniqueHandle<DeviceHandle> context_;
  ContextHandle handle_ = nullptr;
  std::shared_ptr<const UniqueHandle<PoolHandle>>
      pool_;  // none where the GPU does not support memory pools
  std::string name_;
  int number_ = 0, multiprocessors_ = 0, compute_ = 0, driver_version_ = 0;
  int shared_of_sm_ = 0, reserved_bytes_ = 0;  // bytes: of an SM; of each block, by the system
  std::int64_t memory_bytes_ = 0;
};

}  // namespace tessera::runtime::cuda
