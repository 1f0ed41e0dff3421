#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/machine/machine.h"
#include "tessera/tile/kernel.h"

namespace tessera::tile::cpu {

/// Loop-nest IR of the CPU back end (form S): the operations of a kernel arranged into loop nests.
///
/// Most tile values are never materialized: they are computed element by element inside of the nest
/// that uses them. Only values that cross a reduction, a transpose, a dot or an iteration of a loop
/// are kept in a scratch buffer. A softmax of a row becomes three nests and one buffer:
///
///   nest [1, 1024] lanes 1 x 4 x 8          m = reduce(t)
///   nest [1, 1024] lanes 1 x 4 x 8          e -> buffer 0, s = reduce(e)
///   nest [1, 1024] lanes 1 x 4 x 8          vstore(e / s)

/// Scratch memory that holds a tile in row-major order.
struct Buffer {
  DType dtype = DType::F32;
  Extents shape = {};
  std::int64_t offset = 0;  // bytes from the start of the scratch memory
};

/// Map from the axes of a nest to one axis of a value: position + offset along one of them, or the
/// constant `offset`.
struct AxisMap {
  int axis = -1;
  std::int64_t offset = 0;
  auto operator<=>(const AxisMap&) const = default;
};
using IndexMap = std::vector<AxisMap>;  // one per axis of the value

/// Action of a nest at each position of its iteration space.
struct Root {
  enum class Kind : std::uint8_t {
    Write,   // `value` into `buffer`, shifted by `at`
    Reduce,  // the operation's results over the nest's fold axis
    Scan,    // the same with all prefixes, into buffers
    Effect,  // Store, Vstore, Atomic, Cas
    Check,   // Assert
  };
  Kind kind = Kind::Write;
  OpId op = 0;        // of all but Write
  ValueId value = 0;  // of Write
  int buffer = -1;    // of Write
  Extents at = {};    // of Write: where its part of the buffer begins
};

/// A loop nest over an iteration space, with its vectorization and the actions of its body.
struct Nest {
  Extents space = {};
  std::optional<int> fold = {};  // the axis along which roots reduce or scan
  int lane = -1;                 // the vectorized axis; -1: none
  int width = 1;                 // elements per vector
  int unroll = 1;                // vectors per iteration
  std::vector<Root> roots = {};
};

/// Matrix operand of a dot: the memory of a view in place, or a buffer.
struct DotSource {
  std::optional<OpId> vload = {};  // its tile is the matrix,
  IndexMap map = {};               // whose view axes follow from (row, column)
  std::int64_t panel = 0;    // columns of a panel, where the view is packed: [panel, k, column] or,
  std::int64_t k_group = 1;  // with k in groups, [panel, group, column, k in it]
  ValueId value = 0;         // otherwise: has a buffer
};

/// A dot with its operands, its accumulator buffer and its fused epilogue.
struct DotStep {
  OpId op = 0;
  DotSource a = {}, b = {};
  int out = -1;             // buffer
  bool accumulate = false;  // on what the buffer holds
  /// Epilogue: computes the stored results from the accumulators in registers; nothing else reads
  /// the buffer.
  std::optional<Nest> epilogue = {};
  /// First addend of the epilogue (a bias, a residual), at positions of its space: the accumulators
  /// may start from it, which makes them `total`.
  struct Start {
    ValueId value = 0, total = 0;
    IndexMap at = {};
  };
  std::optional<Start> start = {};
};

/// A step of the scheduled kernel: a scalar operation, a loop nest, a dot, or control flow.
struct Step {
  enum class Kind : std::uint8_t { Scalar, Nest, Dot, For, While, If };
  Kind kind = Kind::Scalar;
  OpId op = 0;  // of all but Nest
  Nest nest = {};
  DotStep dot = {};
  std::vector<std::vector<Step>> bodies = {};  // one per region of the operation
};

/// A kernel in loop-nest form.
struct ScheduledKernel {
  Kernel kernel = {};
  std::vector<Buffer> buffers = {};
  std::vector<int> buffer_of = {};  // by value; -1: none
  std::vector<Step> steps = {};
  std::int64_t buffer_bytes = 0;
};

struct NestOptions {
  /// Arguments may share memory: loaded values are kept before anything is stored elsewhere.
  bool overlap = false;
  /// Plain loops without vectors, for the debug mode.
  bool scalar = false;
};

/// Arranges a kernel into loop nests for a machine.
ScheduledKernel schedule(const Kernel& kernel, const machine::Machine& machine,
                         const NestOptions& options);

/// Prints loop nests for inspection.
std::string to_text(const ScheduledKernel& scheduled);

/// Index map of an operation's first operand, given the map of its result, for operations that only
/// move elements along axes (Broadcast, Permute, Slice, Reshape by axes of extent 1); none for
/// others.
std::optional<IndexMap> operand_map(const Kernel& kernel, const Operation& op, const IndexMap& map);

/// Identity map of a space.
IndexMap identity_map(std::size_t rank);

/// Parameter that a pointer or view is derived from, where that is known.
std::optional<ValueId> parameter_of(const Kernel& kernel,
                                    const std::vector<std::optional<OpId>>& definition,
                                    ValueId value);

}  // namespace tessera::tile::cpu
