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

/// Alignment of weights, of the arena, and of the caller's memory.
inline constexpr std::int64_t kAlignment = 64;

/// Entry name of every GPU kernel.
inline constexpr const char* kGpuEntry = "tessera_kernel";

/// A tensor of the program: contiguous, row-major memory. Several may share memory.
struct Value {
  /// Memory that holds the tensor.
  enum class Home : std::uint8_t {
    Input,   // memory of the caller; `offset` is the number of the input
    Output,  // memory of the caller; `offset` is the number of the output
    Weight,  // at `offset` of the weights
    Arena,   // at `offset` of the arena of the session
    File,    // at `offset` of the session's temporary file, which is mapped
    Boxed,   // held by host steps only: text, sequences, data-dependent sizes
  };
  std::string name = {};
  Home home = Home::Arena;
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape = {};
  std::int64_t offset = 0;
  std::int64_t bytes =
      0;  // at least the size of the elements; exactly that for memory of the caller

  bool operator==(const Value&) const = default;
};

using ValueIndex = std::uint32_t;

/// Address in the memory of a value; `per_round` is its stride per iteration of the innermost loop.
struct Address {
  ValueIndex value = 0;
  std::int64_t offset = 0;     // bytes
  std::int64_t per_round = 0;  // bytes
  bool operator==(const Address&) const = default;
};

namespace step {

/// Kernel launch. `words` are the arguments as compiled kernels read them (an address, then extents
/// and strides of a view); words that are addresses are patched before each run.
struct Launch {
  struct Patch {
    std::uint32_t word = 0;
    Address at = {};
    std::int64_t bytes = 0;  // that the kernel may access from there on
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

/// Host step, without machine code: a graph in its text form, which the session's host interprets.
struct Host {
  std::uint32_t text = 0;
  std::vector<ValueIndex> inputs = {}, outputs = {};
  bool operator==(const Host&) const = default;
};

/// Conditional branch: continues at step `otherwise` where the condition, one bool, is false.
/// Branch and Jump stay in their loop; its `end` begins the next iteration.
struct Branch {
  ValueIndex condition = 0;
  std::uint32_t otherwise = 0;
  bool operator==(const Branch&) const = default;
};

struct Jump {
  std::uint32_t target = 0;
  bool operator==(const Jump&) const = default;
};

/// Loop over the steps up to `end` (exclusive), `rounds` iterations; loops may be nested.
/// Backwards, addresses start with those of the last iteration.
struct Loop {
  std::int64_t rounds = 0;
  std::uint32_t end = 0;
  bool backwards = false;
  bool operator==(const Loop&) const = default;
};

/// Moves a part of the arena to the session's temporary file (swap out), or back.
struct Swap {
  Address memory = {};
  std::int64_t bytes = 0, file_offset = 0;
  bool out = true;
  bool operator==(const Swap&) const = default;
};

/// Bounds check of indices before a kernel that gathers or scatters by them. Of `count` elements,
/// those are checked whose index, divided by `stride`, is `phase` modulo `period`. On a GPU, only
/// inputs of the caller are checked.
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

/// A compiled model: flat buffers and a flat list of steps, with all sizes and offsets decided. It
/// runs without the compiler.
///
/// Indices (of values, kernels, texts, steps) are checked once, when a program is loaded (check()),
/// and not while it runs. docs/program.md describes the steps and the file format.
struct Program {
  struct Kernel {
    std::string name = {};
    std::int64_t entry = 0;          // offset in the image
    std::int64_t scratch_bytes = 0;  // on a GPU: dynamic shared memory
    std::int64_t threads = 0;        // on a GPU: threads per block
    /// On a GPU: programs per block, along the first axis of the grid. `persistent`: blocks are
    /// persistent. In either case an additional word is the number of programs along that axis.
    std::int64_t programs = 1;
    bool persistent = false;
    /// On a GPU, for persistent blocks: TMA tensor maps, the last parameters; a word before them is
    /// 1 if all could be encoded.
    std::vector<cuda::TensorMap> maps = {};
    /// On a GPU: the driver loads the text as a whole program, and its code is not cached. Linking,
    /// which gives code that can be, ignores setmaxnreg.
    bool is_whole = false;
    bool operator==(const Kernel&) const = default;
  };
  /// Description of a step for profiles and reports, and its work (0: not known). Sessions run
  /// steps with little work on one thread.
  struct Note {
    std::string what = {};  // operators
    double flops = 0, bytes = 0;
    std::string strategy = {};            // how they are computed
    std::vector<std::string> names = {};  // ONNX nodes, the main one first
    bool operator==(const Note&) const = default;
  };

  std::string name = {};
  /// Architecture of the code: as machine::to_string has it; of a GPU: `sm_80`, `sm_90a`.
  std::string architecture = {};
  std::vector<std::string> features = {};  // CPU features that the code uses
  std::vector<Value> values = {};
  /// Inputs and outputs of the caller: of home Input or Output, in this order, or Boxed.
  std::vector<ValueIndex> inputs = {}, outputs = {};
  std::vector<Kernel> kernels = {};
  std::vector<std::string> texts = {};
  std::vector<Step> steps = {};
  std::vector<Note> notes = {};  // one per step
  std::int64_t arena_bytes = 0, swap_bytes = 0;
  /// Position-independent machine code without imports; for a GPU, one zero-terminated PTX text per
  /// kernel, each with the entry kGpuEntry.
  Bytes image = {};
  Bytes weights = {};  // aligned to kAlignment

  bool is_for_gpu() const { return architecture.starts_with("sm_"); }
};

}  // namespace tessera::runtime
