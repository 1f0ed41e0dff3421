#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "tessera/expr/number.h"
#include "tessera/expr/transform.h"
#include "tessera/expr/walk.h"
#include "tessera/lower/contraction.h"
#include "tessera/tile/verify.h"

namespace tessera::lower {

using tile::Stage;

namespace {

/// A copy of a factor that is computed ahead has at most so many elements for each that it reads.
constexpr std::int64_t kMostCopies = 16;
constexpr std::int64_t kLeastSum = 4;

Axis named(const IndexAxis& axis) {
  return {axis.name, Dim(axis.extent)};
}

/// Takes the reads of a factor apart.
class Reads {
 public:
  /// Index variables: `inner` are those that copies are laid out for, `rows` those of rows, where
  /// a read may be a box.
  struct Variables {
    std::set<std::string> inner = {}, rows = {};
    std::optional<DType> copies = {};  // in this dtype, unless as they were
  };
  Reads(const Stage& stage, const AxisExtents& extents, Variables variables, tile::Stages& before,
        std::string prefix)
      : stage_(stage),
        extents_(extents),
        inner_(std::move(variables.inner)),
        rows_(std::move(variables.rows)),
        copies_(variables.copies),
        before_(before),
        prefix_(std::move(prefix)) {}

  /// Nothing where something is not to be had as strided memory.
  std::optional<Factor> run(const Scalar& value) {
    bool fine = true;
    Factor factor;
    std::map<std::string, node::Read> given;  // by view
    Transform transform, back;
    // What stands for elements beyond a tensor goes into its copy, as it was.
    back.read = [&](const node::Read& read) -> std::optional<Scalar> {
      std::erase_if(factor.reads, [&](const StridedRead& r) { return r.view == read.operand; });
      return Scalar(Node{given.at(read.operand)});
    };
    transform.read = [&](const node::Read& seen) -> std::optional<Scalar> {
      node::Read read = seen;
      if (fine && read.otherwise != nullptr)
        read.otherwise = std::make_shared<const Scalar>(back(*read.otherwise));
      const auto strided = fine ? this->strided(read) : std::nullopt;
      if (!strided) fine = false;
      if (!fine) return std::nullopt;
      factor.reads.push_back(*strided);
      factor.reads.back().view = fmt::format("{}.{}", prefix_, given.size() + 1);
      given.emplace(factor.reads.back().view, read);
      return Scalar(Node{node::Read{factor.reads.back().view, read.sort, {}, nullptr}});
    };
    factor.value = transform(value);
    if (!fine || !axes_in(factor.value).empty()) return std::nullopt;
    return factor;
  }

 private:
  std::optional<StridedRead> strided(const node::Read& read) {
    const auto operand = std::ranges::find(stage_.operands, read.operand, &Operand::name);
    if (operand == stage_.operands.end()) return std::nullopt;
    std::vector<Affine> at;
    std::vector<std::int64_t> shape;
    bool outside = false;
    for (std::size_t i = 0; i < read.at.size(); ++i) {
      auto affine = lower::affine(read.at[i], extents_, stage_.sizes);
      const auto extent = resolved(operand->shape[i], stage_.sizes).constant();
      if (!affine || !extent || *extent < 1) return std::nullopt;
      outside = outside || !range(*affine, extents_).within(*extent);
      at.push_back(*std::move(affine));
      shape.push_back(*extent);
    }
    if (!outside) return strided(read.operand, operand->dtype, at, shape);
    if (read.otherwise == nullptr || !axes_in(*read.otherwise).empty()) return std::nullopt;
    if (read.sort == Sort::Value && !is_zero(*read.otherwise)) return std::nullopt;
    if (auto boxed = box(at, shape)) {
      // Where it would lie in memory, as far as that goes.
      StridedRead result{read.operand, read.operand, operand->dtype, {}, std::move(boxed)};
      for (std::size_t i = 0; i < at.size(); ++i)
        for (const auto& [name, factor] : at[i].factors)
          result.at.factors[name] += factor * stride_of(shape, i);
      return result;
    }
    // The tensor with as much around it as is read; what sums alone run through lies innermost,
    // so that a goes along memory.
    std::vector<std::size_t> order(at.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_partition(order, [&](std::size_t i) {
      return std::ranges::any_of(at[i].factors,
                                 [&](const auto& f) { return !inner_.contains(f.first); }) ||
             at[i].factors.empty();
    });
    std::vector<Merged> axes;
    node::Read source{read.operand, read.sort, {}, read.otherwise};
    std::int64_t before = 1, after = 1;
    for (std::size_t i = 0; i < at.size(); ++i) {
      const Range range = lower::range(at[i], extents_);
      before *= shape[i];
      std::int64_t first = 0;
      if (!range.within(shape[i])) {
        first = range.low;
        shape[i] = range.high - range.low + 1;
      }
      after *= shape[i];
      at[i].base -= first;
      const Axis axis = named({fmt::format("i{}", i), shape[i]});
      axes.push_back({{axis}});
      source.at.push_back(first == 0 ? Scalar(axis) : Scalar(axis) + Scalar(first));
    }
    const auto ordered = [&](const auto& list) {
      auto result = list;
      for (std::size_t i = 0; i < list.size(); ++i) result[i] = list[order[i]];
      return result;
    };
    at = ordered(at);
    shape = ordered(shape);
    if (after / kMostCopies > before) return std::nullopt;
    const std::string name = fmt::format("{}.{}.padded{}", stage_.name(), prefix_, before_.size());
    std::vector<Operand> operands{*operand};
    for_each_read(*read.otherwise, [&](const node::Read& beyond) {
      operands.push_back(*std::ranges::find(stage_.operands, beyond.operand, &Operand::name));
    });
    const DType dtype = copies_.value_or(operand->dtype);
    before_.push_back({.operands = std::move(operands),
                       .output = {.name = name,
                                  .dtype = dtype,
                                  .axes = ordered(axes),
                                  .value = Scalar(Node{source})},
                       .sizes = stage_.sizes});
    return strided(name, dtype, at, shape);
  }

  static std::int64_t stride_of(const std::vector<std::int64_t>& shape, std::size_t axis) {
    std::int64_t stride = 1;
    for (std::size_t i = axis + 1; i < shape.size(); ++i) stride *= shape[i];
    return stride;
  }
  /// What has one position is no axis.
  Scalar scalar_of(const Affine& affine) const {
    Scalar sum = Scalar(affine.base);
    for (const auto& [name, factor] : affine.factors)
      if (extents_.at(name) != 1) sum = sum + index_of(name) * Scalar(factor);
    return sum;
  }

  /// Whether an axis of a box is that of the last remainders.
  static bool is_remainder(const BoxedRead& box, std::size_t axis) {
    const auto* index = std::get_if<node::Index>(&box.at[axis].node());
    return index != nullptr && !box.divided.empty() && index->axis == box.divided.back().remainder;
  }

  /// Tiles run along rows and along the last of the sum, which lies side by side; a box has them
  /// each on an axis of its own.
  std::optional<BoxedRead> box(const std::vector<Affine>& at,
                               const std::vector<std::int64_t>& shape) const {
    constexpr std::int64_t kLeast = 16;
    if (rows_.empty() || 2 * at.size() > tile::kMostAxes) return std::nullopt;
    const auto summed = std::ranges::find_if(at.back().factors, [&](const auto& f) {
      return inner_.contains(f.first) && f.second == 1;
    });
    if (summed == at.back().factors.end() || extents_.at(summed->first) % kLeast != 0)
      return std::nullopt;
    BoxedRead result;
    const auto add = [&](std::int64_t extent, std::int64_t stride, Scalar position) {
      result.shape.push_back(extent);
      result.strides.push_back(stride);
      result.at.push_back(std::move(position));
    };
    for (std::size_t i = 0; i < at.size(); ++i) {
      const std::int64_t stride = stride_of(shape, i);
      Affine rest = at[i];
      std::optional<std::pair<std::string, std::int64_t>> row;
      for (const auto& factor : at[i].factors) {
        if (factor.first == summed->first && i + 1 < at.size()) return std::nullopt;
        if (!rows_.contains(factor.first)) continue;
        if (row || factor.second < 1 || i + 1 == at.size()) return std::nullopt;
        row = factor;
        rest.factors.erase(factor.first);
      }
      if (!row || row->second == 1) {
        add(shape[i], stride, scalar_of(at[i]));
        continue;
      }
      const std::int64_t by = row->second;
      if (shape[i] % by != 0) return std::nullopt;
      const std::int64_t lead = ceil_div(std::max<std::int64_t>(-range(rest, extents_).low, 0), by);
      rest.base += lead * by;
      const std::string name = fmt::format("{}.{}.{}", prefix_, before_.size(), i);
      result.divided.push_back({name + ".quotient", name + ".remainder", scalar_of(rest), by});
      add(shape[i] / by, stride * by,
          index_of(row->first) + index_of(name + ".quotient") - Scalar(lead));
      add(by, stride, index_of(name + ".remainder"));
    }
    // Pixels of one quotient and their channels are one piece of memory: an axis less, of which the
    // copy engine knows five. Parts of the sum are whole parts of a pixel's channels.
    const std::size_t last = result.shape.size() - 1;
    if (last > 0 && result.strides[last - 1] == result.shape[last] &&
        is_remainder(result, last - 1)) {
      result.at[last - 1] =
          result.at[last - 1] * Scalar(result.shape[last]) + std::move(result.at[last]);
      result.shape[last - 1] *= result.shape[last];
      result.strides[last - 1] = 1;
      result.shape.pop_back();
      result.strides.pop_back();
      result.at.pop_back();
    }
    return result;
  }

  static std::optional<StridedRead> strided(const std::string& tensor, DType dtype,
                                            const std::vector<Affine>& at,
                                            const std::vector<std::int64_t>& shape) {
    StridedRead result{.view = {}, .operand = tensor, .dtype = dtype, .at = {}};
    std::int64_t stride = 1;
    for (std::size_t i = at.size(); i-- > 0;) {
      result.at.base += at[i].base * stride;
      for (const auto& [name, factor] : at[i].factors) result.at.factors[name] += factor * stride;
      stride *= shape[i];
    }
    for (const auto& [name, factor] : result.at.factors)
      if (factor < 0) return std::nullopt;
    return result;
  }

  const Stage& stage_;
  const AxisExtents& extents_;
  std::set<std::string> inner_, rows_;
  std::optional<DType> copies_;
  tile::Stages& before_;
  std::string prefix_;
};

/// The factor computed ahead, at every position that it has.
Factor computed_ahead(const Stage& stage, const Scalar& value, DType dtype, const IndexAxes& axes,
                      tile::Stages& before, const std::string& prefix) {
  StridedRead read{
      .view = prefix + ".1", .operand = stage.name() + "." + prefix, .dtype = dtype, .at = {}};
  std::int64_t stride = 1;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    if (axis->extent != 1) read.at.factors.emplace(axis->name, stride);
    stride *= axis->extent;
  }
  std::vector<Merged> output;
  for (const IndexAxis& axis : axes) output.push_back({{named(axis)}});
  before.push_back(
      {.operands = stage.operands,
       .output = {.name = read.operand, .dtype = dtype, .axes = std::move(output), .value = value},
       .sizes = stage.sizes});
  return {.value = Scalar(Node{node::Read{read.view, sort_of(dtype), {}, nullptr}}),
          .reads = {read}};
}

/// The sums of the bytes of a factor, computed ahead; gives their name.
std::string summed_ahead(Contraction& c, const Scalar& byte, const IndexAxes& axes,
                         const std::string& prefix) {
  std::vector<Merged> output;
  for (const IndexAxis& axis : axes) output.push_back({{named(axis)}});
  const std::string name = fmt::format("{}.{}.sums", c.stage->name(), prefix);
  c.before.push_back({.operands = c.stage->operands,
                      .output = {.name = name,
                                 .dtype = DType::I32,
                                 .axes = std::move(output),
                                 .value = sum(c.fold->bounds, byte)},
                      .sizes = c.stage->sizes});
  return name;
}

}  // namespace

std::int64_t count(const IndexAxes& axes) {
  std::int64_t all = 1;
  for (const IndexAxis& axis : axes) all *= axis.extent;
  return all;
}

bool Factor::is_plain() const {
  const auto* read = std::get_if<node::Read>(&value.node());
  return read != nullptr && reads.size() == 1 && reads[0].dtype == DType::F32;
}

bool Factor::merges(const IndexAxis& outer, const IndexAxis& inner) const {
  return std::ranges::all_of(reads, [&](const StridedRead& read) {
    return !read.box && read.at.factor(outer.name) == read.at.factor(inner.name) * inner.extent;
  });
}

bool Contraction::is_merged(const IndexAxis& axis) const {
  return std::ranges::any_of(stage->output.axes, [&](const Merged& merged) {
    const auto is_other = [&](const Axis& part) {
      return part.name != axis.name && resolved(part.size(), stage->sizes).constant() != 1;
    };
    return std::ranges::count(merged.parts, axis.name, &Axis::name) > 0 &&
           std::ranges::any_of(merged.parts, is_other);
  });
}

std::optional<Contraction> contraction_of(const Group& group, std::optional<Rounding> rounding) {
  if (group.stages.size() != 1 || group.stages[0].output.forward || is_wide(group.stages[0]))
    return std::nullopt;
  const Stage& stage = group.stages[0];
  Contraction c{.stage = &stage, .fold = tile::main_fold(stage)};
  if (c.fold == nullptr) return std::nullopt;
  auto factors = factors_of(stage, *c.fold);
  if (!factors) return std::nullopt;
  if (factors->bytes) {
    factors->first = factors->bytes->first.byte;
    factors->second = factors->bytes->second.byte;
  }

  AxisExtents extents;
  IndexAxes output;
  for (const Merged& merged : stage.output.axes)
    for (const Axis& part : merged.parts) {
      const auto extent = resolved(part.size(), stage.sizes).constant();
      if (!extent || *extent < 1) return std::nullopt;
      output.push_back({part.name, *extent});
    }
  for (const Bound& bound : c.fold->bounds) {
    const auto extent = tile::number_of_size(bound.extent, stage.sizes);
    if (!extent) return std::nullopt;
    c.sums.push_back({bound.axis, *extent});
  }
  for (const IndexAxes* axes : {&output, &c.sums})
    for (const IndexAxis& axis : *axes) extents.emplace(axis.name, axis.extent);
  if (count(c.sums) < kLeastSum) return std::nullopt;

  // The columns lie side by side in the result: b is the factor that varies with them.
  std::set<std::string> left = axes_in(factors->first), right = axes_in(factors->second);
  const auto owner = [&](const IndexAxis& axis) {
    const bool in_left = left.contains(axis.name), in_right = right.contains(axis.name);
    return in_left == in_right ? 0 : in_left ? -1 : 1;
  };
  const auto last = std::find_if(output.rbegin(), output.rend(),
                                 [](const IndexAxis& axis) { return axis.extent > 1; });
  if (last == output.rend() || owner(*last) == 0) return std::nullopt;
  if (owner(*last) < 0) {
    std::swap(factors->first, factors->second);
    std::swap(left, right);
    if (factors->bytes) std::swap(factors->bytes->first, factors->bytes->second);
  }
  if (factors->bytes) {
    const auto& [a, b] = *factors->bytes;
    c.bytes = {.a = a.dtype, .b = b.dtype, .a_shift = a.shift, .b_shift = b.shift};
  }
  for (const IndexAxis& axis : output) {
    if (axis.name == last->name)
      c.column = axis;
    else if (owner(axis) < 0)
      c.rows.push_back(axis);
    else
      c.batch.push_back(axis);
  }
  for (const IndexAxis& axis : c.sums)
    if (owner(axis) != 0 || !left.contains(axis.name)) return std::nullopt;

  std::set<std::string> read_by_b;
  for_each_read(factors->second, [&](const node::Read& read) { read_by_b.insert(read.operand); });
  if (read_by_b.size() == 1 && group.weights.contains(*read_by_b.begin())) {
    c.known_b = factors->second;
    c.weight = *read_by_b.begin();
  }
  if (rounding && !c.bytes && c.known_b)
    factors->first = with_more_channels(factors->first, *rounding, c, extents);
  const auto dtype_of = [&](const std::string& prefix) {
    return !c.bytes ? DType::F32 : prefix == "a" ? c.bytes->a : c.bytes->b;
  };
  const auto axes_within = [&](const std::set<std::string>& within, bool summed) {
    IndexAxes axes;
    for (const IndexAxes& part :
         {c.batch, c.rows, summed ? c.sums : IndexAxes{}, IndexAxes{c.column}})
      for (const IndexAxis& axis : part)
        if (within.contains(axis.name)) axes.push_back(axis);
    return axes;
  };
  if (c.bytes && c.known_b && c.bytes->b == DType::U8) {
    // Instructions take signed weights.
    const Scalar shift = c.bytes->b_shift;
    c.bytes->b = DType::I8;
    c.bytes->b_shift = shift.integer() ? Scalar(*shift.integer() + 128) : shift + 128;
    c.known_b = *c.known_b - 128;
  }
  if (c.bytes && !is_zero(c.bytes->b_shift))
    c.bytes->a_sums = summed_ahead(c, factors->first, axes_within(left, false), "a");
  if (c.bytes && !is_zero(c.bytes->a_shift))
    c.bytes->b_sums = c.known_b ? c.weight + ".sums"
                                : summed_ahead(c, factors->second, axes_within(right, false), "b");
  const auto factor = [&](const Scalar& value, const std::set<std::string>& within,
                          const std::string& prefix) -> std::optional<Factor> {
    Reads::Variables variables;
    for (const IndexAxis& axis : prefix == "a" ? c.sums : IndexAxes{c.column})
      variables.inner.insert(axis.name);
    // A box is loaded as it is: nothing else may be made of it.
    if (rounding && prefix == "a" && std::holds_alternative<node::Read>(value.node())) {
      for (const IndexAxis& axis : c.rows) variables.rows.insert(axis.name);
      if (rounding->to != DType::F32) variables.copies = rounding->to;
    }
    if (auto strided = Reads(stage, extents, std::move(variables), c.before, prefix).run(value))
      return strided;
    IndexAxes axes = axes_within(within, true);
    for (const std::string& name : axes_in(value)) {  // what has one position is in no list
      if (std::ranges::find(axes, name, &IndexAxis::name) != axes.end()) continue;
      // What is in neither is bound by a fold within the factor.
      if (const auto extent = extents.find(name); extent == extents.end() || extent->second != 1)
        return std::nullopt;
      axes.push_back({name, 1});
    }
    std::int64_t elements = 0;
    for_each_read(value, [&](const node::Read& read) {
      const auto operand = std::ranges::find(stage.operands, read.operand, &Operand::name);
      std::int64_t all = 1;
      for (const Dim& dim : operand->shape)
        all *= resolved(dim, stage.sizes).constant().value_or(1);
      elements = std::max(elements, all);
    });
    if (count(axes) / kMostCopies > elements) return std::nullopt;
    return computed_ahead(stage, value, dtype_of(prefix), axes, c.before, prefix);
  };
  auto a = factor(factors->first, left, "a");
  if (!a) return std::nullopt;
  c.a = *std::move(a);
  // In the order in which a lies; what has one position is no axis.
  std::erase_if(c.sums, [](const IndexAxis& axis) { return axis.extent == 1; });
  std::ranges::stable_sort(c.sums, std::greater<>(), [&](const IndexAxis& axis) {
    return c.a.reads.empty() ? 0 : c.a.reads[0].at.factor(axis.name);
  });
  if (c.known_b && rounding && rounding->to == DType::BF16) add_rest_of_weights(c);
  if (c.known_b) return c;
  auto b = factor(factors->second, right, "b");
  if (!b) return std::nullopt;
  c.b = *std::move(b);
  // One row: to read b along the sum is what a reduction does better.
  const bool along_columns = std::ranges::all_of(
      c.b.reads, [&](const StridedRead& read) { return read.at.factor(c.column.name) <= 1; });
  if (count(c.rows) == 1 && !along_columns) return std::nullopt;
  return c;
}

}  // namespace tessera::lower
