#include "tessera/runtime/plan.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

namespace tessera::runtime {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian");

// Serialized fields of each part of a program, shared by reading and writing: `archive(a, b, …)`
// visits the fields in order.

template <class Archive, class T>
concept Of = std::is_same_v<std::remove_const_t<Archive>, T>;

void fields(auto& archive, Of<Value> auto& value) {
  archive(value.name, value.home, value.dtype, value.shape, value.offset, value.bytes);
}
void fields(auto& archive, Of<Address> auto& address) {
  archive(address.value, address.offset, address.per_round);
}
void fields(auto& archive, Of<step::Launch::Patch> auto& patch) {
  archive(patch.word, patch.at, patch.bytes);
}
void fields(auto& archive, Of<step::Launch> auto& launch) {
  archive(launch.kernel, launch.grid[0], launch.grid[1], launch.grid[2], launch.words,
          launch.patches);
}
void fields(auto& archive, Of<step::Copy> auto& copy) {
  archive(copy.from, copy.to, copy.bytes);
}
void fields(auto& archive, Of<step::Host> auto& host) {
  archive(host.text, host.inputs, host.outputs);
}
void fields(auto& archive, Of<step::Branch> auto& branch) {
  archive(branch.condition, branch.otherwise);
}
void fields(auto& archive, Of<step::Jump> auto& jump) {
  archive(jump.target);
}
void fields(auto& archive, Of<step::Loop> auto& loop) {
  archive(loop.rounds, loop.end, loop.backwards);
}
void fields(auto& archive, Of<step::Swap> auto& swap) {
  archive(swap.memory, swap.bytes, swap.file_offset, swap.out);
}
void fields(auto& archive, Of<step::CheckIndices> auto& check) {
  archive(check.at, check.count, check.low, check.high, check.stride, check.period, check.phase);
}
void fields(auto& archive, Of<cuda::TensorMap> auto& map) {
  archive(map.word, map.column, map.width, map.box, map.offset, map.extents, map.strides);
  if (archive.version() >= 6) archive(map.order);
}
void fields(auto& archive, Of<Program::Kernel> auto& kernel) {
  archive(kernel.name, kernel.entry, kernel.scratch_bytes, kernel.threads, kernel.programs,
          kernel.persistent, kernel.maps);
  if (archive.version() >= 6) archive(kernel.is_whole);
}
void fields(auto& archive, Of<Program::Note> auto& note) {
  archive(note.what, note.flops, note.bytes);
  if (archive.version() >= 5) archive(note.strategy, note.names);
}
void fields(auto& archive, Of<Program> auto& program) {
  archive(program.name, program.architecture, program.features, program.values, program.inputs,
          program.outputs, program.kernels, program.texts, program.steps, program.notes,
          program.arena_bytes, program.swap_bytes);
}

/// The last enumerator.
constexpr Value::Home last_of(Value::Home) {
  return Value::Home::Boxed;
}
constexpr DType last_of(DType) {
  return static_cast<DType>(kDTypeCount - 1);
}

class Writer {
 public:
  void operator()(const auto&... parts) { (write(parts), ...); }

  static constexpr std::uint32_t version() { return kPlanVersion; }

  std::string out;

 private:
  template <class T>
  void write(const T& part) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>)
      out.append(reinterpret_cast<const char*>(&part), sizeof part);
    else
      fields(*this, part);
  }
  void write(const std::string& text) {
    write(static_cast<std::uint64_t>(text.size()));
    out += text;
  }
  template <class T>
  void write(const std::vector<T>& list) {
    write(static_cast<std::uint64_t>(list.size()));
    for (const T& element : list) write(element);
  }
  void write(const Step& step) {
    write(static_cast<std::uint8_t>(step.index()));
    std::visit([&](const auto& what) { fields(*this, what); }, step);
  }
};

/// Deserializer; after the first invalid field, it reads nothing more.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::uint32_t version)
      : left_(bytes), version_(version) {}

  void operator()(auto&... parts) { (read(parts), ...); }

  std::uint32_t version() const { return version_; }

  bool whole() const { return !failed_ && left_.empty(); }

 private:
  template <class T>
  void read(T& part) {
    if constexpr (std::is_same_v<T, bool>) {
      std::uint8_t byte = 0;
      read(byte);
      part = byte == 1;
      if (byte > 1) failed_ = true;
    } else if constexpr (std::is_enum_v<T>) {
      std::underlying_type_t<T> number = 0;
      read(number);
      if (number <= static_cast<decltype(number)>(last_of(T{})))
        part = static_cast<T>(number);
      else
        failed_ = true;
    } else if constexpr (std::is_arithmetic_v<T>) {
      if (failed_ || left_.size() < sizeof part) {
        failed_ = true;
        return;
      }
      std::memcpy(&part, left_.data(), sizeof part);
      left_ = left_.subspan(sizeof part);
    } else {
      fields(*this, part);
    }
  }
  void read(std::string& text) {
    std::uint64_t size = 0;
    read(size);
    if (failed_ || size > left_.size()) {
      failed_ = true;
      return;
    }
    text.assign(reinterpret_cast<const char*>(left_.data()), size);
    left_ = left_.subspan(size);
  }
  template <class T>
  void read(std::vector<T>& list) {
    std::uint64_t size = 0;
    read(size);
    // Allocates in proportion to the bytes that exist, whatever the stored size says.
    list.reserve(std::min<std::uint64_t>(size, failed_ ? 0 : left_.size() / sizeof(T)));
    for (std::uint64_t i = 0; i < size && !failed_; ++i) read(list.emplace_back());
  }
  template <std::size_t... Index>
  void emplace(Step& step, std::size_t index, std::index_sequence<Index...>) {
    ((index == Index ? fields(*this, step.emplace<Index>()) : void()), ...);
  }
  void read(Step& step) {
    std::uint8_t index = 0;
    read(index);
    constexpr std::size_t kKinds = std::variant_size_v<Step>;
    if (index >= kKinds)
      failed_ = true;
    else
      emplace(step, index, std::make_index_sequence<kKinds>());
  }

  std::span<const std::byte> left_;
  std::uint32_t version_;
  bool failed_ = false;
};

}  // namespace

std::string encode_plan(const Program& program) {
  Writer writer;
  fields(writer, program);
  return std::move(writer.out);
}

Expected<Program> decode_plan(std::span<const std::byte> bytes, std::uint32_t version) {
  Program program;
  Reader reader(bytes, version);
  fields(reader, program);
  if (!reader.whole())
    return Diagnostic{.id = "program-malformed",
                      .message = "the plan cannot be read",
                      .help = "compile the model again"};
  return program;
}

}  // namespace tessera::runtime
