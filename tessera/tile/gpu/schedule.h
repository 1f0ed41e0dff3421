#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tessera/support/expected.h"
#include "tessera/tile/gpu/planned.h"
#include "tessera/tile/gpu/roles.h"
#include "tessera/tile/gpu/rows.h"
#include "tessera/tile/passes/cut_rows.h"

namespace tessera::tile::gpu {

/// What the GPU has, what who launches knows, and what is wished for in place of a choice.
struct Options {
  bool warpgroups = true;                 // can multiply together: Hopper
  bool tf32 = false;                      // products of f32 may be rounded so
  std::int64_t shared_bytes = 227 << 10;  // that a block may have
  /// Copies of a loop's operands that are in flight at once; fewer where shared memory is short;
  /// up to `more_stages` where two blocks still find room in a multiprocessor.
  int stages = 4, more_stages = 0;
  bool loops = false;  // blocks may go on with further programs
  bool roles = true;   // then, some threads may copy for the others
  bool maps = false;   // and have the GPU copy boxes
  /// Of kernels without products; as rows_of says where it is 0, for `rows_ahead` -1.
  int bytes_per_thread = 0, rows_ahead = -1, together = 0, registers = 0;
  /// Whether rows of 16-bit numbers wait packed; -1: as rows_of says.
  int packed = -1;
  /// Elements of the parts that rows are read in, 0: as rows_of says; and what is kept of a row in
  /// shared memory, -1: as rows_of says.
  std::int64_t part = 0, keep_bytes = -1;
};

/// How blocks share the programs of the grid.
struct Shape {
  int programs = 1;     // of the kernel in one block, along axis 0: each has a warp
  int together = 1;     // of the grid in one program of the kernel (coarsen)
  bool loops = false;   // a block goes on with further programs of the grid
  int ahead = 1;        // of programs whose loads have begun, besides the one that runs
  bool rows = false;    // straight code with reductions
  bool packed = false;  // 16-bit rows wait for a reduction as they lie in memory
  /// The kernel is what is done with parts of rows, which are read in several passes.
  const CutRows* cut = nullptr;
  std::int64_t keep_bytes = 0;  // of a row, in shared memory
  /// Some more threads copy for the others.
  bool roles = false;
  std::int64_t own_bytes = 0;  // of shared memory, of each team that computes
  int stages = 0;              // of rings; fewer than two: nothing is copied ahead
  int maps = 0;                // of tensors: the function's last parameters
  /// Then a parameter after the kernel's is how many programs there are in all.
  bool counted() const { return programs > 1 || together > 1 || loops || roles; }
  /// Of parameters between the kernel's and the maps: with maps, one says whether they are made.
  int words() const { return (counted() ? 1 : 0) + (maps > 0 ? 1 : 0); }
};

/// All that is decided of a kernel before its code is written. It stays where it is: its parts
/// point at its kernel.
struct Scheduled {
  Scheduled() = default;
  Scheduled(const Scheduled&) = delete;
  Scheduled& operator=(const Scheduled&) = delete;

  Kernel kernel = {};  // simplified; with rows of several programs, coarsened; or of parts of rows
  std::optional<CutRows> cut = {};
  Rows rows = {};
  std::optional<Plan> plan = {};
  std::optional<Planned> planned = {};
  Decided<Roles> roles = No{"no product"};
  Shape shape = {};
  std::int64_t shared_bytes = 0;  // of a block; known once code has been written

  /// Of a block.
  int threads() const;
};

/// Decides. What shared memory allows is told by the code alone: `fit` follows.
Expected<std::unique_ptr<Scheduled>> schedule(const Kernel& kernel, const Options& options);

/// What the code of a shape takes of shared memory.
struct Taken {
  std::int64_t bytes = 0, own_bytes = 0;
  bool exchanges = false;  // threads of different warps meet there
};

/// Whether the code that was written fits; if not, changes the shape that it is to be written in.
/// A kernel that fits in none is a diagnostic: `ptx-shared-memory`.
Expected<bool> fit(Scheduled& scheduled, const Options& options, const Taken& taken);

/// The kernel in form T, with what was decided and why as comments.
std::string to_text(const Scheduled& scheduled);

}  // namespace tessera::tile::gpu
