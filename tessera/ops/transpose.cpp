#include <algorithm>

#include "tessera/ops/families.h"

namespace tessera::define {
namespace {

/// Blocks of `b` x `b` positions lie in the channels of one tensor and in the rows and columns of
/// the other.
struct Blocks {
  Axis n{"n"}, c{"c"}, h{"h"}, w{"w"}, rows, columns;

  static Expected<Blocks> of(const Attrs& attrs, const Argument& x) {
    const std::int64_t size = attrs.i("blocksize");
    if (x.rank() != 4)
      return bad_operands(fmt::format("x has {} axes", x.rank()), "it has to have 4");
    constexpr std::int64_t kLargest = 1 << 30;  // its square is a size
    if (size < 1 || size > kLargest)
      return bad_operands(fmt::format("blocksize is {}", size),
                          fmt::format("it has to be in 1 .. {}", kLargest));
    return Blocks{.rows = {"r", size}, .columns = {"s", size}};
  }

  std::vector<MergedAxis> spread() const {
    return {{{n}}, {{c}}, merge(h, rows), merge(w, columns)};
  }
  /// Channel order: block position outside of the channel (DCR) or inside (CRD).
  Expected<std::vector<MergedAxis>> stacked(const std::string& mode) const {
    if (mode != "DCR" && mode != "CRD")
      return bad_operands("mode is " + mode, "it has to be DCR or CRD");
    const MergedAxis channels{mode == "DCR" ? std::vector{rows, columns, c}
                                            : std::vector{c, rows, columns}};
    return std::vector<MergedAxis>{{{n}}, channels, {{h}}, {{w}}};
  }
};

Definition moved(DType dtype, const std::vector<MergedAxis>& from,
                 const std::vector<MergedAxis>& to) {
  const Operand x{"x", dtype, {from.begin(), from.end()}};
  return {.inputs = {x}, .outputs = {output(dtype, to, x({from.begin(), from.end()}))}};
}

}  // namespace

OpDef transpose() {
  return {.name = "transpose",
          .summary = "x with its axes in another order, by default reversed",
          .inputs = {"x"},
          .attrs = {optional_attr("perm", Ints{})},
          .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
            Ints order = all_axes(in[0].rank());
            std::ranges::reverse(order);
            if (attrs.has("perm")) order = attrs.ints("perm");
            TESSERA_TRY(const std::vector<int> perm, normal_axes(order, in[0].rank()));
            if (static_cast<int>(perm.size()) != in[0].rank())
              return bad_operands(fmt::format("perm has {} entries", perm.size()),
                                  fmt::format("x has {} axes", in[0].rank()));
            const std::vector<Axis> from = axes("i", in[0].rank());
            std::vector<Axis> to;
            for (const int axis : perm) to.push_back(from[static_cast<std::size_t>(axis)]);
            return moved(in[0].dtype(), each(from), each(to));
          }};
}

OpDef depth_to_space() {
  return {.name = "depth_to_space",
          .summary = "blocks of channels laid out as rows and columns",
          .inputs = {"x"},
          .attrs = {required_attr("blocksize", 1), {"mode", std::string("DCR")}},
          .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
            TESSERA_TRY(const Blocks blocks, Blocks::of(attrs, in[0]));
            TESSERA_TRY(const std::vector<MergedAxis> stacked, blocks.stacked(attrs.s("mode")));
            return moved(in[0].dtype(), stacked, blocks.spread());
          }};
}

OpDef space_to_depth() {
  return {.name = "space_to_depth",
          .summary = "blocks of rows and columns laid out as channels",
          .inputs = {"x"},
          .attrs = {required_attr("blocksize", 1), {"mode", std::string("DCR")}},
          .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
            TESSERA_TRY(const Blocks blocks, Blocks::of(attrs, in[0]));
            TESSERA_TRY(const std::vector<MergedAxis> stacked, blocks.stacked(attrs.s("mode")));
            return moved(in[0].dtype(), blocks.spread(), stacked);
          }};
}

}  // namespace tessera::define
