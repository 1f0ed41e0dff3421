#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/expr/definition.h"
#include "tessera/expr/shape.h"
#include "tessera/support/expected.h"

namespace tessera::tile {

/// One output of a definition with static sizes (Halide: Func). A later stage reads an earlier one
/// by the name of its output.
struct Stage {
  std::vector<tessera::Operand> operands = {};
  Output output;
  Sizes sizes = {};

  const std::string& name() const { return output.name; }
};
using Stages = std::vector<Stage>;

/// Stages of the outputs of a definition, for inputs of these shapes.
Expected<Stages> stages_of(const Definition& definition, const std::vector<Shape>& inputs);
/// Stages with sizes that are solved already; all have to be numbers.
Expected<Stages> stages_of(const Definition& definition, const Sizes& sizes);

/// Appends a definition as a further stage that reads the stages before it.
Expected<Stages> then(Stages stages, const Definition& definition,
                      const std::vector<tessera::Operand>& inputs);

/// A loop of a scheduled stage.
struct Loop {
  enum class Kind : std::uint8_t { Serial, Parallel, Vector, Unrolled };

  std::string name;
  std::int64_t extent = 1;
  bool reduces = false;  // iterates over a reduction axis
  Kind kind = Kind::Serial;
  std::int64_t pipeline_depth = 0;  // pipeline depth; 0: not pipelined
  bool operator==(const Loop&) const = default;
};

/// Loop nest of one stage, outermost first; vectorized loops come last.
struct Nest {
  /// Index variable of the stage as an expression over the loops.
  struct Axis {
    std::string name;
    std::int64_t extent = 1;
    bool reduces = false;
    Scalar at;
  };
  struct Place {
    std::string what, loop;
    bool operator==(const Place&) const = default;
  };

  std::string stage;
  std::vector<Loop> loops = {};
  std::vector<Axis> axes = {};
  /// Guards: expressions that have to be in range for a position to be computed, for a loop that
  /// was split with a remainder or skewed. Named like the index variable where it is one, else
  /// unnamed.
  std::vector<Axis> guards = {};
  bool tensorized = false;
  std::vector<Place> reads = {};  // operands, and the loops in which they are loaded
  std::optional<Place> at = {};   // the stage and the loop that it is computed in, if in one
  std::optional<std::string> write = {};  // the loop in which the result is stored, if one is set

  const Loop* find(std::string_view loop) const;
};

/// One scheduling step, an application of a primitive: `split(i, 64)`.
struct Step {
  enum class Primitive : std::uint8_t {
    Split,       // (i, n)         i = i.o * n + i.i
    Cover,       // (i, n)         as Split, with the last part shifted back so that it is whole
    Tile,        // (i, j, n, m)   splits both: i.o j.o i.i j.i
    Reorder,     // (i, j, …)      these loops in this order, in the positions that they have
    Fuse,        // (i, j)         one loop i_j for two consecutive loops
    Fission,     // (i)            the stages that are computed in the loop get loops of their own
    Skew,        // (i, j, n)      j.s = j + n*i
    Unroll,      // (i)            straight-line code
    Vectorize,   // (i)            an axis of the tile
    Parallel,    // (i)            programs of the grid
    ComputeAt,   // (s, i)         stage s is computed in a loop of the stage that reads it
    CacheRead,   // (x, i)         operand x is loaded in the loop
    CacheWrite,  // (i)           the result is collected in a tile and stored in the loop
    Pipeline,    // (i, n)        software pipelining with n iterations in flight
    Tensorize,   // (s)           the vectors of stage s are a matrix multiplication
  };
  Primitive primitive = Primitive::Split;
  std::vector<std::string> names = {};
  std::vector<std::int64_t> numbers = {};
  bool operator==(const Step&) const = default;
};

/// Schedule of stages, as in Halide and TVM: the list of primitives that were applied, and the
/// resulting loops. An immutable value; every primitive returns a new one. A primitive that would
/// change the result is a diagnostic, `schedule-illegal`. docs/schedules.md specifies each.
///
/// Loops are named by the index variables; where there are several stages, `stage/loop` tells
/// them apart.
class Schedule {
 public:
  /// Default schedule: every loop serial, in the order of the definition, reduction loops last.
  static Expected<Schedule> of(Stages stages);

  const Stages& stages() const { return *stages_; }
  const std::vector<Nest>& nests() const { return nests_; }
  const std::vector<Step>& steps() const { return steps_; }
  const Nest& nest(std::string_view stage) const;

  Expected<Schedule> apply(const Step& step) const;
  Expected<Schedule> apply(const std::vector<Step>& steps) const;

  Expected<Schedule> split(const std::string& loop, std::int64_t factor) const;
  Expected<Schedule> cover(const std::string& loop, std::int64_t factor) const;
  Expected<Schedule> tile(const std::string& i, const std::string& j, std::int64_t n,
                          std::int64_t m) const;
  Expected<Schedule> reorder(const std::vector<std::string>& loops) const;
  Expected<Schedule> fuse(const std::string& outer, const std::string& inner) const;
  Expected<Schedule> fission(const std::string& loop) const;
  Expected<Schedule> skew(const std::string& i, const std::string& j, std::int64_t factor) const;
  Expected<Schedule> unroll(const std::string& loop) const;
  Expected<Schedule> vectorize(const std::string& loop) const;
  Expected<Schedule> parallel(const std::string& loop) const;
  Expected<Schedule> compute_at(const std::string& stage, const std::string& loop) const;
  Expected<Schedule> cache_read(const std::string& operand, const std::string& loop) const;
  Expected<Schedule> cache_write(const std::string& loop) const;
  Expected<Schedule> pipeline(const std::string& loop, std::int64_t rounds) const;
  Expected<Schedule> tensorize(const std::string& stage) const;

  /// Hash of the steps; the same on every machine and in every run.
  std::uint64_t hash() const;

 private:
  friend class Primitives;
  std::shared_ptr<const Stages> stages_;
  std::vector<Nest> nests_;
  std::vector<Step> steps_;
};

/// Prints a schedule, one line per step; the text parses back.
std::string to_text(const std::vector<Step>& steps);
inline std::string to_text(const Schedule& schedule) {
  return to_text(schedule.steps());
}
Expected<std::vector<Step>> parse_schedule(std::string_view text, const std::string& file = {});
/// Prints the loops for inspection: one line each, indented.
std::string loops_text(const Schedule& schedule);

/// The reduction that is scheduled as loops: the only fold that the output's value consists of, if
/// its extents are numbers; null if there is none.
std::shared_ptr<const Fold> main_fold(const Stage& stage);
/// Numeric value of a size expression, if it has one.
std::optional<std::int64_t> number_of_size(const Scalar& extent, const Sizes& sizes);
/// The two factors that the main reduction multiplies and sums (a contraction), if that is what it
/// computes.
std::optional<std::pair<Scalar, Scalar>> product_of(const Fold& fold, Sort sort = Sort::Value);
/// Loops that an expression over axes depends on.
std::vector<std::string> loops_of(const Nest& nest, const Scalar& scalar);

}  // namespace tessera::tile
