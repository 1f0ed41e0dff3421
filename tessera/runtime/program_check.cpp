#include <fmt/format.h>

#include <algorithm>

#include "tessera/runtime/launch.h"
#include "tessera/runtime/session.h"
#include "tessera/support/tensor.h"

namespace tessera::runtime {
namespace {

using Home = Value::Home;

/// Size limit, far beyond any computer and safe from overflow in sums of two.
constexpr std::int64_t kMost = std::int64_t{1} << 48;
constexpr std::int64_t kMostPrograms = std::int64_t{1} << 31;  // along an axis of a grid
constexpr std::int64_t kMostBeside = 65535;  // on a GPU, along the second and third axis
constexpr std::int64_t kMostThreads = 1024;  // per block of a GPU
constexpr std::size_t kMostDepth = 64;       // of nested loops

bool within(std::int64_t value, std::int64_t first, std::int64_t last) {
  return value >= first && value <= last;
}

/// Whether [offset, offset + bytes) is in [0, size).
bool fits(std::int64_t offset, std::int64_t bytes, std::int64_t size) {
  return within(offset, 0, size) && within(bytes, 0, size - offset);
}

/// Range of steps of a loop, or of the whole program: jumps stay in it.
struct Region {
  std::uint32_t end = 0;
  std::int64_t rounds = 1;
};

class Check {
 public:
  explicit Check(const Program& program) : program_(program) {}

  Expected<Done> run() {
    TESSERA_TRY_DONE(sizes());
    for (const Value& value : program_.values) TESSERA_TRY_DONE(check(value));
    TESSERA_TRY_DONE(interface(program_.inputs, Home::Input, "inputs"));
    TESSERA_TRY_DONE(interface(program_.outputs, Home::Output, "outputs"));
    for (const Program::Kernel& kernel : program_.kernels) TESSERA_TRY_DONE(check(kernel));
    TESSERA_TRY_DONE(find_regions());
    for (at_ = 0; at_ < program_.steps.size(); ++at_)
      TESSERA_TRY_DONE(
          std::visit([&](const auto& step) { return check(step); }, program_.steps[at_]));
    return Done{};
  }

 private:
  static Diagnostic invalid(std::string item, std::string message) {
    return {.id = "program-invalid",
            .where = {.item = std::move(item)},
            .message = std::move(message),
            .help = "compile the model again"};
  }
  Diagnostic invalid(std::string message) const {
    return invalid(fmt::format("step {}", at_), std::move(message));
  }

  Expected<Done> sizes() const {
    if (!within(program_.arena_bytes, 0, kMost) || !within(program_.swap_bytes, 0, kMost))
      return invalid("memory", fmt::format("{} bytes and {} in a file", program_.arena_bytes,
                                           program_.swap_bytes));
    if (program_.notes.size() != program_.steps.size())
      return invalid("notes",
                     fmt::format("{} of {} steps", program_.notes.size(), program_.steps.size()));
    if (program_.steps.size() >= kMostPrograms) return invalid("steps", "there are too many");
    return Done{};
  }

  Expected<Done> check(const Value& value) const {
    if (value.home == Home::Boxed) return Done{};
    const auto count = element_count(value.shape);
    const int width = byte_width(value.dtype);
    if (width == 0) return invalid(value.name, "text is not boxed");
    if (!count || *count > kMost / width || !within(value.bytes, *count * width, kMost))
      return invalid(value.name, fmt::format("{} bytes are not enough", value.bytes));
    const auto inside = [&](std::int64_t size, std::int64_t alignment) {
      return fits(value.offset, value.bytes, size) && value.offset % alignment == 0;
    };
    const auto of_caller = [&](const std::vector<ValueIndex>& list) {
      if (value.bytes != *count * width || !fits(value.offset, 1, std::ssize(list))) return false;
      const ValueIndex whole = list[static_cast<std::size_t>(value.offset)];
      return exists(whole) && program_.values[whole].home == value.home &&
             value.bytes <= program_.values[whole].bytes;
    };
    bool holds = false;
    switch (value.home) {
      case Home::Input: holds = of_caller(program_.inputs); break;
      case Home::Output: holds = of_caller(program_.outputs); break;
      case Home::Weight:
        holds = inside(static_cast<std::int64_t>(program_.weights.size()), kAlignment);
        break;
      case Home::Arena: holds = inside(program_.arena_bytes, kAlignment); break;
      case Home::File: holds = inside(program_.swap_bytes, width); break;
      case Home::Boxed: break;
    }
    if (holds) return Done{};
    return invalid(value.name, fmt::format("{} bytes at {} are not where the value is said to be",
                                           value.bytes, value.offset));
  }

  Expected<Done> interface(const std::vector<ValueIndex>& list, Home home, const char* what) const {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!exists(list[i])) return invalid(what, fmt::format("there is no value {}", list[i]));
      const Value& value = program_.values[list[i]];
      if (value.home != Home::Boxed &&
          (value.home != home || value.offset != static_cast<std::int64_t>(i)))
        return invalid(what, fmt::format("{} is not number {} of them", value.name, i));
    }
    return Done{};
  }

  Expected<Done> check(const Program::Kernel& kernel) const {
    if (!fits(kernel.entry, 1, static_cast<std::int64_t>(program_.image.size())))
      return invalid(kernel.name, fmt::format("{} is not in the code", kernel.entry));
    const bool is_text = program_.image.size() > 0 &&
                         program_.image.data()[program_.image.size() - 1] == std::byte{0};
    if (program_.is_for_gpu() && (!is_text || !within(kernel.threads, 1, kMostThreads) ||
                                  !within(kernel.programs, 1, kernel.threads)))
      return invalid(kernel.name, fmt::format("no text of a kernel of {} threads", kernel.threads));
    if (kernel.maps.size() > cuda::kMostMaps || (!kernel.persistent && !kernel.maps.empty()) ||
        !std::ranges::all_of(kernel.maps, cuda::is_valid))
      return invalid(kernel.name, "its tensor maps are none of a GPU's");
    if (!within(kernel.scratch_bytes, 0, kMostScratch))
      return invalid(kernel.name, fmt::format("{} bytes of scratch memory", kernel.scratch_bytes));
    return Done{};
  }

  /// Innermost region of each step; a loop step itself belongs to the enclosing one.
  Expected<Done> find_regions() {
    const auto count = static_cast<std::uint32_t>(program_.steps.size());
    regions_ = {{.end = count}};
    std::vector<std::uint32_t> open = {0};
    for (at_ = 0; at_ < count; ++at_) {
      while (open.size() > 1 && regions_[open.back()].end == at_) open.pop_back();
      region_of_.push_back(open.back());
      const auto* loop = std::get_if<step::Loop>(&program_.steps[at_]);
      if (loop == nullptr) continue;
      if (loop->end <= at_ || loop->end > regions_[open.back()].end)
        return invalid(fmt::format("the loop ends at step {}", loop->end));
      if (!within(loop->rounds, 0, kMost)) return invalid(fmt::format("{} rounds", loop->rounds));
      if (open.size() > kMostDepth) return invalid("loops are nested too deeply");
      open.push_back(static_cast<std::uint32_t>(regions_.size()));
      regions_.push_back({.end = loop->end, .rounds = loop->rounds});
    }
    return Done{};
  }
  const Region& region() const { return regions_[region_of_[at_]]; }

  bool exists(ValueIndex value) const { return value < program_.values.size(); }

  /// Checks an address in a value that has memory; `written` excludes read-only ones.
  Expected<Done> check(const Address& address, std::int64_t bytes, bool written = false) const {
    if (!exists(address.value)) return invalid(fmt::format("there is no value {}", address.value));
    const Value& value = program_.values[address.value];
    if (value.home == Home::Boxed) return invalid(fmt::format("{} has no memory", value.name));
    if (written && (value.home == Home::Input || value.home == Home::Weight))
      return invalid(fmt::format("{} is written", value.name));
    std::int64_t moved = 0, last = 0;
    const std::int64_t rounds = region().rounds;
    if (rounds == 0) return Done{};
    const bool overflows = __builtin_mul_overflow(address.per_round, rounds - 1, &moved) ||
                           __builtin_add_overflow(address.offset, moved, &last);
    if (!overflows && fits(address.offset, bytes, value.bytes) && fits(last, bytes, value.bytes))
      return Done{};
    return invalid(fmt::format("{} bytes at {} leave {} in one of the rounds", bytes,
                               address.offset, value.name));
  }

  Expected<Done> check_target(std::uint32_t target) const {
    const std::uint32_t here = region_of_[at_];
    if (target == regions_[here].end) return Done{};
    if (target < region_of_.size() && region_of_[target] == here) return Done{};
    return invalid(fmt::format("goes on at step {}", target));
  }

  Expected<Done> check(const step::Launch& launch) const {
    if (launch.kernel >= program_.kernels.size())
      return invalid(fmt::format("there is no kernel {}", launch.kernel));
    std::int64_t programs = 1;
    for (const std::int64_t count : launch.grid)
      if (!within(count, 0, kMostPrograms) || __builtin_mul_overflow(programs, count, &programs))
        return invalid(fmt::format("{} programs along an axis", count));
    if (program_.is_for_gpu() && std::max(launch.grid[1], launch.grid[2]) > kMostBeside)
      return invalid(fmt::format("a grid of {} programs", fmt::join(launch.grid, " x ")));
    for (const cuda::TensorMap& map : program_.kernels[launch.kernel].maps)
      if (static_cast<std::size_t>(map.word) + map.words() > launch.words.size())
        return invalid(fmt::format("there is no view at word {}", map.word));
    for (const step::Launch::Patch& patch : launch.patches) {
      if (patch.word >= launch.words.size())
        return invalid(fmt::format("there is no word {}", patch.word));
      TESSERA_TRY_DONE(check(patch.at, patch.bytes));
    }
    return Done{};
  }

  Expected<Done> check(const step::Copy& copy) const {
    TESSERA_TRY_DONE(check(copy.from, copy.bytes));
    return check(copy.to, copy.bytes, true);
  }

  Expected<Done> check(const step::Host& host) const {
    if (host.text >= program_.texts.size())
      return invalid(fmt::format("there is no text {}", host.text));
    for (const auto* list : {&host.inputs, &host.outputs})
      for (const ValueIndex value : *list)
        if (!exists(value)) return invalid(fmt::format("there is no value {}", value));
    for (std::size_t i = 0; i < host.outputs.size(); ++i) {
      const Value& output = program_.values[host.outputs[i]];
      if (output.home == Home::Input || output.home == Home::Weight)
        return invalid(fmt::format("{} is written", output.name));
      // A result may be a view of an operand, and is stored after the host function has returned.
      const auto overlaps = [&](ValueIndex other) {
        return share_memory(output, program_.values[other]);
      };
      if (std::ranges::any_of(host.inputs, overlaps) ||
          std::any_of(host.outputs.begin(), host.outputs.begin() + static_cast<std::ptrdiff_t>(i),
                      overlaps))
        return invalid(fmt::format("{} shares memory with another operand", output.name));
    }
    return Done{};
  }

  static bool share_memory(const Value& a, const Value& b) {
    if (a.home != b.home || a.home == Home::Boxed) return false;
    if (a.home != Home::Arena && a.home != Home::File) return a.offset == b.offset;
    return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  }

  Expected<Done> check(const step::Branch& branch) const {
    if (!exists(branch.condition))
      return invalid(fmt::format("there is no value {}", branch.condition));
    const Value& condition = program_.values[branch.condition];
    if (condition.home != Home::Boxed &&
        (condition.dtype != DType::Bool || element_count(condition.shape) != 1))
      return invalid(fmt::format("{} is not one bool", condition.name));
    return check_target(branch.otherwise);
  }

  Expected<Done> check(const step::Jump& jump) const { return check_target(jump.target); }

  Expected<Done> check(const step::Loop&) const { return Done{}; }  // by find_regions

  Expected<Done> check(const step::Swap& swap) const {
    TESSERA_TRY_DONE(check(swap.memory, swap.bytes, true));
    const Home home = program_.values[swap.memory.value].home;
    if (home != Home::Arena && home != Home::File)
      return invalid("what is not in the arena is swapped");
    if (!fits(swap.file_offset, swap.bytes, program_.swap_bytes))
      return invalid(fmt::format("{} bytes at {} of the file", swap.bytes, swap.file_offset));
    return Done{};
  }

  Expected<Done> check(const step::CheckIndices& step) const {
    if (!exists(step.at.value)) return invalid(fmt::format("there is no value {}", step.at.value));
    const DType dtype = program_.values[step.at.value].dtype;
    if (!is_integer(dtype) || is_small(dtype))
      return invalid(fmt::format("indices are {}", to_string(dtype)));
    std::int64_t block = 0;
    if (!within(step.count, 0, kMost) || step.stride < 1 ||
        !within(step.phase, 0, step.period - 1) ||
        __builtin_mul_overflow(step.period, step.stride, &block) || step.count % block != 0)
      return invalid(fmt::format("every {} of {} elements", step.period, step.count));
    return check(step.at, step.count * byte_width(dtype));
  }

  const Program& program_;
  std::size_t at_ = 0;
  std::vector<Region> regions_;
  std::vector<std::uint32_t> region_of_;  // by step
};

}  // namespace

Expected<Done> check(const Program& program) {
  return Check(program).run();
}

}  // namespace tessera::runtime
