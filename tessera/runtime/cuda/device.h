#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tessera/runtime/cuda/driver.h"
#include "tessera/runtime/cuda/tensor_map.h"
#include "tessera/support/expected.h"

namespace tessera::runtime::cuda {

/// A handle that the driver gave and that is given back once.
template <class Handle>
class Owned {
 public:
  using Free = Result (*)(Handle);
  Owned() = default;
  Owned(Handle handle, Free free) : handle_(handle), free_(free) {}
  Owned(Owned&& other) noexcept
      : handle_(std::exchange(other.handle_, {})), free_(std::exchange(other.free_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(free_, other.free_);
    return *this;
  }
  ~Owned() {
    if (free_ != nullptr) free_(handle_);
  }
  Handle get() const { return handle_; }

 private:
  Handle handle_ = {};
  Free free_ = nullptr;
};

class Device;

/// Memory of a GPU.
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
  Owned<Address> memory_;
  std::int64_t bytes_ = 0;
};

/// A kernel on a GPU, with the module that it lies in.
class Function {
 public:
  /// Programs along each axis; a grid without any does nothing. `words` are the parameters.
  struct Launch {
    std::array<std::int64_t, 3> grid = {1, 1, 1};
    std::span<const std::uint64_t> words = {};
  };
  Expected<Done> launch(const Launch& launch, StreamHandle stream = nullptr) const;
  int registers() const { return registers_; }
  /// Of a thread, in memory: registers that did not fit, for the most part.
  int local_bytes() const { return local_bytes_; }

 private:
  friend class Device;
  const Driver* driver_ = nullptr;
  Owned<ModuleHandle> module_;
  FunctionHandle function_ = nullptr;
  int threads_ = 0, shared_bytes_ = 0, programs_ = 1, registers_ = 0, local_bytes_ = 0;
  std::vector<TensorMap> maps_;
  std::int64_t resident_ = 0;  // blocks that run at once, if they go on with further programs
};

/// What a stream was given while it was captured, to be given again at once.
class Graph {
 public:
  Expected<Done> launch(StreamHandle stream) const {
    return driver_->check(driver_->launch_graph(run_.get(), stream), "launching a graph");
  }

 private:
  friend class Stream;
  const Driver* driver_ = nullptr;
  Owned<GraphRunHandle> run_;
};

/// Work in order. Made by Device::stream.
class Stream {
 public:
  StreamHandle get() const { return stream_.get(); }
  Expected<Done> wait() const { return driver_->check(driver_->wait_stream(get()), "waiting"); }
  /// To memory of the GPU and back, in order; the computer's memory must stay until `wait`.
  Expected<Done> send(Address to, std::span<const std::byte> from) const;
  Expected<Done> fetch(std::span<std::byte> to, Address from) const;
  Expected<Done> copy(Address to, Address from, std::int64_t bytes) const;
  /// What `work` gives this stream is not done, but becomes a graph.
  Expected<Graph> capture(const std::function<Expected<Done>()>& work) const;

 private:
  friend class Device;
  const Driver* driver_ = nullptr;
  Owned<StreamHandle> stream_;
};

/// A moment in a stream.
class Event {
 public:
  Expected<Done> record(StreamHandle stream = nullptr);
  /// Milliseconds from another event to this one, once both have passed.
  Expected<double> since(const Event& earlier) const;

 private:
  friend class Device;
  const Driver* driver_ = nullptr;
  Owned<EventHandle> event_;
};

/// A GPU, current in the thread that opened it. What is made by it must not outlive it.
class Device {
 public:
  static Expected<Device> open(int number = 0);

  /// Makes it current in this thread.
  Expected<Done> use() const {
    return driver_->check(driver_->set_context(handle_), "using a GPU");
  }
  const std::string& name() const { return name_; }
  int multiprocessors() const { return multiprocessors_; }
  int compute() const { return compute_; }  // 90: compute capability 9.0
  int driver_version() const { return driver_version_; }
  std::int64_t memory_bytes() const { return memory_bytes_; }

  /// From a pool that all who opened this GPU share: what is given back is kept for who asks next.
  /// Work on it must have ended before it is given back.
  Expected<Memory> allocate(std::int64_t bytes) const;
  /// PTX or machine code, and how its kernel is to be launched.
  struct Code {
    std::string text;
    std::string entry;
    int threads = 32, shared_bytes = 0;
    /// Of the grid, along axis 0, in one block.
    int programs = 1;
    /// Blocks go on with further programs: no more are launched than run at once. Then, and where a
    /// block has several programs, a last word says how many there are in all.
    bool loops = false;
    /// After the words, and the last one: a word that is 1 if all maps could be made, and the maps.
    std::vector<TensorMap> maps = {};
  };
  Expected<Function> load(const Code& code) const;
  /// Machine code of PTX for this GPU.
  Expected<std::string> assembled(const std::string& ptx) const;
  Expected<Stream> stream() const;
  Expected<Event> event() const;
  Expected<Done> copy(const Memory& to, const Memory& from, StreamHandle stream = nullptr) const;
  Expected<Done> wait() const { return driver_->check(driver_->wait_stream(nullptr), "waiting"); }

 private:
  const Driver* driver_ = nullptr;
  Owned<DeviceHandle> context_;
  ContextHandle handle_ = nullptr;
  std::shared_ptr<const Owned<PoolHandle>> pool_;  // none where the GPU knows no pools
  std::string name_;
  int multiprocessors_ = 0, compute_ = 0, driver_version_ = 0;
  std::int64_t memory_bytes_ = 0;
};

}  // namespace tessera::runtime::cuda
