#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "tessera/runtime/cuda/tensor_map.h"
#include "tessera/support/bytes.h"
#include "tessera/support/dtype.h"

namespace tessera::runtime {

/// Of weights, of the arena, and of the caller's memory.
inline constexpr std::int64_t kAlignment = 64;

/// Of every kernel for a GPU.
inline constexpr const char* kGpuEntry = "tessera_kernel";

/// A compiled model: flat buffers and flat steps, all sizes and offsets decided. Knows no compiler.
///
/// What is reached by its index (values, kernels, texts, steps) is checked once, when a program is
/// loaded (check()), and not while it runs. docs/program.md describes steps and file.

/// A tensor of the program, as it lies in memory: row by row, without gaps. Several may share
/// memory.
struct Value {
  enum class Home : std::uint8_t {
    Input,   // the caller's; `offset` says which
    Output,  // the caller's; `offset` says which
    Weight,  // at `offset` of the weights
    Arena,   // at `offset` of the arena, which each session has
    File,    // at `offset` of the session's temporary file, which is mapped
    Boxed,   // kept by host steps alone: text, sequences, sizes that depend on data
  };
  std::string name = {};
  Home home = Home::Arena;
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape = {};
  std::int64_t offset = 0;
  std::int64_t bytes = 0;  // at least what the elements take; just that where it is the caller's

  bool operator==(const Value&) const = default;
};

using ValueIndex = std::uint32_t;

/// A place in the memory of a value, which may move on with each round of the innermost loop.
struct Address {
  ValueIndex value = 0;
  std::int64_t offset = 0;     // bytes
  std::int64_t per_round = 0;  // bytes
  bool operator==(const Address&) const = default;
};

namespace step {

/// Runs the programs of a grid. `words` are the arguments as compiled kernels read them (an
/// address, then extents and strides of a view); those that are addresses are filled in before each
/// run.
struct Launch {
  struct Patch {
    std::uint32_t word = 0;
    Address at = {};
    std::int64_t bytes = 0;  // that the kernel may touch from there on
    bool operator==(const Patch&) const = default;
  };
  std::uint32_t kernel = 0;
  std::array<std::int64_t, 3> grid = {1, 1, 1};
  std::vector<std::uint64_t> words = {};
  std::vector<Patch> patches = {};
  bool operator==(const Launch&) const = default;
};

struct Copy {
  Address from = {}, to = {};
  std::int64_t bytes = 0;
  bool operator==(const Copy&) const = default;
};

/// What has no machine code: a graph in its text form, which the session's host runs.
struct Host {
  std::uint32_t text = 0;
  std::vector<ValueIndex> inputs = {}, outputs = {};
  bool operator==(const Host&) const = default;
};

/// Goes on at step `otherwise` where the condition, one bool, is false. This and Jump stay in the
/// loop they are in; its `end` begins the next round.
struct Branch {
  ValueIndex condition = 0;
  std::uint32_t otherwise = 0;
  bool operator==(const Branch&) const = default;
};

struct Jump {
  std::uint32_t target = 0;
  bool operator==(const Jump&) const = default;
};

/// The steps up to `end` (itself not), `rounds` times; loops may be nested. Backwards, addresses
/// begin with the last round.
struct Loop {
  std::int64_t rounds = 0;
  std::uint32_t end = 0;
  bool backwards = false;
  bool operator==(const Loop&) const = default;
};

/// Moves a part of the arena into the session's temporary file, or back.
struct Swap {
  Address memory = {};
  std::int64_t bytes = 0, file_offset = 0;
  bool out = true;
  bool operator==(const Swap&) const = default;
};

/// Looks whether indices are in range, before a kernel that reads or writes there. Of `count`
/// elements, those are looked at whose number, divided by `stride`, has the remainder `phase` by
/// `period`. On a GPU, those alone that the caller gives.
struct CheckIndices {
  Address at = {};
  std::int64_t count = 0;
  std::int64_t low = 0, high = 0;  // both inclusive
  std::int64_t stride = 1, period = 1, phase = 0;
  bool operator==(const CheckIndices&) const = default;
};

}  // namespace step

using Step = std::variant<step::Launch, step::Copy, step::Host, step::Branch, step::Jump,
                          step::Loop, step::Swap, step::CheckIndices>;

struct Program {
  struct Kernel {
    std::string name = {};
    std::int64_t entry = 0;          // in the image
    std::int64_t scratch_bytes = 0;  // on a GPU: of shared memory
    std::int64_t threads = 0;        // on a GPU: of a block
    /// On a GPU: of the grid, along its first axis, in one block. `loops`: blocks go on with
    /// further ones. Where either is so, a last word says how many there are along it.
    std::int64_t programs = 1;
    bool loops = false;
    /// On a GPU, where blocks go on: after that word, one that is 1 if all of these could be made,
    /// and the maps.
    std::vector<cuda::TensorMap> maps = {};
    bool operator==(const Kernel&) const = default;
  };
  /// What a step does, for people, and how much (0: not known). Sessions leave little work on one
  /// thread.
  struct Note {
    std::string what = {};
    double flops = 0, bytes = 0;
    bool operator==(const Note&) const = default;
  };

  std::string name = {};
  /// Of the code: as machine::to_string has it, or of a GPU: `sm_80`, `sm_90a`.
  std::string architecture = {};
  std::vector<std::string> features = {};  // that the code uses
  std::vector<Value> values = {};
  /// What the caller gives and gets: of home Input or Output, in this order, or Boxed.
  std::vector<ValueIndex> inputs = {}, outputs = {};
  std::vector<Kernel> kernels = {};
  std::vector<std::string> texts = {};
  std::vector<Step> steps = {};
  std::vector<Note> notes = {};  // one per step
  std::int64_t arena_bytes = 0, swap_bytes = 0;
  /// Machine code without imports, position-independent; for a GPU, texts of PTX, each with an
  /// entry kGpuEntry and ended by a zero.
  Bytes image = {};
  Bytes weights = {};  // aligned to kAlignment

  bool is_for_gpu() const { return architecture.starts_with("sm_"); }
};

}  // namespace tessera::runtime
