#include "tessera/runtime/session.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <optional>

#include "tessera/runtime/arguments.h"
#include "tessera/runtime/launch.h"
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

/// Zeroed pages, large ones where there are.
Expected<std::shared_ptr<std::byte>> pages(std::int64_t bytes) {
  if (bytes == 0) return std::shared_ptr<std::byte>();
  const auto size = static_cast<std::size_t>(bytes);
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return no_memory(bytes);
  ::madvise(memory, size, MADV_HUGEPAGE);
  return std::shared_ptr<std::byte>(static_cast<std::byte*>(memory),
                                    [size](std::byte* mapped) { ::munmap(mapped, size); });
}

/// A word of a launch that is not the same in every run and round.
struct Moving {
  std::uint64_t* word = nullptr;
  Address at = {};
};

/// A launch step with all that is known before a run.
struct Ready {
  std::vector<std::uint64_t> words = {};  // the grid first
  KernelCall call = {};
  std::vector<Moving> moving = {};
};

/// A loop while it runs.
struct Frame {
  std::size_t begin = 0, end = 0;
  std::int64_t rounds = 0, done = 0;
  bool backwards = false;

  std::int64_t round() const { return backwards ? rounds - 1 - done : done; }
};

class RunningSession final : public Session {
 public:
  RunningSession(std::shared_ptr<const LoadedProgram> loaded, const SessionOptions& options,
                 std::shared_ptr<std::byte> arena, std::optional<SwapFile> swap)
      : loaded_(std::move(loaded)),
        program_(loaded_->program()),
        options_(options),
        arena_(std::move(arena)),
        swap_(std::move(swap)),
        memory_(program_.values.size(), nullptr),
        boxes_(program_.values.size()),
        ready_(program_.steps.size()) {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      const Value& value = program_.values[i];
      if (value.home == Home::Arena) memory_[i] = arena_.get() + value.offset;
      if (value.home == Home::File && swap_) memory_[i] = swap_->memory() + value.offset;
      // Nothing that check() lets through writes there.
      if (value.home == Home::Weight)
        memory_[i] = const_cast<std::byte*>(program_.weights.data()) + value.offset;
      (value.home == Home::Input || value.home == Home::Output ? of_caller_ : boxed_)
          .push_back(static_cast<ValueIndex>(i));
    }
    std::erase_if(boxed_, [&](ValueIndex i) { return program_.values[i].home != Home::Boxed; });
    std::size_t depth = 0;
    for (std::size_t i = 0; i < ready_.size(); ++i) {
      if (const auto* launch = std::get_if<step::Launch>(&program_.steps[i])) prepare(i, *launch);
      if (std::holds_alternative<step::Loop>(program_.steps[i])) ++depth;
    }
    loops_.reserve(depth);
  }

  Expected<std::vector<Datum>> run(std::span<const Datum> inputs) override {
    TESSERA_TRY_DONE(check_count(inputs.size(), program_.inputs.size()));
    forget();
    std::vector<const std::byte*> from(inputs.size(), nullptr);
    std::vector<Bytes> realigned;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const ValueIndex index = program_.inputs[i];
      const Value& value = program_.values[index];
      if (value.home == Home::Boxed) {
        boxes_[index] = inputs[i];
        continue;
      }
      TESSERA_TRY(const Bytes bytes, bytes_of(inputs[i], value));
      from[i] = bytes.data();
      if (!is_aligned(from[i])) from[i] = realigned.emplace_back(Bytes::copy(bytes.view())).data();
    }
    std::vector<Buffer> results;
    std::vector<std::byte*> to;
    for (const ValueIndex output : program_.outputs) {
      const Value& value = program_.values[output];
      results.emplace_back(value.home == Home::Boxed ? 0 : static_cast<std::size_t>(value.bytes));
      to.push_back(results.back().data());
    }
    TESSERA_TRY_DONE(execute(from, to));
    std::vector<Datum> data;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const ValueIndex index = program_.outputs[i];
      const Value& value = program_.values[index];
      if (value.home == Home::Boxed)
        data.push_back(boxes_[index]);
      else
        data.emplace_back(Tensor{value.dtype, value.shape, std::move(results[i]).freeze()});
    }
    forget();
    return data;
  }

  Expected<Done> run(std::span<const std::byte* const> inputs,
                     std::span<std::byte* const> outputs) override {
    TESSERA_TRY_DONE(check_memory(inputs, program_, program_.inputs));
    TESSERA_TRY_DONE(check_memory(outputs, program_, program_.outputs));
    forget();
    return execute(inputs, outputs);
  }

 private:
  /// The words of a launch, with the addresses that never change.
  void prepare(std::size_t step, const step::Launch& launch) {
    const Program::Kernel& kernel = program_.kernels[launch.kernel];
    Ready& ready = ready_[step];
    std::vector<std::uint64_t>& words = ready.words;
    words.assign(launch.grid.begin(), launch.grid.end());
    words.insert(words.end(), launch.words.begin(), launch.words.end());
    const Program::Note& note = program_.notes[step];
    ready.call = {.entry = reinterpret_cast<KernelEntry>(
                      reinterpret_cast<std::uintptr_t>(program_.image.data() + kernel.entry)),
                  .launch = words.data(),
                  .programs = launch.grid[0] * launch.grid[1] * launch.grid[2],
                  .scratch_bytes = kernel.scratch_bytes,
                  .work = note.flops == 0 && note.bytes == 0
                              ? kUnknownWork
                              : std::max(note.flops, note.bytes / 4)};
    for (const step::Launch::Patch& patch : launch.patches) {
      const Home home = program_.values[patch.at.value].home;
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

  void forget() {
    for (const ValueIndex index : boxed_) boxes_[index] = {};
  }

  Expected<Done> execute(std::span<const std::byte* const> inputs,
                         std::span<std::byte* const> outputs) {
    for (const ValueIndex index : of_caller_) {
      const Value& value = program_.values[index];
      const auto which = static_cast<std::size_t>(value.offset);
      memory_[index] =
          value.home == Home::Input ? const_cast<std::byte*>(inputs[which]) : outputs[which];
    }
    try {
      std::optional<Threads::Burst> burst;
      if (options_.threads != 1) burst.emplace(process_threads());
      return run_steps();
    } catch (const std::bad_alloc&) {
      return no_memory(program_.arena_bytes);
    }
  }

  Expected<Done> run_steps() {
    loops_.clear();
    next_ = 0;
    while (next_ < program_.steps.size()) {
      const std::size_t now = next_++;
      const std::int64_t start = options_.observe ? clock() : 0;
      TESSERA_TRY_DONE(
          std::visit([&](const auto& step) { return make(step, now); }, program_.steps[now]));
      if (options_.observe) options_.observe(now, start, clock());
      end_rounds();
    }
    return Done{};
  }

  /// Where a loop ends, its next round begins, or what follows it.
  void end_rounds() {
    while (!loops_.empty() && next_ == loops_.back().end) {
      Frame& loop = loops_.back();
      if (++loop.done < loop.rounds) {
        next_ = loop.begin;
        return;
      }
      loops_.pop_back();
    }
  }

  static std::int64_t clock() {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  std::int64_t round() const { return loops_.empty() ? 0 : loops_.back().round(); }

  Expected<Done> make(const step::Launch& launch, std::size_t now) {
    const Ready& ready = ready_[now];
    for (const Moving& moving : ready.moving) *moving.word = word_of(moving.at, round());
    if (run_kernel(ready.call, options_.threads) == 0) return Done{};
    return Diagnostic{.id = "program-kernel",
                      .where = {.item = program_.kernels[launch.kernel].name},
                      .message = "an assertion of the kernel does not hold"};
  }

  Expected<Done> make(const step::Copy& copy, std::size_t) {
    if (copy.bytes > 0)
      std::memmove(at(copy.to, round()), at(copy.from, round()),
                   static_cast<std::size_t>(copy.bytes));
    return Done{};
  }

  Expected<Done> make(const step::Host& host, std::size_t) {
    // What a box keeps may be a view of an operand, and memory is used again.
    const bool copied = std::ranges::any_of(host.outputs, [&](ValueIndex output) {
      return program_.values[output].home == Home::Boxed;
    });
    std::vector<Datum> inputs;
    for (const ValueIndex input : host.inputs) inputs.push_back(datum_of(input, copied));
    TESSERA_TRY(std::vector<Datum> outputs, options_.host(program_.texts[host.text], inputs));
    if (outputs.size() != host.outputs.size())
      return Diagnostic{.id = "program-host",
                        .message = fmt::format("{} results of a host step", outputs.size()),
                        .note = fmt::format("the program expects {}", host.outputs.size())};
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const ValueIndex output = host.outputs[i];
      const Value& value = program_.values[output];
      if (value.home == Home::Boxed) {
        boxes_[output] = std::move(outputs[i]);
        continue;
      }
      TESSERA_TRY(const Bytes bytes, bytes_of(outputs[i], value));
      if (bytes.size() > 0) std::memcpy(memory_[output], bytes.data(), bytes.size());
    }
    return Done{};
  }

  Datum datum_of(ValueIndex index, bool copied) const {
    const Value& value = program_.values[index];
    if (value.home == Home::Boxed) return boxes_[index];
    Tensor tensor{value.dtype, value.shape, {}};
    const auto size = static_cast<std::size_t>(tensor.count() * byte_width(value.dtype));
    if (value.home == Home::Weight)
      tensor.bytes = program_.weights.slice(static_cast<std::size_t>(value.offset), size);
    else if (copied)
      tensor.bytes = Bytes::copy({memory_[index], size});
    else
      tensor.bytes = Bytes(nullptr, {memory_[index], size});
    return tensor;
  }

  Expected<Done> make(const step::Branch& branch, std::size_t) {
    const Value& value = program_.values[branch.condition];
    const std::byte* condition = memory_[branch.condition];
    if (value.home == Home::Boxed) {
      const Datum& box = boxes_[branch.condition];
      if (!box.is_tensor() || box.tensor().dtype != DType::Bool || box.tensor().count() != 1)
        return Diagnostic{.id = "program-host",
                          .where = {.item = value.name},
                          .message = "a condition is not one bool"};
      condition = box.tensor().bytes.data();
    }
    if (*condition == std::byte{0}) next_ = branch.otherwise;
    return Done{};
  }

  Expected<Done> make(const step::Jump& jump, std::size_t) {
    next_ = jump.target;
    return Done{};
  }

  Expected<Done> make(const step::Loop& loop, std::size_t now) {
    if (loop.rounds == 0 || loop.end == now + 1)
      next_ = loop.end;
    else
      loops_.push_back({now + 1, loop.end, loop.rounds, 0, loop.backwards});
    return Done{};
  }

  Expected<Done> make(const step::Swap& swap, std::size_t) {
    if (swap.bytes == 0) return Done{};  // there may be no file
    const std::span<std::byte> memory(at(swap.memory, round()),
                                      static_cast<std::size_t>(swap.bytes));
    return swap.out ? swap_->write(memory, swap.file_offset)
                    : swap_->read(memory, swap.file_offset);
  }

  static constexpr double kUnknownWork = 1e18;

  std::shared_ptr<const LoadedProgram> loaded_;
  const Program& program_;
  SessionOptions options_;
  std::shared_ptr<std::byte> arena_;
  std::optional<SwapFile> swap_;
  std::vector<std::byte*> memory_;  // by value; null for boxed ones
  std::vector<Datum> boxes_;        // by value
  std::vector<ValueIndex> of_caller_, boxed_;
  std::vector<Ready> ready_;  // by step
  std::vector<Frame> loops_;
  std::size_t next_ = 0;
};

}  // namespace

Expected<std::unique_ptr<Session>> Session::create(std::shared_ptr<const LoadedProgram> program,
                                                   const SessionOptions& options) {
  const Program& steps = program->program();
  const bool asks_host = std::ranges::any_of(
      steps.steps, [](const Step& step) { return std::holds_alternative<step::Host>(step); });
  if (asks_host && !options.host)
    return Diagnostic{.id = "program-host",
                      .message = "the program has host steps, and there is no host",
                      .help = "run it by tessera/engine"};
  TESSERA_TRY(auto arena, pages(steps.arena_bytes));
  std::optional<SwapFile> swap;
  if (steps.swap_bytes > 0) {
    TESSERA_TRY(SwapFile file, SwapFile::create(options.swap_folder, steps.swap_bytes));
    swap.emplace(std::move(file));
  }
  return std::unique_ptr<Session>(std::make_unique<RunningSession>(
      std::move(program), options, std::move(arena), std::move(swap)));
}

}  // namespace tessera::runtime
