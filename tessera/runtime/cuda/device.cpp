#include "tessera/runtime/cuda/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <mutex>
#include <vector>

namespace tessera::runtime::cuda {
namespace {

constexpr std::string_view kReallocation = "setmaxnreg";
constexpr std::int64_t kMostAlongX = 0x7fffffff, kMostAlong = 65535;

bool is_inside(const Memory& memory, std::int64_t at, std::size_t bytes) {
  return at >= 0 && at <= memory.bytes() &&
         bytes <= static_cast<std::uint64_t>(memory.bytes() - at);
}

Diagnostic outside(const Memory& memory, std::int64_t at, std::size_t bytes) {
  return Diagnostic{.id = "cuda-error",
                    .message = fmt::format("{} bytes at {} of {} bytes of GPU memory", bytes, at,
                                           memory.bytes())};
}

/// Error log of the PTX assembler.
struct Log {
  std::array<char, 4096> text = {};
  std::array<int, 2> options = {kErrorLog, kErrorLogBytes};
  std::array<void*, 2> values = {text.data(), reinterpret_cast<void*>(text.size())};

  unsigned count() const { return static_cast<unsigned>(options.size()); }
  Diagnostic added_to(Diagnostic problem) const {
    if (text[0] != '\0') problem.note = text.data();
    return problem;
  }
};

}  // namespace

Expected<Done> Memory::write(std::span<const std::byte> from, std::int64_t at) {
  if (!is_inside(*this, at, from.size())) return outside(*this, at, from.size());
  if (from.empty()) return Done{};
  return driver_->check(
      driver_->to_device(address() + static_cast<Address>(at), from.data(), from.size()),
      "copying to the GPU");
}

Expected<Done> Memory::read(std::span<std::byte> to, std::int64_t at) const {
  if (!is_inside(*this, at, to.size())) return outside(*this, at, to.size());
  if (to.empty()) return Done{};
  return driver_->check(
      driver_->to_host(to.data(), address() + static_cast<Address>(at), to.size()),
      "copying from the GPU");
}

Expected<Done> Memory::fill(std::byte value) {
  if (bytes_ == 0) return Done{};
  return driver_->check(
      driver_->fill(address(), static_cast<unsigned char>(value), static_cast<std::size_t>(bytes_)),
      "filling memory of the GPU");
}

namespace {

/// Encodes the kernel's tensor maps; a word after the words of the launch says whether all could be
/// encoded.
std::vector<EncodedMap> encoded(const Driver& driver, const std::vector<TensorMap>& maps,
                                std::vector<std::uint64_t>& words) {
  std::vector<EncodedMap> made(maps.size());
  if (maps.empty()) return made;
  bool all = true;
  for (std::size_t i = 0; i < maps.size() && all; ++i) {
    const auto shape = shape_of(maps[i], words);
    all = shape.has_value();
    if (!all) break;
    const auto rank = static_cast<unsigned>(shape->box.size());
    const std::vector<std::uint32_t> steps(rank, 1);
    const int width = maps[i].width;
    const int element = width == 1 ? kMapOfBytes : width == 2 ? kMapOf16Bits : kMapOf32Bits;
    // Swizzle modes 1, 2, 3: 32, 64, 128 bytes.
    const auto panel = shape->box[0] * static_cast<unsigned>(width);
    const int exchanged = panel == 128 ? 3 : panel == 64 ? 2 : 1;
    all = driver.encode_map(&made[i], element, rank, reinterpret_cast<void*>(shape->base),
                            shape->extents.data(), shape->strides.data(), shape->box.data(),
                            steps.data(), 0, exchanged, kMapOf128BytesAtOnce, 0) == 0;
  }
  words.push_back(all ? 1 : 0);
  return made;
}

}  // namespace

bool awaits_grids(std::string_view ptx) {
  return ptx.find("griddepcontrol.wait") != std::string_view::npos;
}

bool reallocates_registers(std::string_view text) {
  return !text.starts_with(
             "\x7f"
             "ELF") &&
         text.find(kReallocation) != std::string_view::npos;
}

std::string without_reallocation(std::string_view ptx) {
  std::string kept;
  for (std::size_t at = 0; at < ptx.size();) {
    const std::size_t found = std::min(ptx.find(kReallocation, at), ptx.size());
    kept += ptx.substr(at, found - at);
    const std::size_t end = ptx.find(';', found);
    at = end == std::string_view::npos ? ptx.size() : end + 1;
  }
  return kept;
}

int Function::spread_bytes(std::int64_t blocks) const {
  const std::int64_t each = (blocks + multiprocessors_ - 1) / multiprocessors_;
  // Grids of several waves fill the SMs anyway, and need their L1 caches.
  constexpr std::int64_t kMostTogether = 2, kGranularity = 128;
  if (each > kMostTogether) return shared_bytes_;
  const std::int64_t least = shared_of_sm_ / (each + 1) - reserved_bytes_ + kGranularity;
  return static_cast<int>(
      std::max<std::int64_t>(shared_bytes_, least / kGranularity * kGranularity));
}

Expected<Done> Function::launch(const Launch& launch, StreamHandle stream) const {
  const auto& grid = launch.grid;
  if (std::any_of(grid.begin(), grid.end(), [](std::int64_t count) { return count == 0; }))
    return Done{};
  if (grid[0] < 0 || grid[0] > kMostAlongX || grid[1] < 0 || grid[1] > kMostAlong || grid[2] < 0 ||
      grid[2] > kMostAlong) {
    return Diagnostic{
        .id = "cuda-grid",
        .message = fmt::format("a grid of {} x {} x {} programs", grid[0], grid[1], grid[2]),
        .note = fmt::format("a GPU runs up to {} x {} x {}", kMostAlongX, kMostAlong, kMostAlong)};
  }
  std::span<const std::uint64_t> words = launch.words;
  std::vector<std::uint64_t> more;
  std::vector<EncodedMap> maps;
  if (programs_ > 1 || resident_ > 0) {
    more.assign(words.begin(), words.end());
    more.push_back(static_cast<std::uint64_t>(grid[0]));
    maps = encoded(*driver_, maps_, more);
    words = more;
  }
  std::int64_t blocks = (grid[0] + programs_ - 1) / programs_;
  if (resident_ > 0)
    blocks = std::min(blocks, std::max<std::int64_t>(1, resident_ / (grid[1] * grid[2])));
  std::size_t bytes = words.size_bytes();
  std::array<void*, 5> extra = {
      reinterpret_cast<void*>(kBufferPointer), const_cast<std::uint64_t*>(words.data()),
      reinterpret_cast<void*>(kBufferSize), &bytes, reinterpret_cast<void*>(kBufferEnd)};
  // Parameters one by one with maps: their offsets among the parameters are not documented.
  std::vector<void*> one_by_one;
  if (!maps.empty()) {
    for (std::uint64_t& word : more) one_by_one.push_back(&word);
    for (EncodedMap& map : maps) one_by_one.push_back(&map);
  }
  LaunchAttribute programmatic = {.id = kProgrammaticLaunch, .value = {1}};
  const LaunchConfig config = {
      .grid = {static_cast<unsigned>(blocks), static_cast<unsigned>(grid[1]),
               static_cast<unsigned>(grid[2])},
      .block = {static_cast<unsigned>(threads_), 1, 1},
      .shared_bytes = static_cast<unsigned>(awaits_grids_ ? spread_bytes(blocks * grid[1] * grid[2])
                                                          : shared_bytes_),
      .stream = stream,
      .attributes = &programmatic,
      .attribute_count = awaits_grids_ ? 1U : 0U};
  return driver_->check(
      driver_->launch(&config, function_, one_by_one.empty() ? nullptr : one_by_one.data(),
                      bytes == 0 || !one_by_one.empty() ? nullptr : extra.data()),
      "launching a kernel");
}

Expected<Done> Stream::send(Address to, std::span<const std::byte> from) const {
  if (from.empty()) return Done{};
  return driver_->check(driver_->send(to, from.data(), from.size(), get()), "copying to the GPU");
}

Expected<Done> Stream::fetch(std::span<std::byte> to, Address from) const {
  if (to.empty()) return Done{};
  return driver_->check(driver_->fetch(to.data(), from, to.size(), get()), "copying from the GPU");
}

Expected<Done> Stream::copy(Address to, Address from, std::int64_t bytes) const {
  if (bytes <= 0) return Done{};
  return driver_->check(driver_->copy(to, from, static_cast<std::size_t>(bytes), get()),
                        "copying on the GPU");
}

Expected<Graph> Stream::capture(const std::function<Expected<Done>()>& work) const {
  TESSERA_TRY_DONE(
      driver_->check(driver_->begin_capture(get(), kCaptureThisThread), "capturing a graph"));
  const Expected<Done> worked = work();
  GraphHandle handle = nullptr;
  const Expected<Done> ended =
      driver_->check(driver_->end_capture(get(), &handle), "capturing a graph");
  const UniqueHandle<GraphHandle> graph(handle,
                                        handle == nullptr ? nullptr : driver_->destroy_graph);
  if (!worked) return worked.error();
  if (!ended) return ended.error();
  Graph made;
  made.driver_ = driver_;
  GraphRunHandle run = nullptr;
  TESSERA_TRY_DONE(
      driver_->check(driver_->instantiate(&run, handle, 0), "making a graph ready to run"));
  made.run_ = {run, driver_->destroy_graph_run};
  return made;
}

bool Stream::is_capturing() const {
  int status = 0;
  return driver_->is_capturing(get(), &status) == 0 && status != 0;
}

Expected<Done> Event::record(StreamHandle stream) {
  return driver_->check(driver_->record_event(event_.get(), stream), "recording an event");
}

Expected<Done> Event::wait() const {
  return driver_->check(driver_->wait_event(event_.get()), "waiting for an event");
}

Expected<Done> Stream::wait_for(const Event& event) const {
  return driver_->check(driver_->wait_in_stream(get(), event.event_.get(), 0),
                        "ordering two streams");
}

Expected<double> Event::since(const Event& earlier) const {
  TESSERA_TRY_DONE(wait());
  float milliseconds = 0;
  TESSERA_TRY_DONE(
      driver_->check(driver_->elapsed(&milliseconds, earlier.event_.get(), event_.get()),
                     "reading the time between events"));
  return static_cast<double>(milliseconds);
}

namespace {

using Pool = std::shared_ptr<const UniqueHandle<PoolHandle>>;

/// Memory pool of a GPU, shared while in use.
Expected<Pool> pool_of(const Driver& driver, int number) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<const UniqueHandle<PoolHandle>>> pools;
  const std::lock_guard lock(mutex);
  if (Pool there = pools[number].lock()) return there;
  const PoolProperties properties{.number = number};
  PoolHandle handle = nullptr;
  TESSERA_TRY_DONE(driver.check(driver.make_pool(&handle, &properties), "making a pool"));
  const auto pool = std::make_shared<const UniqueHandle<PoolHandle>>(handle, driver.destroy_pool);
  std::uint64_t kept = std::numeric_limits<std::uint64_t>::max();
  TESSERA_TRY_DONE(
      driver.check(driver.set_pool_attribute(handle, kKeptBytes, &kept), "making a pool"));
  pools[number] = pool;
  return pool;
}

}  // namespace

Expected<Device> Device::open(int number) {
  TESSERA_TRY(const Driver* driver, Driver::load());
  Device opened;
  opened.driver_ = driver;
  opened.number_ = number;
  DeviceHandle handle = 0;
  TESSERA_TRY_DONE(driver->check(driver->device(&handle, number), "opening a GPU"));
  ContextHandle context = nullptr;
  TESSERA_TRY_DONE(driver->check(driver->retain_context(&context, handle), "starting a GPU"));
  opened.context_ = {handle, driver->release_context};
  opened.handle_ = context;
  TESSERA_TRY_DONE(opened.use());
  std::array<char, 256> name = {};
  TESSERA_TRY_DONE(driver->check(
      driver->device_name(name.data(), static_cast<int>(name.size()), handle), "naming a GPU"));
  opened.name_ = name.data();
  int major = 0, minor = 0;
  std::size_t bytes = 0;
  TESSERA_TRY_DONE(driver->check(
      driver->device_attribute(&opened.multiprocessors_, kMultiprocessors, handle), "a GPU"));
  TESSERA_TRY_DONE(driver->check(driver->device_attribute(&major, kComputeMajor, handle), "a GPU"));
  TESSERA_TRY_DONE(driver->check(driver->device_attribute(&minor, kComputeMinor, handle), "a GPU"));
  TESSERA_TRY_DONE(driver->check(driver->device_memory(&bytes, handle), "a GPU's memory"));
  TESSERA_TRY_DONE(driver->check(driver->driver_version(&opened.driver_version_), "the driver"));
  TESSERA_TRY_DONE(driver->check(
      driver->device_attribute(&opened.shared_of_sm_, kSharedBytesOfASm, handle), "a GPU"));
  TESSERA_TRY_DONE(driver->check(
      driver->device_attribute(&opened.reserved_bytes_, kReservedBytesOfABlock, handle), "a GPU"));
  int has_pools = 0;
  TESSERA_TRY_DONE(driver->check(driver->device_attribute(&has_pools, kHasPools, handle), "a GPU"));
  if (has_pools != 0) {
    TESSERA_TRY(opened.pool_, pool_of(*driver, number));
  }
  opened.compute_ = major * 10 + minor;
  opened.memory_bytes_ = static_cast<std::int64_t>(bytes);
  return opened;
}

namespace {

/// Scope in which this thread may call what a capture in progress would forbid.
class BesideCapture {
 public:
  explicit BesideCapture(const Driver& driver) : driver_(driver) {
    driver_.exchange_capture_mode(&mode_);
  }
  BesideCapture(const BesideCapture&) = delete;
  BesideCapture& operator=(const BesideCapture&) = delete;
  ~BesideCapture() { driver_.exchange_capture_mode(&mode_); }

 private:
  const Driver& driver_;
  int mode_ = kCaptureRelaxed;
};

}  // namespace

Expected<Memory> Device::allocate(std::int64_t bytes) const {
  Memory memory;
  memory.driver_ = driver_;
  memory.bytes_ = std::max<std::int64_t>(bytes, 0);
  if (bytes <= 0) return memory;
  const auto size = static_cast<std::size_t>(bytes);
  Address address = 0;
  const char* const what = "allocating memory of the GPU";
  const BesideCapture scope(*driver_);
  if (pool_ == nullptr) {
    TESSERA_TRY_DONE(driver_->check(driver_->allocate(&address, size), what));
    memory.memory_ = {address, driver_->free};
    return memory;
  }
  TESSERA_TRY_DONE(
      driver_->check(driver_->allocate_from(&address, size, pool_->get(), nullptr), what));
  memory.memory_ = {address,
                    [](Address freed) { return (*Driver::load())->free_in_order(freed, nullptr); }};
  TESSERA_TRY_DONE(wait());  // other streams do not wait for this one
  return memory;
}

Expected<std::string> Device::assembled(const std::string& ptx) const {
  Log log;
  LinkHandle handle = nullptr;
  TESSERA_TRY_DONE(driver_->check(
      driver_->make_link(log.count(), log.options.data(), log.values.data(), &handle),
      "assembling a kernel"));
  const UniqueHandle<LinkHandle> link(handle, driver_->destroy_link);
  void* code = nullptr;
  std::size_t bytes = 0;
  // The size includes the terminating zero.
  auto done = driver_->check(driver_->add_to_link(handle, kLinkText, const_cast<char*>(ptx.c_str()),
                                                  ptx.size() + 1, "kernel", 0, nullptr, nullptr),
                             "assembling a kernel");
  if (done)
    done = driver_->check(driver_->complete_link(handle, &code, &bytes), "assembling a kernel");
  if (!done) return log.added_to(std::move(done).error());
  return std::string(static_cast<const char*>(code), bytes);
}

Expected<Function> Device::load(const Code& code) const {
  TESSERA_TRY(Function function, load_as_it_is(code));
  if (function.local_bytes() == 0 || !reallocates_registers(code.text)) return function;
  Code again = code;
  again.text = without_reallocation(code.text);
  return load_as_it_is(again);
}

Expected<Function> Device::load_as_it_is(const Code& code) const {
  Function function;
  function.driver_ = driver_;
  function.threads_ = code.threads;
  function.shared_bytes_ = code.shared_bytes;
  function.programs_ = code.programs;
  function.maps_ = code.maps;
  function.awaits_grids_ = code.awaits_grids;
  Log log;
  ModuleHandle module = nullptr;
  auto loaded = driver_->check(driver_->load_module(&module, code.text.c_str(), log.count(),
                                                    log.options.data(), log.values.data()),
                               "loading a kernel");
  if (!loaded) return log.added_to(std::move(loaded).error());
  function.module_ = {module, driver_->unload_module};
  TESSERA_TRY_DONE(driver_->check(
      driver_->function(&function.function_, module, code.entry.c_str()), "finding a kernel"));
  function.shared_of_sm_ = shared_of_sm_;
  function.reserved_bytes_ = reserved_bytes_;
  function.multiprocessors_ = multiprocessors_;
  const int most = code.awaits_grids ? function.spread_bytes(1) : code.shared_bytes;
  if (most > 0) {
    TESSERA_TRY_DONE(driver_->check(
        driver_->set_function_attribute(function.function_, kDynamicSharedBytes, most),
        "asking for shared memory"));
  }
  if (code.persistent) {
    int blocks = 0;
    TESSERA_TRY_DONE(
        driver_->check(driver_->resident_blocks(&blocks, function.function_, code.threads,
                                                static_cast<std::size_t>(code.shared_bytes)),
                       "asking how many blocks run at once"));
    function.resident_ = std::int64_t{std::max(blocks, 1)} * multiprocessors_;
  }
  TESSERA_TRY_DONE(driver_->check(
      driver_->function_attribute(&function.registers_, kRegisters, function.function_),
      "reading a kernel's registers"));
  TESSERA_TRY_DONE(driver_->check(
      driver_->function_attribute(&function.local_bytes_, kLocalBytes, function.function_),
      "reading a kernel's local memory"));
  return function;
}

Expected<Stream> Device::stream() const {
  Stream made;
  made.driver_ = driver_;
  StreamHandle handle = nullptr;
  TESSERA_TRY_DONE(driver_->check(driver_->make_stream(&handle, 1), "making a stream"));
  made.stream_ = {handle, driver_->destroy_stream};
  return made;
}

Stream Device::borrowed_stream(void* handle) const {
  Stream borrowed;
  borrowed.driver_ = driver_;
  borrowed.stream_ = {static_cast<StreamHandle>(handle), nullptr};
  return borrowed;
}

Expected<Event> Device::event(bool is_timed) const {
  Event made;
  made.driver_ = driver_;
  EventHandle handle = nullptr;
  TESSERA_TRY_DONE(
      driver_->check(driver_->make_event(&handle, is_timed ? 0 : kWithoutTime), "making an event"));
  made.event_ = {handle, driver_->destroy_event};
  return made;
}

bool PageLocks::lock(std::byte* memory, std::size_t bytes) const {
  if (driver_->set_context(context_) != 0) return false;
  const BesideCapture scope(*driver_);
  return driver_->lock_pages(memory, bytes, kForAllContexts) == 0;
}

void PageLocks::unlock(std::byte* memory) const {
  if (driver_->set_context(context_) != 0) return;
  const BesideCapture scope(*driver_);
  driver_->unlock_pages(memory);
}

bool Device::knows(const std::byte* memory, std::size_t bytes) const {
  const auto address = reinterpret_cast<Address>(memory);
  unsigned type = 0;
  Address start = 0;
  std::size_t length = 0;
  // Asked for all at once: for memory that it does not know, the driver then gives zeros, not an
  // error, which memory checkers would report.
  constexpr std::array<int, 3> kAttributes = {kMemoryType, kRangeStart, kRangeBytes};
  std::array<void*, kAttributes.size()> values = {&type, &start, &length};
  return driver_->pointer_attributes(kAttributes.size(), kAttributes.data(), values.data(),
                                     address) == 0 &&
         type != 0 && address >= start && address - start <= length &&
         bytes <= length - (address - start);
}

Expected<Done> Device::copy(const Memory& to, const Memory& from, StreamHandle stream) const {
  const auto bytes = static_cast<std::size_t>(std::min(to.bytes(), from.bytes()));
  return driver_->check(driver_->copy(to.address(), from.address(), bytes, stream),
                        "copying on the GPU");
}

}  // namespace tessera::runtime::cuda
