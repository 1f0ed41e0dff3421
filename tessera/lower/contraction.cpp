#include "tessera/lower/contraction.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "tessera/expr/transform.h"
#include "tessera/expr/walk.h"
#include "tessera/lower/axes.h"
#include "tessera/lower/evaluate.h"
#include "tessera/lower/gpu_tiles.h"
#include "tessera/lower/target_traits.h"
#include "tessera/tile/cpu/panels.h"
#include "tessera/tile/verify.h"

namespace tessera::lower {

using tile::Extents;
using tile::Function;
using tile::Nest;
using tile::Type;

namespace {

/// Index variables of a tensor of zero-point sums.
IndexAxes axes_of_sums(const Contraction& c, const IndexAxes& batch_of_b, const std::string& name) {
  IndexAxes axes;
  const auto stage = std::ranges::find(c.before, name, &tile::Stage::name);
  if (stage == c.before.end()) {
    axes = batch_of_b;
    axes.push_back(c.column);
    return axes;
  }
  for (const MergedAxis& axis : stage->output.axes) axes.push_back({axis.parts[0].name});
  return axes;
}

/// Applies zero points to a dot of bytes. In 32 bits, in which the result wraps anyway.
tile::ValueId with_shifts(tile::ValueId sum, const Contraction& c, const IndexAxes& batch_of_b,
                          tile::Builder& b, Evaluator& e) {
  using Id = tile::ValueId;
  const Contraction::Bytes& bytes = *c.bytes;
  const auto narrow = [&](const Scalar& scalar) {
    return e.full({.sort = Sort::Integer, .id = b.cast(e.id_of(e.evaluate(scalar)), DType::I32)});
  };
  const auto add = [&](Id shift, Id sums) { sum = b.add(sum, b.mul(shift, sums)); };
  const auto sums = [&](const std::string& name, const IndexAxes& axes) {
    std::vector<Scalar> at;
    for (const IndexAxis& axis : axes) at.push_back(index_of(axis.name));
    return narrow(Scalar(Node{node::Read{name, Sort::Integer, at, nullptr}}));
  };
  const bool shifts_a = !is_zero(bytes.a_shift), shifts_b = !is_zero(bytes.b_shift);
  if (shifts_a)
    add(narrow(bytes.a_shift), sums(bytes.b_sums, axes_of_sums(c, batch_of_b, bytes.b_sums)));
  if (shifts_b)
    add(narrow(bytes.b_shift), sums(bytes.a_sums, axes_of_sums(c, batch_of_b, bytes.a_sums)));
  if (shifts_a && shifts_b)
    add(narrow(bytes.a_shift), narrow(bytes.b_shift * Scalar(count(c.sums))));
  return sum;
}

class ContractionLowering {
 public:
  ContractionLowering(const Contraction& contraction, ContractionTiling tiling,
                      const machine::Machine& machine)
      : c_(contraction),
        by_blocks_(traits_of(machine).tiles_by_thread_blocks()),
        panels_(tiling.panels),
        tiles_(std::move(tiling.tiles)),
        b_(contraction.stage->name()),
        e_(b_, DType::F32) {
    for (const IndexAxis& axis : c_.batch)
      if (c_.known_b && axes_in(*c_.known_b).contains(axis.name)) batch_of_b_.push_back(axis);
    packings_ = packings_of(c_, batch_of_b_, panels_);
  }

  Expected<GroupCode> run(const machine::Machine& machine, GroupOptions options) {
    GroupCode code;
    if (by_blocks_) {
      BlockContractionSchedule schedule = schedule_of(tiles_);
      if (options.schedule) schedule = std::get<BlockContractionSchedule>(*options.schedule);
      block_ = schedule.block;
      code.schedule = std::move(schedule);
    } else {
      code.schedule = schedule_of({panels_, tiles_});
    }
    options.schedule.reset();  // it is that of the contraction
    for (const tile::Stage& stage : c_.before) {
      const Group alone{.stages = {stage}, .results = {stage.name()}};
      Attempt ahead;
      if (has_fold(stage.output.value)) {
        TESSERA_TRY(ahead, lower_rows(alone, machine, options));
      }
      if (!ahead) {
        TESSERA_TRY(ahead, lower_elementwise(alone, machine, options));
      }
      for (Lowered& kernel : ahead->kernels) code.kernels.push_back(std::move(kernel));
      TESSERA_TRY(const std::vector<Operand> tensors, tensors_of({stage}));
      code.temporaries.push_back(tensors.back());
    }
    TESSERA_TRY(Lowered kernel, lowered());
    code.packings = std::move(packings_);
    code.kernels.push_back(std::move(kernel));
    code.strategy =
        fmt::format("dot {}x{}x{}{}{}{}", tiles_.row_count(), tiles_.columns, tiles_.sum_count(),
                    c_.known_b ? ", weights packed" : "",
                    c_.bytes                      ? ", int8"
                    : panels_.dtype == DType::F32 ? ""
                                                  : fmt::format(", {}", to_string(panels_.dtype)),
                    c_.before.empty() ? ""
                    : c_.is_a_ahead   ? ", operand computed before"
                                      : ", padded");
    return code;
  }

 private:
  using Id = tile::ValueId;

  Expected<Lowered> lowered() {
    Lowered result;
    TESSERA_TRY_DONE(add_params());
    result.arguments = names_;
    std::vector<Nest::Axis> axes;
    for (const IndexAxes& part : {c_.batch, c_.rows, c_.sums, IndexAxes{c_.column}})
      for (const IndexAxis& axis : part)
        axes.push_back({axis.name, axis.extent, false, index_of(axis.name)});
    for (const StridedRead& read : c_.a.reads)
      if (read.box)
        for (const BoxedRead::Divided& divided : read.box->divided)
          for (const std::string& name : {divided.quotient, divided.remainder})
            axes.push_back({name, 1, false, index_of(name)});
    e_.enter(*c_.stage, axes);
    bind_programs(result.grid);
    const Id sum = product();
    store(sum);
    if (e_.error()) return *e_.error();
    TESSERA_TRY(result.kernel, b_.finish());
    result.kernel.block = block_;
    return result;
  }

  /// The tensors that are read, what is computed ahead, and the result.
  Expected<Done> add_params() {
    TESSERA_TRY(std::vector<Operand> tensors, tensors_of({*c_.stage}));
    const Operand result = tensors.back();
    tensors.pop_back();
    TESSERA_TRY(const std::vector<Operand> ahead, tensors_of(c_.before));
    tensors.insert(tensors.end(), ahead.begin(), ahead.end());
    for (const Packing& packing : packings_) {
      const Output& packed = packing.definition.outputs[0];
      tensors.push_back({packed.name, packed.dtype, packed.shape()});
    }
    tensors.push_back(result);
    const std::set<std::string> used = read_tensors();
    for (const Operand& tensor : tensors) {
      if (!used.contains(tensor.name) && tensor.name != result.name) continue;
      Extents shape;
      for (const Dim& dim : tensor.shape) shape.push_back(dim.constant().value_or(0));
      const bool viewed =
          !shape.empty() && shape.size() <= tile::kMostAxes && std::ranges::count(shape, 0) == 0;
      const DType stored = storage_of(tensor.dtype);
      const Id id =
          b_.param(viewed ? Type::view(stored, shape) : Type::pointer(stored), tensor.name);
      e_.add_memory({.operand = tensor, .shape = std::move(shape), .param = id});
      names_.push_back(tensor.name);
    }
    return Done{};
  }
  std::set<std::string> read_tensors() const {
    std::set<std::string> names;
    for (const Factor* factor : {&c_.a, &c_.b})
      for (const StridedRead& read : factor->reads) names.insert(read.operand);
    if (c_.known_b) names.insert(c_.weight + ".packed");
    if (c_.bytes) names.insert({c_.bytes->a_sums, c_.bytes->b_sums});
    std::set<const void*> seen;
    const std::function<void(const Scalar&)> walk = [&](const Scalar& part) {
      if (!seen.insert(part.id()).second) return;
      if (const auto* read = std::get_if<node::Read>(&part.node())) names.insert(read->operand);
      const auto* component = std::get_if<node::Component>(&part.node());
      if (component == nullptr || component->fold != c_.fold) for_each_part(part, walk);
    };
    walk(c_.stage->output.value);
    if (c_.bytes)
      for (const Scalar& shift : {c_.bytes->a_shift, c_.bytes->b_shift}) walk(shift);
    return names;
  }

  /// Which tile this program computes.
  void bind_programs(tile::Grid& grid) {
    Id rest = b_.pid(0);
    std::int64_t left = 1;
    const auto take = [&](std::int64_t programs) {
      left *= programs;
      if (programs == 1) return b_.index(0);
      const Id extent = b_.index(programs);
      const Id at = b_.map(Function::Rem, {rest, extent});
      rest = b_.map(Function::Div, {rest, extent});
      return at;
    };
    const auto bind_column = [&] {
      column_tile_ = take(ceil_div(c_.column.extent, tiles_.columns));
    };
    if (!tiles_.columns_outer) bind_column();
    starts_.resize(c_.rows.size());
    for (std::size_t i = c_.rows.size(); i-- > 0;) {
      const Id tile = take(ceil_div(c_.rows[i].extent, tiles_.rows[i]));
      starts_[i] = b_.mul(tile, b_.index(tiles_.rows[i]));
    }
    if (tiles_.columns_outer) bind_column();
    for (std::size_t i = c_.batch.size(); i-- > 0;) {
      const IndexAxis& axis = c_.batch[i];
      const Id at = take(axis.extent);
      e_.bind_loop(axis.name, axis.extent == 1 ? Position{} : scalar_position(at),
                   {0, axis.extent - 1});
    }
    grid = {left, 1, 1};
  }

  /// Positions from `start` on, along a new axis of the tile.
  void bind_tile(const std::string& name, Id start, std::int64_t tile, std::int64_t extent) {
    Position at = scalar_position(start);
    if (extent == 1) at = {};
    if (tile > 1) at = *at.plus(axis_position(e_.push_axis(tile)));
    e_.bind_loop(name, at, {0, ceil_div(extent, tile) * tile - 1});
  }

  /// A factor at the open axes of the tile; `axes` are the groups of index
  /// variables that it may vary with.
  Id factor(const Factor& factor, const AxisGroups& groups, const std::string& column) {
    AxisGroups all;
    for (const IndexAxis& axis : c_.batch) all.push_back({.axes = {axis}});
    all.insert(all.end(), groups.begin(), groups.end());
    if (!column.empty()) all.push_back({.axes = {c_.column}});
    Transform transform;
    transform.read = [&](const node::Read& n) -> std::optional<Scalar> {
      const auto read = std::ranges::find(factor.reads, n.operand, &StridedRead::view);
      if (read->box) return boxed(*read, n);
      Extents shape, strides;
      std::vector<Scalar> at;
      for (const AxisGroup& group : all) {
        const std::int64_t stride = read->at.factor(group.name());
        if (stride == 0) continue;
        shape.push_back(group.extent());
        strides.push_back(stride);
        at.push_back(index_of(group.name()));
      }
      const Evaluator::Memory& memory = *e_.memory(read->operand);
      Id base = b_.type(memory.param).is_view() ? b_.base(memory.param) : memory.param;
      if (read->at.base != 0) base = b_.offset(base, b_.index(read->at.base));
      const Id view =
          shape.empty() ? base : b_.view(base, Type::view(storage_of(read->dtype), shape, strides));
      e_.add_memory({.operand = {n.operand, read->dtype, {}}, .shape = shape, .param = view});
      return Scalar(Node{node::Read{n.operand, n.sort, at, nullptr}});
    };
    const Value made = e_.evaluate(transform(factor.value));
    return e_.id_of(c_.bytes ? made : e_.converted(made, Sort::Value));
  }

  Scalar boxed(const StridedRead& read, const node::Read& n) {
    for (const BoxedRead::Divided& divided : read.box->divided) {
      const Value number = e_.evaluate(divided.number);
      const Id of = e_.id_of(number), by = b_.index(divided.by);
      e_.bind_loop(divided.quotient, scalar_position(b_.map(Function::Div, {of, by})),
                   {0, number.range.high / divided.by});
      e_.bind_loop(divided.remainder, scalar_position(b_.map(Function::Rem, {of, by})),
                   {0, divided.by - 1});
    }
    const Id memory = e_.memory(read.operand)->param;
    const Id view = b_.view(b_.type(memory).is_view() ? b_.base(memory) : memory,
                            Type::view(storage_of(read.dtype), read.box->shape, read.box->strides));
    e_.add_memory(
        {.operand = {n.operand, read.dtype, {}}, .shape = read.box->shape, .param = view});
    return Scalar(
        Node{node::Read{n.operand, n.sort, read.box->at, std::make_shared<const Scalar>(0.0)}});
  }

  /// The sum of the products: [rows, columns].
  Id product() {
    const std::int64_t m = tiles_.row_count(), n = tiles_.columns, k = tiles_.sum_count();
    const DType dtype = c_.bytes ? DType::I32 : DType::F32;
    const Id sum = b_.broadcast(b_.constant(Type::scalar(dtype), 0.0), {m, n});
    std::vector<Id> starts(tiles_.sums.size(), b_.index(0));
    std::int64_t rounds = 1;
    for (const AxisGroup& group : tiles_.sums) rounds *= ceil_div(group.extent(), group.tile);
    if (rounds == 1) return step(starts, b_.index(0), sum);
    const auto loop = b_.open_for(b_.index(0), b_.index(rounds), b_.index(1), {sum});
    // Where each part of the sum begins.
    Id rest = loop.index;
    for (std::size_t i = starts.size(); i-- > 0;) {
      const std::int64_t parts = ceil_div(tiles_.sums[i].extent(), tiles_.sums[i].tile);
      if (parts == 1) continue;
      rounds /= parts;
      const Id extent = b_.index(parts);
      const Id part = rounds == 1 ? rest : b_.map(Function::Rem, {rest, extent});
      starts[i] = b_.mul(part, b_.index(tiles_.sums[i].tile));
      if (rounds > 1) rest = b_.map(Function::Div, {rest, extent});
    }
    return b_.close_for({step(starts, b_.mul(loop.index, b_.index(k)), loop.carried[0])})[0];
  }

  /// Adds the products of the part of the sum that begins at these positions.
  Id step(const std::vector<Id>& sum_starts, Id first_sum, Id sum) {
    const std::int64_t m = tiles_.row_count(), n = tiles_.columns, k = tiles_.sum_count();
    const AxisGroups& sums = tiles_.sums;
    const auto bind_sums = [&] {
      for (std::size_t i = 0; i < sums.size(); ++i)
        bind_tile(sums[i].name(), sum_starts[i], sums[i].tile, sums[i].extent());
    };
    const auto narrowed = [&](Id id, DType dtype) {
      return b_.type(id).dtype == dtype ? id : b_.cast(id, dtype);
    };
    const DType of_a = c_.bytes ? c_.bytes->a : panels_.dtype,
                of_b = c_.bytes ? c_.bytes->b : panels_.dtype;
    const auto matrix = [&](Id id, DType dtype, Extents shape) {
      // What was widened is as it lies in memory again, before it has another
      // shape.
      if (by_blocks_) id = narrowed(id, dtype);
      id = e_.full({.sort = Sort::Value, .id = id});
      while (!e_.extents().empty()) e_.pop_axis();
      e_.pop_scope();
      return b_.type(id).shape == shape ? id : b_.reshape(id, std::move(shape));
    };

    e_.push_scope();
    AxisGroups groups = row_groups(c_, tiles_.rows);
    const auto bind_rows = [&] {
      std::size_t at = 0;
      for (const AxisGroup& group : groups) {
        // The inner ones are whole: where the first begins says where the group
        // does.
        std::int64_t inner = group.extent() / group.axes[0].extent;
        bind_tile(group.name(), b_.mul(starts_[at], b_.index(inner)), group.tile, group.extent());
        at += group.axes.size();
      }
    };
    AxisGroups all = groups;
    all.insert(all.end(), sums.begin(), sums.end());
    Id left = 0;
    if (lies_along_rows(groups)) {
      bind_sums();
      bind_rows();
      // Asynchronous copies of blocks have the contiguous axis of a view last.
      if (by_blocks_)
        std::ranges::rotate(all, all.begin() + static_cast<std::ptrdiff_t>(groups.size()));
      left = b_.permute(matrix(factor(c_.a, all, {}), of_a, {k, m}), {1, 0});
    } else {
      bind_rows();
      bind_sums();
      left = matrix(factor(c_.a, all, {}), of_a, {m, k});
    }

    Id right = 0;
    if (c_.known_b) {
      right = packed(first_sum);
    } else {
      e_.push_scope();
      bind_sums();
      bind_tile(c_.column.name, b_.mul(column_tile_, b_.index(n)), n, c_.column.extent);
      right = matrix(factor(c_.b, sums, c_.column.name), of_b, {k, n});
    }
    return b_.dot(narrowed(left, of_a), narrowed(right, of_b), sum);
  }

  /// Whether a copy of a is better made along its rows: in memory the sum runs
  /// in short pieces, and neighbouring rows are neighbours or next to.
  bool lies_along_rows(const AxisGroups& rows) const {
    if (rows.empty() || tiles_.sums.size() < 2) return false;
    if (by_blocks_ && panels_.dtype != DType::F32) {
      // A box of the sum, whose rows are those of the matrix.
      const auto is_long = [](const AxisGroup& group) { return group.tile > 1; };
      return rows.size() == 1 && std::holds_alternative<node::Read>(c_.a.value.node()) &&
             !c_.a.reads[0].box && c_.a.reads[0].at.factor(rows[0].name()) == 1 &&
             std::ranges::count_if(tiles_.sums, is_long) > 1;
    }
    if (!c_.a.is_plain() || panels_.dtype != DType::F32) return false;
    const AffineIndex& at = c_.a.reads[0].at;
    const std::int64_t stride = at.factor(rows.back().name());
    return tiles_.sums.back().extent() < 16 && rows.back().tile >= 16 && stride >= 1 &&
           stride <= 2 && stride <= 2 * at.factor(tiles_.sums.back().name());
  }

  /// Panels as the matrix [k, n].
  Id packed(Id first_sum) {
    const std::int64_t n = tiles_.columns, k = tiles_.sum_count(), width = panels_.columns;
    const std::int64_t panels = ceil_div(n, width), all = ceil_div(c_.column.extent, width);
    Id panel = b_.mul(column_tile_, b_.index(panels));
    Id batch = b_.index(0);
    for (const IndexAxis& axis : batch_of_b_)
      batch = b_.add(b_.mul(batch, b_.index(axis.extent)), e_.id_of(e_.axis(axis.name)));
    panel = b_.add(panel, b_.mul(batch, b_.index(all)));
    const Id view = e_.memory(c_.weight + ".packed")->param;
    const std::int64_t group = panels_.k_group, groups = ceil_div(k, group);
    if (panels == 1 && n == width && group == 1)
      return b_.reshape(b_.vload(view, {panel, first_sum, b_.index(0)}, {1, k, n}), {k, n});
    if (group == 1) {
      const Id tile = b_.vload(view, {panel, first_sum, b_.index(0)}, {panels, k, width});
      return cut(b_.permute(tile, {1, 0, 2}), {k, panels * width}, {k, n});
    }
    const Id first = b_.map(Function::Div, {first_sum, b_.index(group)});
    const Id tile =
        b_.vload(view, {panel, first, b_.index(0), b_.index(0)}, {panels, groups, width, group});
    return cut(b_.permute(tile, {1, 3, 0, 2}), {groups * group, panels * width}, {k, n});
  }
  /// The first of a matrix, which is the tile in another shape.
  Id cut(Id tile, const Extents& matrix, const Extents& shape) {
    const Id whole = b_.reshape(tile, matrix);
    return matrix == shape ? whole : b_.slice(whole, {0, 0}, shape);
  }

  /// What is made of the sums, at the axes of the result.
  void store(Id sum) {
    for (std::size_t i = 0; i < c_.rows.size(); ++i)
      bind_tile(c_.rows[i].name, starts_[i], tiles_.rows[i], c_.rows[i].extent);
    bind_tile(c_.column.name, b_.mul(column_tile_, b_.index(tiles_.columns)), tiles_.columns,
              c_.column.extent);
    sum = b_.reshape(sum, e_.extents());
    if (c_.bytes)
      e_.set_fold(*c_.fold, {.sort = Sort::Integer,
                             .id = b_.cast(with_shifts(sum, c_, batch_of_b_, b_, e_), DType::I64),
                             .range = Range::all()});
    else
      e_.set_fold(*c_.fold, {.sort = Sort::Value, .id = sum});
    const Output& output = c_.stage->output;
    const Value value = e_.converted(e_.evaluate(output.value), sort_of(output.dtype));
    std::vector<Value> at;
    for (const MergedAxis& merged : output.axes) at.push_back(e_.evaluate(Scalar(merged)));
    // What leaves an axis of the result by itself is dropped; in a merged one
    // it has to be told, and then of the others too.
    std::vector<Nest::Axis> guards;
    bool merged = false;
    const auto add_guard = [&](const IndexAxis& axis, std::int64_t tile) {
      if (axis.extent % tile == 0) return;
      guards.push_back({axis.name, axis.extent, false, index_of(axis.name)});
      merged = merged || c_.is_merged(axis);
    };
    for (std::size_t i = 0; i < c_.rows.size(); ++i) add_guard(c_.rows[i], tiles_.rows[i]);
    add_guard(c_.column, tiles_.columns);
    e_.store(*e_.memory(c_.stage->name()), at, value, e_.guard(guards), !merged);
  }

  const Contraction& c_;
  const bool by_blocks_;  // tiles are those of blocks of threads
  tile::BlockRequest block_ = {};
  tile::cpu::Panels panels_;
  ContractionTiles tiles_;
  tile::Builder b_;
  Evaluator e_;
  IndexAxes batch_of_b_;
  std::vector<Packing> packings_;
  std::vector<std::string> names_;
  std::vector<Id> starts_;  // of the rows
  Id column_tile_ = 0;
};

}  // namespace

Expected<GroupCode> lower_tiled(const Contraction& contraction, ContractionTiling tiling,
                                const machine::Machine& machine, const GroupOptions& options) {
  return ContractionLowering(contraction, std::move(tiling), machine).run(machine, options);
}

Expected<Attempt> lower_contraction(const Group& group, const machine::Machine& machine,
                                    const GroupOptions& options) {
  const TargetTraits& target = traits_of(machine);
  const bool by_blocks = target.tiles_by_thread_blocks();
  if (options.schedule &&
      std::holds_alternative<BlockContractionSchedule>(*options.schedule) != by_blocks)
    return illegal_schedule("the schedule is for another kind of target machine");
  if (by_blocks) return lower_by_blocks(group, machine, options);
  const auto contraction = contraction_of(group, std::nullopt);
  // A sum of nothing is no product.
  if (!contraction || multiply_adds(*contraction) == 0) return Attempt{};
  if (contraction->bytes && !target.has_int8_dot) return Attempt{};
  ContractionTiling tiling;
  if (options.schedule) {
    TESSERA_TRY(tiling, tiling_of(*contraction, std::get<ContractionSchedule>(*options.schedule),
                                  options, machine));
  } else {
    tiling = default_tiling(*contraction, options, machine);
  }
  TESSERA_TRY(GroupCode code, lower_tiled(*contraction, std::move(tiling), machine, options));
  return Attempt(std::move(code));
}

ScheduleCandidates contraction_space(const Group& group, const machine::Machine& machine,
                                     const GroupOptions& options) {
  if (traits_of(machine).tiles_by_thread_blocks()) return block_space(group, machine, options);
  const auto contraction = contraction_of(group, std::nullopt);
  if (!contraction || multiply_adds(*contraction) == 0) return {};
  ScheduleCandidates space;
  const std::int64_t usual =
      options.exact ? default_tiling(*contraction, options, machine).tiles.sum_count() : 0;
  // The k-step is where partial sums are added.
  for (const ContractionCandidate& one : contraction_candidates(*contraction, options, machine))
    if (!options.exact || one.tiling.tiles.sum_count() == usual)
      space.push_back({schedule_of(one.tiling), one.cycles});
  return space;
}

}  // namespace tessera::lower
