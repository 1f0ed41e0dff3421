#include "tessera/tile/gpu/ahead.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "tessera/tile/passes/rewrite.h"

namespace tessera::tile::gpu {
namespace {

bool is_multiple(const Planned& planned, ValueId id, std::int64_t of) {
  const Operation* op = planned.maker(id);
  if (op == nullptr) return false;
  const auto is = [&](ValueId in) { return is_multiple(planned, in, of); };
  if (op->code == Code::Const) return op->literal.integer % of == 0;
  if (op->code != Code::Map) return false;
  switch (op->function) {
    case Function::Mul: return is(op->in[0]) || is(op->in[1]);
    case Function::Add:
    case Function::Sub:
    case Function::Rem: return is(op->in[0]) && is(op->in[1]);
    default: return false;
  }
}

/// The load in the loop whose tile a value is, as it is or turned or without axes of one element.
Decided<OpId> loaded_from(const Planned& planned, const Operation& loop, ValueId id) {
  while (const Operation* op = planned.maker(id)) {
    if (!planned.made_in(loop, id)) return No{"it is made before the loop"};
    if (op->code == Code::Vload) return *planned.definitions[id];
    const Extents &from = planned.type(op->in[0]).shape, &to = planned.type(id).shape;
    const bool turned = op->code == Code::Permute && from.size() == 2;
    // The rows of a box, one after the other; or the last two axes, where others have one element.
    const bool squeezed = op->code == Code::Reshape && to.size() >= 2 && from.size() > 2 &&
                          (to.back() == from.back() ||
                           (to.size() == 2 && std::equal(to.begin(), to.end(), from.end() - 2)));
    if (!turned && !squeezed) return No{"it is computed"};
    if (planned.uses[id] != 1) return No{"others read it too"};
    id = op->in[0];
  }
  return No{"it is carried by the loop"};
}

/// Whether a factor lies in memory as products of bytes read it, which cannot be turned: row by row
/// along k, with enough of k for an instruction.
bool runs_along_k(const Planned& planned, const Operation& dot, std::size_t side) {
  const std::size_t k = side == 0 ? 1 : 0;
  ValueId id = dot.in[side];
  if (planned.type(id).shape[k] < k_step(Product::Byte)) return false;
  bool turned = false;
  for (const Operation* op = planned.maker(id); op->code != Code::Vload; op = planned.maker(id)) {
    turned = turned != (op->code == Code::Permute && op->ints[0] == 1);
    id = op->in[0];
  }
  const Type& view = planned.type(planned.maker(id)->in[0]);
  return (contiguous_axis(view) == view.rank() - 1) == ((k == 1) != turned);
}

Decided<Ring> ring_of(const Planned& planned, const Operation& loop, OpId id, int reads) {
  const Operation& load = planned.kernel.ops[id];
  const Type &view = planned.type(load.in[0]), &tile = planned.type(load.out[0]);
  const std::size_t rank = tile.shape.size();
  const int width = byte_width(tile.dtype);
  if (rank < 2) return No{"it has one axis"};
  if (reads != planned.uses[load.out[0]]) return No{"others read it too"};
  if (planned.made_in(loop, load.in[0])) return No{"its view is made in the loop"};
  if (load.literal.number != 0 || std::signbit(load.literal.number) || load.literal.integer != 0)
    return No{"it is not 0 outside of its view"};
  Ring ring{.load = id, .column = rank - 1};
  if (view.strides[ring.column] != 1) --ring.column;
  if (view.strides[ring.column] != 1) return No{"no neighbours are known to lie side by side"};
  // The rows of a matrix that lies column by column are one axis.
  const std::int64_t columns = tile.shape[ring.column], rows = tile.count() / columns;
  if (ring.column != rank - 1 && tile.shape.back() != rows)
    return No{"its columns lie side by side, and it has more than two axes"};
  constexpr std::int64_t kLeast = 16;
  if (rows < kLeast || columns < kLeast) return No{"it has fewer than 16 rows or columns"};
  if (columns * width % kChunk != 0) return No{"its rows are no multiple of 16 bytes"};
  // Rows are numbered by bits: those of several axes are one after the other without gaps.
  std::int64_t held = 1;
  for (std::size_t axis = 0; axis < rank; ++axis)
    if (axis != ring.column) held *= held_extent(tile.shape[axis]);
  const bool one_axis = std::count(tile.shape.begin(), tile.shape.end(), rows) > 0;
  if (held != rows && !one_axis) return No{"its rows are of several axes, no powers of two"};
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const Course course = course_of(planned, loop, load.in[1 + axis]);
    if (course == Course::Unknown) return No{"its places are not known ahead"};
    const auto gap = planned.bounds.gap(load, axis);
    ring.inside.push_back(gap && planned.bounds.not_negative(*gap) &&
                          planned.bounds.begins_inside(load, axis));
    // Whether 16 bytes fit is asked once, before the loop.
    if (axis == ring.column && course == Course::Known &&
        !is_multiple(planned, load.in[1 + axis], kChunk / width))
      return No{"16 bytes may not fit in every round"};
  }
  ring.panels = {.column_axis = ring.column == rank - 1 ? 1 : 0,
                 .rows = held,
                 .columns = held_extent(columns),
                 .width = width};
  return ring;
}

// A product whose sums nobody reads until the loop ends need not be done before the next round
// begins, if what it reads stays where it is for so long: in the ring.
std::set<OpId> find_pending(const Planned& planned, const Operation& loop, const Ahead& ahead) {
  std::set<OpId> found;
  const Region& body = loop.regions[0];
  const std::vector<ValueId>& yielded = yields(planned.kernel, body);
  const auto in_ring = [&](ValueId in) {
    const Decided<OpId> load = loaded_from(planned, loop, in);
    return load && std::any_of(ahead.rings.begin(), ahead.rings.end(),
                               [&](const Ring& ring) { return ring.load == *load; });
  };
  for (const OpId id : body.ops) {
    const Operation& dot = planned.kernel.ops[id];
    if (dot.code != Code::Dot || !planned.plan.by_warpgroups(dot)) continue;
    for (std::size_t i = 0; i < yielded.size(); ++i) {
      const ValueId carried = body.params[i + 1];
      if (yielded[i] == dot.out[0] && dot.in[2] == carried && planned.uses[dot.out[0]] == 1 &&
          planned.uses[carried] == 1 && planned.type(dot.out[0]).dtype == DType::F32 &&
          in_ring(dot.in[0]) && in_ring(dot.in[1]) &&
          planned.home(loop.out[i]) == planned.home(dot.out[0]))
        found.insert(id);
    }
  }
  // Waiting for one is waiting for all before it: several would have to be counted apart.
  return found.size() == 1 ? found : std::set<OpId>{};
}

}  // namespace

Course course_of(const Planned& planned, const Operation& loop, ValueId id) {
  const std::vector<ValueId>& params = loop.regions[0].params;
  if (id == params[0]) return Course::Linear;
  const Operation* op = planned.maker(id);
  if (op == nullptr) {
    const bool carried = std::find(params.begin(), params.end(), id) != params.end();
    return carried ? Course::Unknown : Course::Fixed;
  }
  if (!planned.made_in(loop, id) || op->code == Code::Const) return Course::Fixed;
  if (!planned.type(id).is_scalar() ||
      (op->code != Code::Map && op->code != Code::Hint && op->code != Code::Cast))
    return Course::Unknown;
  Course course = Course::Fixed;
  int vary = 0;
  for (const ValueId in : op->in) {
    const Course of = course_of(planned, loop, in);
    course = std::max(course, of);
    vary += of != Course::Fixed ? 1 : 0;
  }
  if (course != Course::Linear) return course;
  const bool sum =
      op->code == Code::Map && (op->function == Function::Add || op->function == Function::Sub);
  const bool multiple = op->code == Code::Map && op->function == Function::Mul && vary == 1;
  const bool same =
      op->code == Code::Hint || (op->code == Code::Cast && planned.type(id).dtype == DType::I64 &&
                                 planned.type(op->in[0]).dtype == DType::I32);
  return sum || multiple || same ? Course::Linear : Course::Known;
}

Decided<Ahead> copies_ahead(const Planned& planned, const Operation& loop, int stages) {
  if (stages < 2) return No{"there is no room for two stages"};
  if (any_op(planned.kernel, loop, writes_memory)) return No{"it writes"};
  std::string why;
  const auto remember = [&](ValueId of, const std::string& reason) {
    const std::string& name = planned.kernel.values[of].name;
    why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", name.empty() ? "an operand" : name,
                       reason);
  };
  std::map<OpId, int> reads;  // of loads, by products
  for (const OpId id : loop.regions[0].ops) {
    const Operation& dot = planned.kernel.ops[id];
    if (dot.code != Code::Dot) continue;
    const Product product = planned.plan.means(dot);
    if (product == Product::Scalars) continue;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const Decided<OpId> load = loaded_from(planned, loop, dot.in[side]);
      const bool fits = !load || product != Product::Byte || runs_along_k(planned, dot, side);
      if (load && fits) ++reads[*load];
      if (!fits) remember(dot.in[side], "bytes do not run along k");
      if (!load) remember(dot.in[side], load.why_not());
    }
  }
  Ahead ahead;
  for (const auto& [load, count] : reads) {
    const Decided<Ring> ring = ring_of(planned, loop, load, count);
    if (!ring) {
      remember(planned.kernel.ops[load].out[0], ring.why_not());
      continue;
    }
    ahead.rings.push_back(*ring);
    ahead.rings.back().offset = ahead.bytes;
    ahead.bytes += shared_room(ring->panels.bytes());
  }
  if (ahead.rings.empty()) return No{why.empty() ? "it has no product by tensor cores" : why};
  // One more stage is in use while a product goes on.
  if (stages > 2) ahead.pending = find_pending(planned, loop, ahead);
  return ahead;
}

}  // namespace tessera::tile::gpu
