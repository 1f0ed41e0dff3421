#include <array>

#include "tessera/ops/families.h"

namespace tessera::define {
namespace {

enum class Mode { Constant, Reflect, Edge, Wrap };

Expected<Mode> mode_of(const std::string& name) {
  constexpr std::array kNames = {"constant", "reflect", "edge", "wrap"};
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i]) return static_cast<Mode>(i);
  return bad_operands("mode is " + name, "it has to be constant, reflect, edge or wrap");
}

/// Size of an axis that is cropped by negative pads.
Dim size_left(const Dim& before, const Dim& after, const Dim& size) {
  return size - max(before * -1, 0) - max(after * -1, 0);
}

/// Source position of an element of the result.
Scalar inside(Mode mode, const Scalar& element, const Dim& before, const Dim& after,
              const Dim& size) {
  const Dim last = size - 1;
  const Scalar position = element - Scalar(before);
  switch (mode) {
    case Mode::Constant: break;
    case Mode::Reflect: {
      // Reflection without repeating the ends; a single element is repeated.
      const Scalar phase = tessera::mod(position, Scalar(max(last * 2, 1)));
      return Scalar(last) - tessera::abs(Scalar(last) - phase);
    }
    case Mode::Edge: return tessera::min(tessera::max(position, 0), Scalar(last));
    case Mode::Wrap: {
      // As in common runtimes, what negative pads leave of the axis is repeated.
      const Dim first = max(before * -1, 0), left = size_left(before, after, size);
      return Scalar(first) + tessera::mod(element - Scalar(before + first), Scalar(left));
    }
  }
  return position;
}

}  // namespace

OpDef pad() {
  return {.name = "pad",
          .summary = "x with elements added (or, by negative pads, taken) around it",
          .inputs = {"x", "pads", "constant_value?", "axes?"},
          .attrs = {{"mode", std::string("constant")}},
          .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
            TESSERA_TRY(const std::vector<Dim> pads, known_sizes(in, 1, "pads"));
            Ints named = all_axes(in[0].rank());
            if (given(in, 3)) {
              TESSERA_TRY(named, known_integers(in, 3, "axes"));
            }
            TESSERA_TRY(const std::vector<int> padded, normal_axes(named, in[0].rank()));
            if (pads.size() != 2 * padded.size())
              return bad_operands(fmt::format("there are {} pads", pads.size()),
                                  fmt::format("there are {} axes to pad", padded.size()));
            TESSERA_TRY(const Mode mode, mode_of(attrs.s("mode")));

            std::vector<Axis> run = axes("i", in[0].rank());
            Operand x{"x", in[0].dtype(), sizes(run)};
            std::vector<Scalar> at = indices(run);
            for (std::size_t i = 0; i < padded.size(); ++i) {
              const auto axis = static_cast<std::size_t>(padded[i]);
              const Dim &before = pads[i], &after = pads[i + padded.size()];
              if (before.is(0) && after.is(0)) continue;
              const Dim& size = in[0].type.shape[axis];
              if (mode != Mode::Constant && size.is(0))
                return bad_operands(fmt::format("axis {} has size 0", axis),
                                    fmt::format("mode {} needs an element", attrs.s("mode")));
              const Dim extent = size + before + after;
              if (mode == Mode::Wrap && !extent.is(0) &&
                  size_left(before, after, size).constant().value_or(1) <= 0)
                return bad_operands(fmt::format("negative pads leave nothing of axis {}", axis),
                                    "mode wrap needs an element");
              x.shape[axis] = size;
              at[axis] = inside(mode, Scalar(run[axis]), before, after, size);
              run[axis].extent = extent;
            }
            const std::vector<Operand> rest = rest_as_given({"pads", "constant_value", "axes"}, in);
            Scalar value = mode == Mode::Constant ? x.or_zero(at) : x(at);
            if (mode == Mode::Constant && given(in, 2)) {
              TESSERA_TRY_DONE(check_same_dtype({in[0], in[2]}));
              TESSERA_TRY(const Scalar filling, only_element(rest[1]));
              value = x.or_else(at, filling);
            }
            return Definition{.inputs = tessera::concat({x}, rest),
                              .outputs = {output(x.dtype, each(run), value)}};
          }};
}

OpDef center_crop_pad() {
  return {.name = "center_crop_pad",
          .summary = "x cropped or padded with zeros on both sides to a shape",
          .inputs = {"x", "shape"},
          .attrs = {optional_attr("axes", Ints{})},
          .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
            TESSERA_TRY(const std::vector<Dim> shape, known_sizes(in, 1, "shape"));
            TESSERA_TRY(const std::vector<int> changed,
                        normal_axes(attrs.has("axes") ? attrs.ints("axes") : all_axes(in[0].rank()),
                                    in[0].rank()));
            if (shape.size() != changed.size())
              return bad_operands(fmt::format("the shape has {} entries", shape.size()),
                                  fmt::format("there are {} axes", changed.size()));
            std::vector<Axis> run = axes("i", in[0].rank());
            Operand x{"x", in[0].dtype(), sizes(run)};
            std::vector<Scalar> at = indices(run);
            for (std::size_t i = 0; i < changed.size(); ++i) {
              const auto axis = static_cast<std::size_t>(changed[i]);
              const Dim& size = in[0].type.shape[axis];
              const Dim cropped = floor_div(max(size - shape[i], 0), 2);
              const Dim padded = floor_div(max(shape[i] - size, 0), 2);
              x.shape[axis] = size;
              at[axis] = Scalar(run[axis]) + Scalar(cropped - padded);
              run[axis].extent = shape[i];
            }
            return Definition{.inputs = tessera::concat({x}, rest_as_given({"shape"}, in)),
                              .outputs = {output(x.dtype, each(run), x.or_zero(at))}};
          }};
}

}  // namespace tessera::define
