#include "tests/fake_gpu/fake_cuda.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Result = int;
constexpr Result kInvalid = 1, kNoMemory = 2, kUnsupported = 801;

struct Operation {
  std::function<void()> run;
  const std::byte* host = nullptr;  // memory that it uses
  std::size_t bytes = 0;
};
struct Graph {
  std::vector<Operation> operations;
};
struct Stream {
  std::deque<Operation> queue;
  std::unique_ptr<Graph> captured;
};
struct Event {
  Stream* stream = nullptr;
  std::int64_t recorded = 0, reached = 0;
};

/// PTX with one kernel, which has local memory where it says `.local`.
struct Module {
  explicit Module(std::string_view text)
      : reallocates(text.find("setmaxnreg") != std::string_view::npos),
        local_bytes(text.find(".local") == std::string_view::npos ? 0 : 16) {}
  bool reallocates;
  int local_bytes;
};

struct Fake {
  std::recursive_mutex mutex;
  FakeCuda shown;
  Stream null;
  std::vector<Stream*> streams = {&null};
  std::map<const std::byte*, std::size_t> locked, device;
  std::vector<std::shared_ptr<const Module>> modules;

  Stream& at(void* stream) { return stream == nullptr ? null : *static_cast<Stream*>(stream); }

  static const std::byte* range_of(const std::map<const std::byte*, std::size_t>& ranges,
                                   const std::byte* memory) {
    auto found = ranges.upper_bound(memory);
    if (found == ranges.begin()) return nullptr;
    --found;
    return memory < found->first + found->second ? found->first : nullptr;
  }
  bool is_locked(const void* memory, std::size_t bytes) const {
    const auto* const first = static_cast<const std::byte*>(memory);
    const std::byte* const range = range_of(locked, first);
    return range != nullptr && first + bytes <= range + locked.at(range);
  }

  static void drain(Stream& stream) {
    while (!stream.queue.empty()) {
      const Operation operation = std::move(stream.queue.front());
      stream.queue.pop_front();
      operation.run();
    }
  }
  void submit(Stream& stream, Operation operation) {
    if (stream.captured) return stream.captured->operations.push_back(std::move(operation));
    stream.queue.push_back(std::move(operation));
    if (shown.is_eager != 0) drain(stream);
  }
  bool uses(const std::byte* memory, std::size_t bytes) const {
    return std::ranges::any_of(streams, [&](const Stream* stream) {
      return std::ranges::any_of(stream->queue, [&](const Operation& operation) {
        return operation.host < memory + bytes && memory < operation.host + operation.bytes;
      });
    });
  }
  Result transfer() {
    if (shown.fails_after < 0) return 0;
    if (shown.fails_after == 0) return 700;
    --shown.fails_after;
    return 0;
  }
};

Fake& fake() {
  static auto* const made = new Fake;  // never destroyed: what is static may free memory later
  return *made;
}

std::byte* pointer(std::uint64_t address) {
  return reinterpret_cast<std::byte*>(address);
}

Result allocate(std::uint64_t* address, std::size_t bytes) {
  if (bytes > std::size_t{1} << 33) return kNoMemory;
  auto* const memory = static_cast<std::byte*>(std::aligned_alloc(512, (bytes / 512 + 1) * 512));
  std::memset(memory, 0xAA, bytes);
  fake().device.emplace(memory, bytes);
  fake().shown.device_bytes += static_cast<std::int64_t>(bytes);
  *address = reinterpret_cast<std::uint64_t>(memory);
  return 0;
}

Result release(std::uint64_t address) {
  const auto found = fake().device.find(pointer(address));
  if (found == fake().device.end()) return kInvalid;
  fake().shown.device_bytes -= static_cast<std::int64_t>(found->second);
  fake().device.erase(found);
  std::free(pointer(address));
  return 0;
}

Result lock(void* memory, std::size_t bytes) {
  Fake& all = fake();
  if (all.shown.refuses_to_lock != 0) return kUnsupported;
  if (reinterpret_cast<std::uintptr_t>(memory) % 4096 != 0 || bytes % 4096 != 0) return kInvalid;
  if (!all.locked.emplace(static_cast<std::byte*>(memory), bytes).second) return kInvalid;
  all.shown.locked_bytes += static_cast<std::int64_t>(bytes);
  ++all.shown.locks;
  return 0;
}

Result unlock(void* memory) {
  Fake& all = fake();
  const auto found = all.locked.find(static_cast<std::byte*>(memory));
  if (found == all.locked.end()) return kInvalid;
  if (all.uses(found->first, found->second)) ++all.shown.unlocked_in_flight;
  all.shown.locked_bytes -= static_cast<std::int64_t>(found->second);
  all.locked.erase(found);
  return 0;
}

/// The device's answer to a number, 0 where it has none.
Result number(int* value, int what) {
  *value = what;
  return 0;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names of the driver
extern "C" {

FakeCuda* fake_cuda() {
  return &fake().shown;
}
bool fake_cuda_lock(void* memory, std::size_t bytes) {
  const std::lock_guard guard(fake().mutex);
  return lock(memory, bytes) == 0;
}
void fake_cuda_unlock(void* memory) {
  const std::lock_guard guard(fake().mutex);
  unlock(memory);
}

Result cuInit(unsigned) {
  return 0;
}
Result cuDriverGetVersion(int* version) {
  return number(version, 13000);
}
Result cuGetErrorName(Result, const char** name) {
  *name = "FAKE_ERROR";
  return 0;
}
Result cuGetErrorString(Result, const char** text) {
  *text = "an error of the fake driver";
  return 0;
}
Result cuDeviceGetCount(int* count) {
  return number(count, 1);
}
Result cuDeviceGet(int* device, int number_of_it) {
  return number(device, number_of_it);
}
Result cuDeviceGetName(char* name, int size, int) {
  std::strncpy(name, "fake GPU", static_cast<std::size_t>(size));
  return 0;
}
Result cuDeviceGetAttribute(int* value, int attribute, int) {
  constexpr int kMajor = 75, kPools = 115;
  return number(value, attribute == kMajor ? 9 : attribute == kPools ? 1 : 0);
}
Result cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = std::size_t{1} << 33;
  return 0;
}
Result cuDevicePrimaryCtxRetain(void** context, int) {
  *context = &fake();
  return 0;
}
Result cuDevicePrimaryCtxRelease_v2(int) {
  return 0;
}
Result cuCtxSetCurrent(void*) {
  return 0;
}
// A module is its text, and its kernel is the module.
Result cuModuleLoadDataEx(void** module, const void* text, unsigned, int*, void**) {
  const std::lock_guard guard(fake().mutex);
  const auto made = std::make_shared<Module>(static_cast<const char*>(text));
  FakeCuda& shown = fake().shown;
  ++shown.loaded;
  if (made->reallocates) ++shown.loaded_with_reallocation;
  *module = made.get();
  fake().modules.push_back(made);
  return 0;
}
Result cuModuleUnload(void* module) {
  const std::lock_guard guard(fake().mutex);
  const auto is_it = [&](const auto& made) { return made.get() == module; };
  return std::erase_if(fake().modules, is_it) == 1 ? 0 : kInvalid;
}
Result cuModuleGetFunction(void** function, void* module, const char*) {
  *function = module;
  return 0;
}
Result cuFuncGetAttribute(int* value, int attribute, void* function) {
  constexpr int kLocal = 3;
  return number(value, attribute == kLocal ? static_cast<Module*>(function)->local_bytes : 0);
}
Result cuFuncSetAttribute() {
  return kUnsupported;
}
Result cuLaunchKernelEx() {
  return kUnsupported;
}
Result cuOccupancyMaxActiveBlocksPerMultiprocessor() {
  return kUnsupported;
}
Result cuTensorMapEncodeTiled() {
  return kUnsupported;
}
// cuLink: the linker ignores setmaxnreg, as the real one does.
Result cuLinkCreate_v2(unsigned, int*, void**, void** link) {
  *link = new std::string;
  return 0;
}
Result cuLinkAddData_v2(void* link, int, void*, std::size_t, const char*, unsigned, int*, void**) {
  *static_cast<std::string*>(link) =
      "\x7f"
      "ELF";
  return 0;
}
Result cuLinkComplete(void* link, void** code, std::size_t* bytes) {
  auto& linked = *static_cast<std::string*>(link);
  *code = linked.data();
  *bytes = linked.size();
  return 0;
}
Result cuLinkDestroy(void* link) {
  delete static_cast<std::string*>(link);
  return 0;
}

Result cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) {
  const std::lock_guard guard(fake().mutex);
  return allocate(address, bytes);
}
Result cuMemFree_v2(std::uint64_t address) {
  const std::lock_guard guard(fake().mutex);
  return release(address);
}
Result cuMemPoolCreate(void** pool, const void*) {
  *pool = &fake();
  return 0;
}
Result cuMemPoolDestroy(void*) {
  return 0;
}
Result cuMemPoolSetAttribute(void*, int, void*) {
  return 0;
}
Result cuMemAllocFromPoolAsync(std::uint64_t* address, std::size_t bytes, void*, void*) {
  return cuMemAlloc_v2(address, bytes);
}
Result cuMemFreeAsync(std::uint64_t address, void*) {
  return cuMemFree_v2(address);
}
Result cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned) {
  return fake_cuda_lock(memory, bytes) ? 0 : kUnsupported;
}
Result cuMemHostUnregister(void* memory) {
  const std::lock_guard guard(fake().mutex);
  return unlock(memory);
}
Result cuPointerGetAttributes(unsigned count, const int* attributes, void** values,
                              std::uint64_t address) {
  constexpr int kType = 2, kStart = 11, kBytes = 12;
  const std::lock_guard guard(fake().mutex);
  Fake& all = fake();
  const std::byte* const on_host = Fake::range_of(all.locked, pointer(address));
  const std::byte* const on_device = Fake::range_of(all.device, pointer(address));
  const std::byte* const start = on_host != nullptr ? on_host : on_device;
  for (unsigned i = 0; i < count; ++i) {  // zeros for memory that is not known
    if (attributes[i] == kType)
      *static_cast<unsigned*>(values[i]) = on_host != nullptr ? 1 : on_device != nullptr ? 2 : 0;
    if (attributes[i] == kStart)
      *static_cast<std::uint64_t*>(values[i]) = reinterpret_cast<std::uint64_t>(start);
    if (attributes[i] == kBytes)
      *static_cast<std::size_t*>(values[i]) = on_host != nullptr     ? all.locked.at(start)
                                              : on_device != nullptr ? all.device.at(start)
                                                                     : 0;
  }
  return 0;
}

Result cuMemcpyHtoD_v2(std::uint64_t to, const void* from, std::size_t bytes) {
  const std::lock_guard guard(fake().mutex);
  std::memcpy(pointer(to), from, bytes);
  return 0;
}
Result cuMemcpyDtoH_v2(void* to, std::uint64_t from, std::size_t bytes) {
  const std::lock_guard guard(fake().mutex);
  std::memcpy(to, pointer(from), bytes);
  return 0;
}
Result cuMemcpyDtoDAsync_v2(std::uint64_t to, std::uint64_t from, std::size_t bytes, void* stream) {
  const std::lock_guard guard(fake().mutex);
  fake().submit(fake().at(stream),
                {[=] { std::memmove(pointer(to), pointer(from), bytes); }, nullptr, 0});
  return 0;
}
Result cuMemsetD8_v2(std::uint64_t to, unsigned char value, std::size_t bytes) {
  const std::lock_guard guard(fake().mutex);
  std::memset(pointer(to), value, bytes);
  return 0;
}
Result cuMemcpyHtoDAsync_v2(std::uint64_t to, const void* from, std::size_t bytes, void* stream) {
  const std::lock_guard guard(fake().mutex);
  Fake& all = fake();
  if (const Result failed = all.transfer(); failed != 0) return failed;
  ++all.shown.sent;
  const auto* source = static_cast<const std::byte*>(from);
  if (all.is_locked(from, bytes)) {
    all.submit(all.at(stream), {[=] { std::memcpy(pointer(to), source, bytes); }, source, bytes});
  } else {
    ++all.shown.sent_pageable;
    const auto copy = std::make_shared<std::vector<std::byte>>(source, source + bytes);
    all.submit(all.at(stream),
               {[=] { std::memcpy(pointer(to), copy->data(), bytes); }, nullptr, 0});
  }
  return 0;
}
Result cuMemcpyDtoHAsync_v2(void* to, std::uint64_t from, std::size_t bytes, void* stream) {
  const std::lock_guard guard(fake().mutex);
  Fake& all = fake();
  if (const Result failed = all.transfer(); failed != 0) return failed;
  ++all.shown.fetched;
  auto* const target = static_cast<std::byte*>(to);
  all.submit(all.at(stream), {[=] { std::memcpy(target, pointer(from), bytes); }, target, bytes});
  if (all.is_locked(to, bytes)) return 0;
  ++all.shown.fetched_pageable;
  Fake::drain(all.at(stream));
  return 0;
}

Result cuStreamCreate(void** stream, unsigned) {
  const std::lock_guard guard(fake().mutex);
  auto* const made = new Stream;
  fake().streams.push_back(made);
  *stream = made;
  return 0;
}
Result cuStreamDestroy_v2(void* stream) {
  const std::lock_guard guard(fake().mutex);
  Fake::drain(fake().at(stream));
  std::erase(fake().streams, static_cast<Stream*>(stream));
  delete static_cast<Stream*>(stream);
  return 0;
}
Result cuStreamSynchronize(void* stream) {
  const std::lock_guard guard(fake().mutex);
  Fake::drain(fake().at(stream));
  return 0;
}
Result cuEventCreate(void** event, unsigned) {
  *event = new Event;
  return 0;
}
Result cuEventDestroy_v2(void* event) {
  const std::lock_guard guard(fake().mutex);
  auto* const destroyed = static_cast<Event*>(event);
  if (destroyed->stream != nullptr) Fake::drain(*destroyed->stream);
  delete destroyed;
  return 0;
}
Result cuEventRecord(void* event, void* stream) {
  const std::lock_guard guard(fake().mutex);
  auto* const recorded = static_cast<Event*>(event);
  recorded->stream = &fake().at(stream);
  const std::int64_t which = ++recorded->recorded;
  fake().submit(*recorded->stream, {[=] { recorded->reached = which; }, nullptr, 0});
  return 0;
}
Result cuEventSynchronize(void* event) {
  const std::lock_guard guard(fake().mutex);
  auto& waited = *static_cast<Event*>(event);
  while (waited.reached < waited.recorded) {
    const Operation operation = std::move(waited.stream->queue.front());
    waited.stream->queue.pop_front();
    operation.run();
  }
  return 0;
}
Result cuStreamWaitEvent(void*, void* event, unsigned) {
  return cuEventSynchronize(event);
}
Result cuEventElapsedTime(float* milliseconds, void*, void*) {
  *milliseconds = 0.01F;
  return 0;
}

Result cuStreamBeginCapture_v2(void* stream, int) {
  const std::lock_guard guard(fake().mutex);
  fake().at(stream).captured = std::make_unique<Graph>();
  return 0;
}
Result cuStreamEndCapture(void* stream, void** graph) {
  const std::lock_guard guard(fake().mutex);
  *graph = fake().at(stream).captured.release();
  return 0;
}
Result cuStreamIsCapturing(void* stream, int* status) {
  const std::lock_guard guard(fake().mutex);
  return number(status, fake().at(stream).captured ? 1 : 0);
}
Result cuThreadExchangeStreamCaptureMode(int*) {
  return 0;
}
Result cuGraphInstantiateWithFlags(void** run, void* graph, unsigned long long) {
  *run = new Graph(*static_cast<Graph*>(graph));
  return 0;
}
Result cuGraphLaunch(void* run, void* stream) {
  const std::lock_guard guard(fake().mutex);
  for (const Operation& operation : static_cast<Graph*>(run)->operations)
    fake().submit(fake().at(stream), operation);
  return 0;
}
Result cuGraphDestroy(void* graph) {
  delete static_cast<Graph*>(graph);
  return 0;
}
Result cuGraphExecDestroy(void* run) {
  delete static_cast<Graph*>(run);
  return 0;
}
}
// NOLINTEND(readability-identifier-naming)
