#include <algorithm>

#include "tessera/ops/families.h"

namespace tessera::define {
namespace {

/// Common factor of an axis of the source and an axis of the target.
struct Part {
  std::size_t source = 0, target = 0;
  Dim size;
};

/// Consecutive axes of the source and of the target with equally many elements.
struct Group {
  std::vector<std::size_t> source, target;
};

/// The quotient, if there is no remainder.
std::optional<Dim> exact_quotient(const Dim& a, const Dim& b) {
  Dim quotient = floor_div(a, b);
  if (quotient.is_undefined() || quotient * b != a) return std::nullopt;
  return quotient;
}

/// Index map of a reshape. The row-major position stays; where the two shapes have a common
/// refinement the indices are split and merged without division.
class Reshaping {
 public:
  Reshaping(const Argument& x, Shape target)
      : operand_(as_given("x", x)),
        target_(std::move(target)),
        at_(operand_.shape.size(), Scalar(0)) {
    for (std::size_t i = 0; i < target_.size(); ++i)
      axes_.push_back({{{fmt::format("i{}", i), target_[i]}}});
    for (const Group& group : groups())
      if (!refine(group)) linearize(group);
  }

  Definition definition(const std::vector<Operand>& rest) const {
    return {.inputs = tessera::concat({operand_}, rest),
            .outputs = {output(operand_.dtype, axes_, operand_(at_))}};
  }

 private:
  const Shape& source() const { return operand_.shape; }

  /// Groups of axes: axes of size 1 are dropped, the others are split wherever both shapes have
  /// equally many elements so far.
  std::vector<Group> groups() const {
    const auto proper = [](const Shape& shape) {
      std::vector<std::size_t> result;
      for (std::size_t i = 0; i < shape.size(); ++i)
        if (!shape[i].is(1)) result.push_back(i);
      return result;
    };
    const std::vector<std::size_t> from = proper(source()), to = proper(target_);
    std::vector<Group> result;
    std::size_t start = 0, begin = 0;
    Dim count = 1;
    for (std::size_t end = 0; end < from.size(); ++end) {
      count = count * source()[from[end]];
      Dim held = 1;
      for (std::size_t stop = begin; stop < to.size(); ++stop) {
        held = held * target_[to[stop]];
        if (held != count) continue;
        result.push_back({{from.begin() + at(start), from.begin() + at(end + 1)},
                          {to.begin() + at(begin), to.begin() + at(stop + 1)}});
        start = end + 1;
        begin = stop + 1;
        count = 1;
        break;
      }
    }
    if (start < from.size() || begin < to.size())
      result.push_back(
          {{from.begin() + at(start), from.end()}, {to.begin() + at(begin), to.end()}});
    return result;
  }

  static std::ptrdiff_t at(std::size_t position) { return static_cast<std::ptrdiff_t>(position); }

  bool refine(const Group& group) {
    if (group.source.empty() || group.target.empty()) return false;
    std::vector<Part> parts;
    std::size_t i = 0, j = 0;
    Dim left = source()[group.source[0]], right = target_[group.target[0]];
    while (true) {
      Part part{group.source[i], group.target[j], {}};
      if (const auto quotient = exact_quotient(right, left)) {
        part.size = left;
        right = *quotient;
        left = 1;
      } else if (const auto inverse = exact_quotient(left, right)) {
        part.size = right;
        left = *inverse;
        right = 1;
      } else {
        return false;
      }
      parts.push_back(part);
      if (left.is(1) && ++i < group.source.size()) left = source()[group.source[i]];
      if (right.is(1) && ++j < group.target.size()) right = target_[group.target[j]];
      if (i == group.source.size() || j == group.target.size()) break;
    }
    if (i != group.source.size() || j != group.target.size()) return false;
    apply_parts(parts);
    return true;
  }

  void apply_parts(const std::vector<Part>& parts) {
    std::vector<MergedAxis> read(source().size());
    for (const Part& part : parts) axes_[part.target].parts.clear();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Part& part = parts[i];
      std::vector<Axis>& run = axes_[part.target].parts;
      const Axis axis{fmt::format("i{}_{}", part.target, run.size()), part.size};
      run.push_back(axis);
      read[part.source].parts.push_back(axis);
    }
    for (const Part& part : parts) at_[part.source] = read[part.source];
  }

  /// Delinearizes the position in the group by division and remainder.
  void linearize(const Group& group) {
    Scalar position = 0;
    for (const std::size_t axis : group.target)
      position = position * Scalar(target_[axis]) + Scalar(axes_[axis]);
    Dim behind = 1;
    for (std::size_t i = group.source.size(); i-- > 0;) {
      const Dim& size = source()[group.source[i]];
      const Scalar whole = tessera::floor_div(position, Scalar(behind));
      at_[group.source[i]] = i == 0 ? whole : tessera::mod(whole, Scalar(size));
      behind = behind * size;
    }
  }

  Operand operand_;
  Shape target_;
  std::vector<MergedAxis> axes_;
  std::vector<Scalar> at_;
};

/// Size of the inferred axis (-1); sizes common to both shapes are cancelled, so that symbols and
/// zeros among them do no harm.
Dim missing_size(const Shape& source, Shape others) {
  Shape left;
  for (const Dim& size : source) {
    const auto same = std::ranges::find(others, size);
    if (same != others.end())
      others.erase(same);
    else
      left.push_back(size);
  }
  return floor_div(product(left), product(others));
}

Expected<Definition> reshaped(const Argument& x, Shape target, const std::vector<Operand>& rest) {
  const Dim held = product(x.type.shape), wanted = product(target);
  if (held.is_undefined() || wanted.is_undefined() || (held - wanted).constant().value_or(0) != 0)
    return bad_operands(fmt::format("x has {} elements", held.to_string()),
                        fmt::format("the new shape has {}", wanted.to_string()));
  return Reshaping(x, std::move(target)).definition(rest);
}

Expected<Shape> target_shape(const Shape& source, const std::vector<Dim>& asked,
                             bool zero_is_zero) {
  Shape target, others;
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (asked[i].is(-1)) {
      if (open) return bad_operands("the shape has -1 more than once", "one size can be left open");
      open = i;
      target.push_back(-1);
      continue;
    }
    Dim size = asked[i];
    if (size.is(0) && !zero_is_zero) {
      if (i >= source.size())
        return bad_operands(fmt::format("entry {} of the shape is 0", i),
                            fmt::format("x has {} axes to copy from", source.size()));
      size = source[i];
    }
    if (size.constant().value_or(0) < 0)
      return bad_operands(fmt::format("entry {} of the shape is {}", i, size.to_string()));
    target.push_back(size);
    others.push_back(size);
  }
  if (open) target[*open] = missing_size(source, others);
  return target;
}

}  // namespace

OpDef reshape() {
  return {.name = "reshape",
          .summary = "the elements of x in another shape; 0 keeps a size, -1 is worked out",
          .inputs = {"x", "shape"},
          .attrs = {flag_attr("allowzero", 0)},
          .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
            TESSERA_TRY(const std::vector<Dim> asked, known_sizes(in, 1, "shape"));
            TESSERA_TRY(Shape target,
                        target_shape(in[0].type.shape, asked, attrs.i("allowzero") != 0));
            return reshaped(in[0], std::move(target), rest_as_given({"shape"}, in));
          }};
}

OpDef flatten() {
  return {
      .name = "flatten",
      .summary = "a matrix: the axes before `axis`, and the rest",
      .inputs = {"x"},
      .attrs = {{"axis", 1}},
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        const std::int64_t rank = in[0].rank(), axis = attrs.i("axis");
        if (axis < -rank || axis > rank)
          return bad_operands(fmt::format("axis {} is out of range", axis),
                              fmt::format("the tensor has {} axes", rank));
        const Shape& shape = in[0].type.shape;
        const auto cut = shape.begin() + (axis < 0 ? axis + rank : axis);
        return reshaped(in[0], {product({shape.begin(), cut}), product({cut, shape.end()})}, {});
      }};
}

OpDef squeeze() {
  return {.name = "squeeze",
          .summary = "x without some axes of size 1, or without all of them",
          .inputs = {"x", "axes?"},
          .define = [](const Attrs&, const Signature& in) -> Expected<Definition> {
            Ints named;
            if (given(in, 1)) {
              TESSERA_TRY(named, known_integers(in, 1, "axes"));
            } else {
              for (int i = 0; i < in[0].rank(); ++i) {
                if (!in[0].dim(i).constant()) return needs_value("axes");  // it may be 1
                if (in[0].dim(i).is(1)) named.push_back(i);
              }
            }
            TESSERA_TRY(const std::vector<int> dropped, normal_axes(named, in[0].rank()));
            Operand x{"x", in[0].dtype()};
            std::vector<Axis> kept;
            std::vector<Scalar> at;
            for (const Axis& axis : axes("i", in[0].rank())) {
              const bool drop =
                  std::ranges::find(dropped, static_cast<int>(at.size())) != dropped.end();
              x.shape.push_back(drop ? Dim(1) : axis.size());
              at.push_back(drop ? Scalar(0) : Scalar(axis));
              if (!drop) kept.push_back(axis);
            }
            return Definition{.inputs = tessera::concat({x}, rest_as_given({"axes"}, in)),
                              .outputs = {output(x.dtype, each(kept), x(at))}};
          }};
}

OpDef unsqueeze() {
  return {.name = "unsqueeze",
          .summary = "x with new axes of size 1",
          .inputs = {"x", "axes"},
          .define = [](const Attrs&, const Signature& in) -> Expected<Definition> {
            TESSERA_TRY(const Ints named, known_integers(in, 1, "axes"));
            const int rank = in[0].rank() + static_cast<int>(named.size());
            TESSERA_TRY(const std::vector<int> added, normal_axes(named, rank));
            std::vector<Axis> all = axes("i", rank), kept;
            for (int i = 0; i < rank; ++i) {
              Axis& axis = all[static_cast<std::size_t>(i)];
              if (std::ranges::find(added, i) == added.end())
                kept.push_back(axis);
              else
                axis.extent = 1;
            }
            const Operand x{"x", in[0].dtype(), sizes(kept)};
            return Definition{.inputs = tessera::concat({x}, rest_as_given({"axes"}, in)),
                              .outputs = {output(x.dtype, each(all), x(indices(kept)))}};
          }};
}

}  // namespace tessera::define
