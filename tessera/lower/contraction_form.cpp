#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
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

/// Largest ratio of elements of an operand's copy to elements of its tensor (im2col).
constexpr std::int64_t kMostCopies = 16;
constexpr std::int64_t kLeastSum = 4;
/// On a GPU, copies of unaligned rows to aligned ones: alignment in bytes, and the least matmul
/// that gains by it.
constexpr std::int64_t kChunk = 16, kLeastColumns = 64;
constexpr double kLeastWork = 1 << 22;

Axis named(const IndexAxis& axis) {
  return {axis.name, Dim(axis.extent)};
}

/// Finds the memory accesses of an operand, and copies for those that are not strided.
class Reads {
 public:
  /// Index variables: copies are contiguous along `inner`; accesses may be boxes along `rows`.
  struct Variables {
    std::set<std::string> inner = {}, rows = {};
    /// Copies of windows are contiguous within a group of channels, which these number.
    std::set<std::string> groups = {};
    std::optional<DType> copies = {};  // dtype of copies; none: unchanged
    bool aligned = false;              // rows that are not aligned are copied
  };
  Reads(const Stage& stage, const AxisExtents& extents, Variables variables, tile::Stages& before,
        std::string prefix)
      : stage_(stage),
        extents_(extents),
        inner_(std::move(variables.inner)),
        rows_(std::move(variables.rows)),
        groups_(std::move(variables.groups)),
        copies_(variables.copies),
        aligned_(variables.aligned),
        before_(before),
        prefix_(std::move(prefix)) {}

  /// The operand; none if an access cannot be expressed as strided memory.
  std::optional<Factor> run(const Scalar& value) {
    bool fine = true;
    Factor factor;
    std::map<std::string, node::Read> given;  // by view
    Transform transform, back;
    // Padding values are part of the copy.
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
    std::vector<AffineIndex> at;
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
    const bool realigned =
        aligned_ && read.sort == Sort::Value && !is_aligned(at, shape, operand->dtype);
    if (!outside && !realigned) return strided(read.operand, operand->dtype, at, shape);
    if (!outside) return in_copy(read, *operand, std::move(at), std::move(shape));
    if (read.otherwise == nullptr || !axes_in(*read.otherwise).empty()) return std::nullopt;
    if (read.sort == Sort::Value && !is_zero(*read.otherwise)) return std::nullopt;
    if (auto boxed = realigned ? std::nullopt : box(at, shape)) {
      // Where it would lie in memory, as far as that goes.
      StridedRead result{read.operand, read.operand, operand->dtype, {}, std::move(boxed)};
      const auto offset = offset_of(at, shape);
      if (!offset) return std::nullopt;
      result.at.terms = offset->terms;
      return result;
    }
    return in_copy(read, *operand, std::move(at), std::move(shape));
  }

  /// Whether rows begin at multiples of 16 bytes.
  static bool is_aligned(const std::vector<AffineIndex>& at, const std::vector<std::int64_t>& shape,
                         DType dtype) {
    const auto offset = offset_of(at, shape);
    return offset && std::ranges::all_of(offset->terms, [&](const AffineIndex::Term& term) {
             return term.factor == 1 || term.factor * byte_width(dtype) % kChunk == 0;
           });
  }

  /// A copy of the tensor with as much around it as is read, and with aligned rows if asked for;
  /// what sums alone run through lies innermost, so that a goes along memory.
  std::optional<StridedRead> in_copy(const node::Read& read, const Operand& operand,
                                     std::vector<AffineIndex> at, std::vector<std::int64_t> shape) {
    const DType dtype = copies_.value_or(operand.dtype);
    std::vector<std::size_t> order(at.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_partition(order, [&](std::size_t i) {
      return at[i].is_constant() ||
             std::ranges::any_of(at[i].terms, [&](const AffineIndex::Term& term) {
               return !inner_.contains(term.variable);
             });
    });
    std::vector<MergedAxis> axes;
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
      if (aligned_ && i == order.back()) {
        const std::int64_t unit = kChunk / byte_width(dtype);
        shape[i] = ceil_div(shape[i], unit) * unit;
        if (source.otherwise == nullptr) source.otherwise = std::make_shared<const Scalar>(0.0);
      }
      after *= shape[i];
      at[i].base -= first;
      const Axis axis = named({fmt::format("i{}", i), shape[i]});
      axes.push_back({{axis}});
      source.at.push_back(first == 0 ? Scalar(axis) : Scalar(axis) + Scalar(first));
    }
    if (const auto group = group_of(at, shape)) {
      // The axis of groups comes first, that of the channels within one stays the last.
      const std::int64_t within = shape.back() / extents_.at(*group);
      const Axis outer = named({"group", extents_.at(*group)}), inner = named({"within", within});
      source.at.back() = Scalar(outer) * Scalar(within) + Scalar(inner);
      axes.back() = {{inner}};
      axes.push_back({{outer}});
      at.back() = at.back().without([&](const std::string& axis) { return axis == *group; });
      at.push_back(AffineIndex::of(*group));
      shape.back() = within;
      shape.push_back(extents_.at(*group));
      order.insert(order.begin(), order.size());
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
    std::vector<Operand> operands{operand};
    if (read.otherwise != nullptr)
      for_each_read(*read.otherwise, [&](const node::Read& beyond) {
        operands.push_back(*std::ranges::find(stage_.operands, beyond.operand, &Operand::name));
      });
    before_.push_back({.operands = std::move(operands),
                       .output = {.name = name,
                                  .dtype = dtype,
                                  .axes = ordered(axes),
                                  .value = Scalar(Node{source})},
                       .sizes = stage_.sizes});
    return strided(name, dtype, at, shape);
  }

  /// Variable of the groups that the last axis consists of: channels of a grouped convolution,
  /// where windows run along other axes. Neighbouring pixels of a group then lie side by side, as
  /// those of an image without groups do.
  std::optional<std::string> group_of(const std::vector<AffineIndex>& at,
                                      const std::vector<std::int64_t>& shape) const {
    const std::vector<AffineIndex::Term>& terms = at.back().terms;
    if (terms.size() != 2 || at.back().base != 0) return std::nullopt;
    const auto group = std::ranges::find_if(
        terms, [&](const AffineIndex::Term& term) { return groups_.contains(term.variable); });
    if (group == terms.end()) return std::nullopt;
    const AffineIndex::Term& channel = terms[group == terms.begin() ? 1 : 0];
    const bool has_window = std::ranges::any_of(at, [&](const AffineIndex& index) {
      return &index != &at.back() &&
             std::ranges::any_of(index.terms, [&](const AffineIndex::Term& term) {
               return inner_.contains(term.variable);
             });
    });
    const bool is_split = channel.factor == 1 && inner_.contains(channel.variable) &&
                          group->factor == extents_.at(channel.variable) &&
                          group->factor * extents_.at(group->variable) == shape.back();
    return has_window && is_split ? std::optional(group->variable) : std::nullopt;
  }

  static std::int64_t stride_of(const std::vector<std::int64_t>& shape, std::size_t axis) {
    std::int64_t stride = 1;
    for (std::size_t i = axis + 1; i < shape.size(); ++i) stride *= shape[i];
    return stride;
  }
  /// What has one position is no axis.
  Scalar scalar_of(const AffineIndex& index) const {
    Scalar sum = Scalar(index.base);
    for (const auto& [name, factor] : index.terms)
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
  std::optional<BoxedRead> box(const std::vector<AffineIndex>& at,
                               const std::vector<std::int64_t>& shape) const {
    constexpr std::int64_t kLeast = 16;
    if (rows_.empty() || 2 * at.size() > tile::kMostAxes) return std::nullopt;
    const auto summed = std::ranges::find_if(at.back().terms, [&](const AffineIndex::Term& term) {
      return inner_.contains(term.variable) && term.factor == 1;
    });
    if (summed == at.back().terms.end() || extents_.at(summed->variable) % kLeast != 0)
      return std::nullopt;
    BoxedRead result;
    const auto add = [&](std::int64_t extent, std::int64_t stride, Scalar position) {
      result.shape.push_back(extent);
      result.strides.push_back(stride);
      result.at.push_back(std::move(position));
    };
    for (std::size_t i = 0; i < at.size(); ++i) {
      const std::int64_t stride = stride_of(shape, i);
      std::optional<AffineIndex::Term> row;
      for (const AffineIndex::Term& term : at[i].terms) {
        if (term.variable == summed->variable && i + 1 < at.size()) return std::nullopt;
        if (!rows_.contains(term.variable)) continue;
        if (row || term.factor < 1 || i + 1 == at.size()) return std::nullopt;
        row = term;
      }
      if (!row || row->factor == 1) {
        add(shape[i], stride, scalar_of(at[i]));
        continue;
      }
      const std::int64_t by = row->factor;
      if (shape[i] % by != 0) return std::nullopt;
      AffineIndex rest =
          at[i].without([&](const std::string& axis) { return axis == row->variable; });
      const std::int64_t lead = ceil_div(std::max<std::int64_t>(-range(rest, extents_).low, 0), by);
      rest.base += lead * by;
      const std::string name = fmt::format("{}.{}.{}", prefix_, before_.size(), i);
      result.divided.push_back({name + ".quotient", name + ".remainder", scalar_of(rest), by});
      add(shape[i] / by, stride * by,
          index_of(row->variable) + index_of(name + ".quotient") - Scalar(lead));
      add(by, stride, index_of(name + ".remainder"));
    }
    // Pixels of one quotient and their channels are one piece of memory: an axis less, of which the
    // copy engine knows five. Parts of the sum are whole parts of a pixel's channels.
    const std::size_t last = result.shape.size() - 1;
    if (last > 0 && result.strides[last - 1] == result.shape[last] &&
        extents_.at(summed->variable) <= result.shape[last] && is_remainder(result, last - 1)) {
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

  /// Where an element of a dense tensor lies.
  static std::optional<AffineIndex> offset_of(const std::vector<AffineIndex>& at,
                                              const std::vector<std::int64_t>& shape) {
    std::optional<AffineIndex> offset = AffineIndex{};
    for (std::size_t i = 0; offset && i < at.size(); ++i)
      offset = offset->plus(at[i], stride_of(shape, i));
    return offset;
  }

  static std::optional<StridedRead> strided(const std::string& tensor, DType dtype,
                                            const std::vector<AffineIndex>& at,
                                            const std::vector<std::int64_t>& shape) {
    const auto offset = offset_of(at, shape);
    if (!offset) return std::nullopt;
    for (const AffineIndex::Term& term : offset->terms)
      if (term.factor < 0) return std::nullopt;
    return StridedRead{.view = {}, .operand = tensor, .dtype = dtype, .at = *offset};
  }

  const Stage& stage_;
  const AxisExtents& extents_;
  std::set<std::string> inner_, rows_, groups_;
  std::optional<DType> copies_;
  bool aligned_;
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
    if (axis->extent != 1) read.at = *read.at.plus(AffineIndex::of(axis->name), stride);
    stride *= axis->extent;
  }
  std::vector<MergedAxis> output;
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
  std::vector<MergedAxis> output;
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

/// Extents of the index variables of the result and of the sums, which are set; nothing where one
/// is not known or the result is empty.
std::optional<AxisExtents> extents_of(Contraction& c) {
  AxisExtents extents;
  for (const MergedAxis& merged : c.stage->output.axes)
    for (const Axis& part : merged.parts) {
      const auto extent = resolved(part.size(), c.stage->sizes).constant();
      if (!extent || *extent < 1) return std::nullopt;
      extents.emplace(part.name, *extent);
    }
  for (const Bound& bound : c.fold->bounds) {
    const auto extent = tile::number_of_size(bound.extent, c.stage->sizes);
    if (!extent) return std::nullopt;
    c.sums.push_back({bound.axis, *extent});
    extents.emplace(bound.axis, *extent);
  }
  return extents;
}

/// Sets batch, rows and column. The columns lie side by side in the result: b, the second factor
/// from now on, is the one that varies with them. Gives whether there are such axes, and both
/// factors vary with all of the sum.
bool assign_axes(Contraction& c, Factors& factors) {
  IndexAxes output;
  for (const MergedAxis& merged : c.stage->output.axes)
    for (const Axis& part : merged.parts)
      output.push_back({part.name, *resolved(part.size(), c.stage->sizes).constant()});
  std::set<std::string> left = axes_in(factors.first), right = axes_in(factors.second);
  const auto owner = [&](const IndexAxis& axis) {
    const bool in_left = left.contains(axis.name), in_right = right.contains(axis.name);
    return in_left == in_right ? 0 : in_left ? -1 : 1;
  };
  const auto last = std::find_if(output.rbegin(), output.rend(),
                                 [](const IndexAxis& axis) { return axis.extent > 1; });
  if (last == output.rend() || owner(*last) == 0) return false;
  if (owner(*last) < 0) {
    std::swap(factors.first, factors.second);
    std::swap(left, right);
    if (factors.bytes) std::swap(factors.bytes->first, factors.bytes->second);
  }
  for (const IndexAxis& axis : output) {
    if (axis.name == last->name)
      c.column = axis;
    else if (owner(axis) < 0)
      c.rows.push_back(axis);
    else
      c.batch.push_back(axis);
  }
  if (factors.bytes) {
    const auto& [a, b] = *factors.bytes;
    c.bytes = {.a = a.dtype, .b = b.dtype, .a_shift = a.shift, .b_shift = b.shift};
  }
  return std::ranges::all_of(
      c.sums, [&](const IndexAxis& axis) { return owner(axis) == 0 && left.contains(axis.name); });
}

/// Sets what is known of b when code is made: it is computed of one weight.
void find_weight(Contraction& c, const Scalar& b, const std::set<std::string>& weights) {
  std::set<std::string> reads;
  for_each_read(b, [&](const node::Read& read) { reads.insert(read.operand); });
  if (reads.size() != 1 || !weights.contains(*reads.begin())) return;
  c.known_b = b;
  c.weight = *reads.begin();
}

/// The index variables of the contraction that are among these; `summed`: with those of the sum.
IndexAxes axes_within(const Contraction& c, const std::set<std::string>& names, bool summed) {
  IndexAxes axes;
  for (const IndexAxes& part :
       {c.batch, c.rows, summed ? c.sums : IndexAxes{}, IndexAxes{c.column}})
    for (const IndexAxis& axis : part)
      if (names.contains(axis.name)) axes.push_back(axis);
  return axes;
}

/// Sums of the bytes of a factor, where shifts of the other one are multiplied with them.
void sum_shifted_bytes(Contraction& c, const Factors& factors) {
  if (c.known_b && c.bytes->b == DType::U8) {
    // Instructions take signed weights.
    const Scalar shift = c.bytes->b_shift;
    c.bytes->b = DType::I8;
    c.bytes->b_shift = shift.integer() ? Scalar(*shift.integer() + 128) : shift + 128;
    c.known_b = *c.known_b - 128;
  }
  const auto sums = [&](const Scalar& factor, const std::string& prefix) {
    return summed_ahead(c, factor, axes_within(c, axes_in(factor), false), prefix);
  };
  if (!is_zero(c.bytes->b_shift)) c.bytes->a_sums = sums(factors.first, "a");
  if (!is_zero(c.bytes->a_shift))
    c.bytes->b_sums = c.known_b ? c.weight + ".sums" : sums(factors.second, "b");
}

/// Elements of the largest tensor that an expression reads.
std::int64_t largest_operand(const Stage& stage, const Scalar& value) {
  std::int64_t elements = 0;
  for_each_read(value, [&](const node::Read& read) {
    const auto operand = std::ranges::find(stage.operands, read.operand, &Operand::name);
    std::int64_t all = 1;
    for (const Dim& dim : operand->shape) all *= resolved(dim, stage.sizes).constant().value_or(1);
    elements = std::max(elements, all);
  });
  return elements;
}

/// Whether an operand is computed elementwise (a normalization, the scale of
/// squeeze-and-excitation) and better be computed ahead: k-steps then copy it asynchronously, which
/// they cannot while they compute it. Not for a window that reads a pixel several times: copies of
/// it would be stored.
bool is_computed_ahead(const Contraction& c, const Scalar& value, const Rounding& rounding) {
  if (c.bytes || rounding.to == DType::F32 || std::holds_alternative<node::Read>(value.node()))
    return false;
  const IndexAxes axes = axes_within(c, axes_in(value), true);
  if (axes.empty() || axes.size() != axes_in(value).size() ||
      count(axes) > largest_operand(*c.stage, value))
    return false;
  // Rows of 16 bytes, and enough steps to pay for another launch: 2, 4, 6, 8 and 12 were measured
  // on an H200 in five models.
  constexpr std::int64_t kLeastSteps = 4;
  const std::int64_t channels = axes.back().extent;
  std::int64_t step = 64;
  while (channels % step != 0) step /= 2;
  return channels * byte_width(rounding.to) % kChunk == 0 && count(c.sums) / step >= kLeastSteps;
}

/// The factor a or b as a view of memory, or computed ahead where that is not too much.
std::optional<Factor> factor_of(Contraction& c, const Scalar& value, const std::string& prefix,
                                const AxisExtents& extents,
                                const std::optional<Rounding>& rounding) {
  const Stage& stage = *c.stage;
  Reads::Variables variables;
  for (const IndexAxis& axis : prefix == "a" ? c.sums : IndexAxes{c.column})
    variables.inner.insert(axis.name);
  // A box is loaded as it is: nothing else may be made of it.
  if (rounding && prefix == "a" && std::holds_alternative<node::Read>(value.node())) {
    for (const IndexAxis& axis : c.rows) variables.rows.insert(axis.name);
    if (rounding->to != DType::F32) variables.copies = rounding->to;
    // A copy is read and written once.
    variables.aligned =
        !c.bytes && c.column.extent >= kLeastColumns && multiply_adds(c) >= kLeastWork;
  }
  if (!rounding && prefix == "a")
    for (const IndexAxis& axis : c.batch) variables.groups.insert(axis.name);
  const std::set<std::string> names = axes_in(value);
  const bool is_ahead = rounding && is_computed_ahead(c, value, *rounding);
  if (prefix == "a") c.is_a_ahead = is_ahead;
  if (is_ahead)
    return computed_ahead(stage, value, rounding->to, axes_within(c, names, true), c.before,
                          prefix);
  if (auto strided = Reads(stage, extents, std::move(variables), c.before, prefix).run(value))
    return strided;
  IndexAxes axes = axes_within(c, names, true);
  for (const std::string& name : names) {  // what has one position is in no list
    if (std::ranges::find(axes, name, &IndexAxis::name) != axes.end()) continue;
    // What is in neither is bound by a fold within the factor.
    if (const auto extent = extents.find(name); extent == extents.end() || extent->second != 1)
      return std::nullopt;
    axes.push_back({name, 1});
  }
  if (count(axes) / kMostCopies > largest_operand(stage, value)) return std::nullopt;
  const DType dtype = !c.bytes ? DType::F32 : prefix == "a" ? c.bytes->a : c.bytes->b;
  return computed_ahead(stage, value, dtype, axes, c.before, prefix);
}

}  // namespace

std::int64_t count(const IndexAxes& axes) {
  std::int64_t all = 1;
  for (const IndexAxis& axis : axes) all *= axis.extent;
  return all;
}

double multiply_adds(const Contraction& c) {
  double all = 1;
  for (const IndexAxes& axes : {c.batch, c.rows, IndexAxes{c.column}})
    all *= static_cast<double>(count(axes));
  for (const IndexAxis& axis : c.sums)
    if (c.sums_over(axis)) all *= static_cast<double>(axis.extent);
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
  return std::ranges::any_of(stage->output.axes, [&](const MergedAxis& merged) {
    const auto is_other = [&](const Axis& part) {
      return part.name != axis.name && resolved(part.size(), stage->sizes).constant() != 1;
    };
    return std::ranges::count(merged.parts, axis.name, &Axis::name) > 0 &&
           std::ranges::any_of(merged.parts, is_other);
  });
}

bool Contraction::packs_b_across() const {
  return !known_b && std::ranges::any_of(b.reads, [&](const StridedRead& read) {
    return read.at.factor(column.name) > 1;
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
  auto extents = extents_of(c);
  if (!extents || count(c.sums) < kLeastSum || !assign_axes(c, *factors)) return std::nullopt;
  find_weight(c, factors->second, group.weights);
  if (rounding && !c.bytes && c.known_b)
    factors->first = pad_channels(factors->first, *rounding, c, *extents);
  if (c.bytes) sum_shifted_bytes(c, *factors);

  auto a = factor_of(c, factors->first, "a", *extents, rounding);
  if (!a) return std::nullopt;
  c.a = *std::move(a);
  // In the order in which a lies; what has one position is no axis.
  std::erase_if(c.sums, [](const IndexAxis& axis) { return axis.extent == 1; });
  // Taps of a transposed convolution run backwards.
  std::ranges::stable_sort(c.sums, std::greater<>(), [&](const IndexAxis& axis) {
    return c.a.reads.empty() ? 0 : std::abs(c.a.reads[0].at.factor(axis.name));
  });
  if (c.known_b && rounding && rounding->to == DType::BF16 && !rounding->changes_nothing)
    split_weights_bf16(c);
  if (c.known_b) return c;
  auto b = factor_of(c, factors->second, "b", *extents, rounding);
  if (!b) return std::nullopt;
  c.b = *std::move(b);
  // One row: to read b along the sum is what a reduction does better.
  const bool along_columns = std::ranges::all_of(
      c.b.reads, [&](const StridedRead& read) { return read.at.factor(c.column.name) <= 1; });
  if (count(c.rows) == 1 && !along_columns) return std::nullopt;
  return c;
}

}  // namespace tessera::lower
