#include "tessera/runtime/session.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>

#include "tessera/runtime/cuda/session.h"
#include "tessera/runtime/launch.h"
#include "tessera/runtime/step_executor.h"
#include "tessera/runtime/swap_file.h"
#include "tessera/runtime/threads.h"

namespace tessera::runtime {
namespace {

using Home = Value::Home;

Diagnostic no_memory(std::int64_t bytes) {
  return {.id = "program-memory",
          .message = fmt::format("there are no {} bytes of memory", bytes),
          .help = "compile the model with a memory limit"};
}

/// Zeroed memory, with huge pages where available.
Expected<std::shared_ptr<std::byte>> pages(std::int64_t bytes) {
  if (bytes == 0) return std::shared_ptr<std::byte>();
  const auto size = static_cast<std::size_t>(bytes);
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return no_memory(bytes);
  ::madvise(memory, size, MADV_HUGEPAGE);
  return std::shared_ptr<std::byte>(static_cast<std::byte*>(memory),
                                    [size](std::byte* mapped) { ::munmap(mapped, size); });
}

/// A launch word that changes between runs or iterations.
struct Moving {
  std::uint64_t* word = nullptr;
  Address at = {};
};

/// A prepared launch: everything known before a run.
struct Ready {
  std::vector<std::uint64_t> words = {};  // the grid first
  KernelCall call = {};
  std::vector<Moving> moving = {};
};

class CpuSession final : public StepExecutor {
 public:
  CpuSession(std::shared_ptr<const LoadedProgram> loaded, const SessionOptions& options,
             std::shared_ptr<std::byte> arena, std::optional<SwapFile> swap)
      : StepExecutor(std::move(loaded), options),
        arena_(std::move(arena)),
        swap_(std::move(swap)),
        memory_(program().values.size(), nullptr),
        ready_(program().steps.size()) {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      const Value& value = program().values[i];
      if (value.home == Home::Arena) memory_[i] = arena_.get() + value.offset;
      if (value.home == Home::File && swap_) memory_[i] = swap_->memory() + value.offset;
      // check() rejects programs that would write there.
      if (value.home == Home::Weight)
        memory_[i] = const_cast<std::byte*>(program().weights.data()) + value.offset;
      if (value.home == Home::Input || value.home == Home::Output)
        of_caller_.push_back(static_cast<ValueIndex>(i));
    }
    for (std::size_t i = 0; i < ready_.size(); ++i)
      if (const auto* launch = std::get_if<step::Launch>(&program().steps[i])) prepare(i, *launch);
  }

 private:
  /// Words of a launch, with the constant addresses filled in.
  void prepare(std::size_t step, const step::Launch& launch) {
    const Program::Kernel& kernel = program().kernels[launch.kernel];
    Ready& ready = ready_[step];
    std::vector<std::uint64_t>& words = ready.words;
    words.assign(launch.grid.begin(), launch.grid.end());
    words.insert(words.end(), launch.words.begin(), launch.words.end());
    const Program::Note& note = program().notes[step];
    ready.call = {.entry = reinterpret_cast<KernelEntry>(
                      reinterpret_cast<std::uintptr_t>(program().image.data() + kernel.entry)),
                  .launch = words.data(),
                  .programs = launch.grid[0] * launch.grid[1] * launch.grid[2],
                  .scratch_bytes = kernel.scratch_bytes,
                  .work = note.flops == 0 && note.bytes == 0
                              ? kUnknownWork
                              : std::max(note.flops, note.bytes / 4)};
    for (const step::Launch::Patch& patch : launch.patches) {
      const Home home = program().values[patch.at.value].home;
      std::uint64_t* word = &words[kGridWords + patch.word];
      if (patch.at.per_round != 0 || home == Home::Input || home == Home::Output)
        ready.moving.push_back({word, patch.at});
      else
        *word = word_of(patch.at, 0);
    }
  }

  std::byte* at(const Address& address, std::int64_t round) const {
    return memory_[address.value] + address.offset + address.per_round * round;
  }
  std::uint64_t word_of(const Address& address, std::int64_t round) const {
    return reinterpret_cast<std::uintptr_t>(at(address, round));
  }

  Expected<Done> execute(std::span<const std::byte* const> inputs,
                         std::span<std::byte* const> outputs) override {
    for (const ValueIndex index : of_caller_) {
      const Value& value = program().values[index];
      const auto which = static_cast<std::size_t>(value.offset);
      memory_[index] =
          value.home == Home::Input ? const_cast<std::byte*>(inputs[which]) : outputs[which];
    }
    if (options().poison && arena_)
      std::memset(arena_.get(), 0xff, static_cast<std::size_t>(program().arena_bytes));
    try {
      std::optional<Threads::Burst> burst;
      if (options().threads != 1) burst.emplace(process_threads());
      return run_steps();
    } catch (const std::bad_alloc&) {
      return no_memory(program().arena_bytes);
    }
  }

  Expected<Done> run_step(const step::Launch& launch, std::size_t now) override {
    const Ready& ready = ready_[now];
    for (const Moving& moving : ready.moving) *moving.word = word_of(moving.at, round());
    if (options().emulate)
      return options().emulate(launch, std::span(ready.words).subspan(kGridWords));
    if (run_kernel(ready.call, options().threads) == 0) return Done{};
    return Diagnostic{.id = "program-kernel",
                      .where = {.item = program().kernels[launch.kernel].name},
                      .message = "an assertion of the kernel does not hold"};
  }

  Expected<Done> run_step(const step::Copy& copy, std::size_t) override {
    if (copy.bytes > 0)
      std::memmove(at(copy.to, round()), at(copy.from, round()),
                   static_cast<std::size_t>(copy.bytes));
    return Done{};
  }

  Expected<Bytes> read(ValueIndex value, std::size_t bytes, bool copied) override {
    const std::span<const std::byte> memory(memory_[value], bytes);
    return copied ? Bytes::copy(memory) : Bytes(nullptr, memory);
  }

  Expected<Done> write(ValueIndex value, std::span<const std::byte> from) override {
    std::memcpy(memory_[value], from.data(), from.size());
    return Done{};
  }

  Expected<Bytes> copy_of(const Address& address, std::size_t bytes) override {
    return Bytes::copy({at(address, round()), bytes});
  }

  Expected<Done> run_step(const step::Swap& swap, std::size_t) override {
    if (swap.bytes == 0) return Done{};  // there may be no file
    const std::span<std::byte> memory(at(swap.memory, round()),
                                      static_cast<std::size_t>(swap.bytes));
    return swap.out ? swap_->write(memory, swap.file_offset)
                    : swap_->read(memory, swap.file_offset);
  }

  Expected<Done> run_step(const step::CheckIndices& check, std::size_t now) override {
    return check_indices(check, now, at(check.at, round()));
  }

  static constexpr double kUnknownWork = 1e18;

  std::shared_ptr<std::byte> arena_;
  std::optional<SwapFile> swap_;
  std::vector<std::byte*> memory_;  // by value; null for boxed ones
  std::vector<ValueIndex> of_caller_;
  std::vector<Ready> ready_;  // by step
};

}  // namespace

std::shared_ptr<std::byte> Session::host_memory(std::size_t bytes) {
  const auto buffer = std::make_shared<Buffer>(bytes);
  return {buffer, buffer->data()};
}

Expected<Done> Session::run_on_device(const DeviceArguments&) {
  return Diagnostic{.id = "program-argument",
                    .message = "the arguments are on a GPU, and the program is for a CPU",
                    .help = "compile the model for the GPU, or copy the arguments to the host"};
}

Expected<std::unique_ptr<Session>> Session::create(std::shared_ptr<const LoadedProgram> program,
                                                   const SessionOptions& options) {
  const Program& steps = program->program();
  const bool asks_host = std::ranges::any_of(
      steps.steps, [](const Step& step) { return std::holds_alternative<step::Host>(step); });
  if (asks_host && !options.host)
    return Diagnostic{.id = "program-host",
                      .message = "the program has host steps, and there is no host",
                      .help = "run it by tessera/engine"};
  if (steps.is_for_gpu() && !options.emulate)
    return cuda::make_session(std::move(program), options);
  TESSERA_TRY(auto arena, pages(steps.arena_bytes));
  std::optional<SwapFile> swap;
  if (steps.swap_bytes > 0) {
    TESSERA_TRY(SwapFile file, SwapFile::create(options.swap_folder, steps.swap_bytes));
    swap.emplace(std::move(file));
  }
  return std::unique_ptr<Session>(
      std::make_unique<CpuSession>(std::move(program), options, std::move(arena), std::move(swap)));
}

}  // namespace tessera::runtime
