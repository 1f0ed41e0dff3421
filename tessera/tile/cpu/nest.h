#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/machine/machine.h"
#include "tessera/tile/kernel.h"

namespace tessera::tile::cpu {

/// Form S on a CPU: the operations of a kernel arranged into loop nests.
///
/// Most tile values never exist as a whole: they are computed element by element inside of the nest
/// that uses them. Only what crosses a reduction, a transpose, a dot or a round of a loop is kept
/// in a scratch buffer. A softmax of a row becomes three nests and one buffer:
///
///   nest [1, 1024] lanes 1 x 4 x 8          m = reduce(t)
///   nest [1, 1024] lanes 1 x 4 x 8          e -> buffer 0, s = reduce(e)
///   nest [1, 1024] lanes 1 x 4 x 8          vstore(e / s)

/// Scratch memory that holds a tile, row by row.
struct Buffer {
  DType dtype = DType::F32;
  Extents shape = {};
  std::int64_t offset = 0;  // bytes from the start of the scratch memory
};

/// How one axis of a value is reached from the axes of a nest: position + offset of one of them, or
/// `offset` alone.
struct AxisMap {
  int axis = -1;
  std::int64_t offset = 0;
  auto operator<=>(const AxisMap&) const = default;
};
using IndexMap = std::vector<AxisMap>;  // one per axis of the value

/// What a nest does at each position of its space.
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

struct Nest {
  Extents space = {};
  std::optional<int> fold = {};  // the axis along which roots reduce or scan
  int lane = -1;                 // the axis whose positions go into vectors; -1: none
  int width = 1;                 // elements of a vector
  int unroll = 1;                // vectors at a time
  std::vector<Root> roots = {};
};

/// A matrix that a dot reads: memory of a view as it is, or a buffer.
struct DotSource {
  std::optional<OpId> vload = {};  // its tile is the matrix,
  IndexMap map = {};               // whose view axes follow from (row, column)
  std::int64_t panel = 0;    // columns of a panel, where the view is packed: [panel, k, column] or,
  std::int64_t k_group = 1;  // with k in groups, [panel, group, column, k in it]
  ValueId value = 0;         // otherwise: has a buffer
};

struct DotStep {
  OpId op = 0;
  DotSource a = {}, b = {};
  int out = -1;             // buffer
  bool accumulate = false;  // on what the buffer holds
  /// Stores what it makes of the sums, while they are in registers; nothing else reads the buffer.
  std::optional<Nest> finish = {};
  /// What `finish` adds to the sums before anything else, at positions of its space: products may
  /// be added to it instead, which makes them `total`.
  struct Start {
    ValueId value = 0, total = 0;
    IndexMap at = {};
  };
  std::optional<Start> start = {};
};

struct Step {
  enum class Kind : std::uint8_t { Scalar, Nest, Dot, For, While, If };
  Kind kind = Kind::Scalar;
  OpId op = 0;  // of all but Nest
  Nest nest = {};
  DotStep dot = {};
  std::vector<std::vector<Step>> bodies = {};  // one per region of the operation
};

struct Scheduled {
  Kernel kernel = {};
  std::vector<Buffer> buffers = {};
  std::vector<int> buffer_of = {};  // by value; -1: none
  std::vector<Step> steps = {};
  std::int64_t buffer_bytes = 0;
};

struct NestOptions {
  /// Arguments may share memory: what is loaded is kept before anything is stored elsewhere.
  bool overlap = false;
  /// Plain loops without vectors, for the debug mode.
  bool scalar = false;
};

Scheduled schedule(const Kernel& kernel, const machine::Machine& machine,
                   const NestOptions& options);

std::string to_text(const Scheduled& scheduled);

/// The map of an operation's first operand where `map` is that of its result, for operations that
/// only move elements along axes (Broadcast, Permute, Slice, Reshape by axes of extent 1). Nothing
/// for others.
std::optional<IndexMap> operand_map(const Kernel& kernel, const Operation& op, const IndexMap& map);

/// The identity on a space.
IndexMap identity_map(std::size_t rank);

/// The parameter that a pointer or view comes from, where that is known.
std::optional<ValueId> parameter_of(const Kernel& kernel,
                                    const std::vector<std::optional<OpId>>& definition,
                                    ValueId value);

}  // namespace tessera::tile::cpu
