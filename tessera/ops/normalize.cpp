#include "tessera/ops/composite.h"

namespace tessera::define {
namespace {

/// sqrt(x + epsilon)
Val root(const Val& x, const Attrs& attrs) {
  return x.body().op("sqrt", {x + x.body().real(attrs, "epsilon", x.dtype())});
}

/// Mean and variance over some axes.
struct Moments {
  Val mean, centred, variance;

  Moments(const Val& x, const Ints& axes)
      : mean(reduced("reduce_mean", x, axes)),
        centred(x - mean),
        variance(reduced("reduce_mean", centred * centred, axes)) {}

  Val deviation(const Attrs& attrs) const { return root(variance, attrs); }
  Val normalized(const Attrs& attrs) const { return centred / deviation(attrs); }
};

/// Reshapes a per-channel vector to broadcast against x: N C spatial…. It has a number for each
/// channel: one number is not repeated.
Val per_channel(const Val& list, const Val& x) {
  const bool fits = x.rank() < 2 || list.dim(0) == x.dim(1);
  const Val all = fits ? list : list.body().op("reshape", {list, sizes_of(x, 1, 2)});
  return unsqueezed(all, counted(1, x.rank() - 1));
}

/// The elements of each group of channels along the last of three axes.
Val in_groups(const Val& x, std::int64_t groups) {
  if (x.dim(1).constant()) return reshaped(x, {0, groups, -1});
  // The size of a group says that there are as many channels as groups of this size have.
  Body& b = x.body();
  const Val apart =
      joined({sizes_of(x, 0, 1), b.ints({groups}), sizes_of(x, 1, 2) / static_cast<double>(groups),
              sizes_of(x, 2, x.rank())},
             0);
  return reshaped(b.op("reshape", {x, apart}), {0, groups, -1});
}

/// Whether two sizes are numbers that differ.
bool differ(const Dim& a, const Dim& b) {
  return a.constant() && b.constant() && a != b;
}

/// Checks x, the scale and the optional bias per channel, or per group where there are groups.
Expected<Done> check_channels(const Vals& in, std::optional<std::int64_t> groups = {}) {
  if (in[0].rank() < 2)
    return bad_operands(fmt::format("the input has {} axes", in[0].rank()),
                        "it has to have a batch and a channel axis");
  const Dim& channels = in[0].dim(1);
  for (std::size_t i = 1; i < in.size(); ++i) {
    TESSERA_TRY_DONE(check_rank(in[i], "a parameter", 1));
    if (const Dim& count = in[i].dim(0); differ(count, channels) && !(groups && count.is(*groups)))
      return bad_operands(fmt::format("a parameter has {} elements", count.to_string()),
                          fmt::format("there are {} channels", channels.to_string()));
  }
  return Done{};
}

/// Checks that the scale and the optional bias, which come after x, broadcast to x.
Expected<Done> check_broadcast_to_first(const Vals& in) {
  const Val& x = in[0];
  for (std::size_t i = 1; i < in.size(); ++i) {
    if (!in[i].present()) continue;
    const int missing = x.rank() - in[i].rank();
    if (missing < 0)
      return bad_operands(fmt::format("a parameter has {} axes", in[i].rank()),
                          fmt::format("the input has {}", x.rank()));
    for (int axis = 0; axis < in[i].rank(); ++axis) {
      const Dim &size = in[i].dim(axis), &wanted = x.dim(missing + axis);
      if (!size.is(1) && differ(size, wanted))
        return bad_operands(
            fmt::format("axis {} of a parameter has {} elements", axis, size.to_string()),
            fmt::format("the input has {} there", wanted.to_string()));
    }
  }
  return Done{};
}

/// y, which has the shape of x unless what was broadcast to x is larger than that.
Val in_shape_of(const Val& x, const Val& y) {
  bool is_same = y.rank() == x.rank();
  for (int axis = 0; is_same && axis < x.rank(); ++axis) is_same = y.dim(axis) == x.dim(axis);
  return is_same ? y : x.body().op("reshape", {y, sizes_of(x, 0, x.rank())});
}

DType wider(DType a, DType b) {
  return byte_width(a) < byte_width(b) ? b : a;
}

}  // namespace

OpDef batch_normalization() {
  return {.name = "batch_normalization",
          .summary = "(x - mean) / sqrt(var + epsilon) * scale + bias for each channel",
          .inputs = {"x", "scale", "bias", "input_mean", "input_var"},
          .outputs = {"out", "running_mean", "running_var"},  // the latter in training mode
          .attrs = {real_attr("epsilon", 1e-5), {"momentum", 0.9}, flag_attr("training_mode", 0)},
          .expand = [](Body&, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
            if (in[0].rank() != 1) TESSERA_TRY_DONE(check_channels(in));
            // Statistics may be kept in more precision than the data; those of a batch are
            // computed in f32 at least, where the squares of f16 do not overflow.
            const bool is_training = attrs.i("training_mode") != 0;
            DType dtype = wider(in[0].dtype(), wider(in[1].dtype(), in[3].dtype()));
            if (is_training) dtype = wider(dtype, DType::F32);
            const Val x = converted(in[0], dtype);
            Vals list;
            for (std::size_t i = 1; i < 5; ++i) list.push_back(converted(in[i], dtype));
            const auto scaled = [&](const Val& centred, const Val& variance) {
              const Val deviation = root(variance, attrs);
              const Val y =
                  centred / deviation * per_channel(list[0], in[0]) + per_channel(list[1], in[0]);
              return converted(y, in[0].dtype());
            };
            if (!is_training) {
              const Val centred = x - per_channel(list[2], in[0]);
              return Vals{scaled(centred, per_channel(list[3], in[0]))};
            }
            Ints axes = counted(0, in[0].rank());
            if (axes.size() > 1) axes.erase(axes.begin() + 1);
            const Moments batch(x, axes);
            const double momentum = attrs.f("momentum");
            const auto running = [&](const Val& before, const Val& now) {
              const Val moved = before * momentum + reshaped(now, {-1}) * (1 - momentum);
              return converted(moved, in[3].dtype());
            };
            return Vals{scaled(batch.centred, batch.variance), running(list[2], batch.mean),
                        running(list[3], batch.variance)};
          }};
}

OpDef layer_normalization() {
  return {.name = "layer_normalization",
          .summary = "(x - mean) / sqrt(var + epsilon) * scale + bias over the axes from `axis` on",
          .inputs = {"x", "scale", "bias?"},
          .outputs = {"out", "mean", "inv_std_dev"},
          .attrs = {{"axis", -1}, real_attr("epsilon", 1e-5), {"stash_type", "f32"}},
          .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
            const Val& x = in[0];
            TESSERA_TRY(const int axis, normal_axis(attrs.i("axis"), x.rank()));
            TESSERA_TRY(const DType stash, float_type(attrs, "stash_type", DType::F32));
            TESSERA_TRY_DONE(check_broadcast_to_first(in));
            const Moments moments(converted(x, stash), counted(axis, x.rank()));
            const Val inverse = b.op("reciprocal", {moments.deviation(attrs)});
            Val y = converted(moments.centred * inverse, x.dtype()) * in[1];
            if (given(in, 2)) y = y + in[2];
            return Vals{in_shape_of(x, y), moments.mean, inverse};
          }};
}

OpDef rms_normalization() {
  return {.name = "rms_normalization",
          .summary = "x / sqrt(mean(x^2) + epsilon) * scale over the axes from `axis` on",
          .inputs = {"x", "scale"},
          .attrs = {{"axis", -1}, real_attr("epsilon", 1e-5), {"stash_type", "f32"}},
          .expand = [](Body&, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
            TESSERA_TRY(const int axis, normal_axis(attrs.i("axis"), in[0].rank()));
            TESSERA_TRY(const DType stash, float_type(attrs, "stash_type", DType::F32));
            TESSERA_TRY_DONE(check_broadcast_to_first(in));
            const Val x = converted(in[0], stash);
            const Val square = reduced("reduce_mean", x * x, counted(axis, in[0].rank()));
            const Val y = x / root(square, attrs);
            return Vals{in_shape_of(in[0], converted(y, in[0].dtype()) * in[1])};
          }};
}

OpDef instance_normalization() {
  return {
      .name = "instance_normalization",
      .summary = "(x - mean) / sqrt(var + epsilon) * scale + bias for each channel of each image",
      .inputs = {"x", "scale", "bias"},
      .attrs = {real_attr("epsilon", 1e-5)},
      .expand = [](Body&, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
        TESSERA_TRY_DONE(check_channels(in));
        const Val& x = in[0];
        const Moments moments(widened(x), counted(2, x.rank()));
        const Val y = converted(moments.normalized(attrs), x.dtype());
        return Vals{y * per_channel(in[1], x) + per_channel(in[2], x)};
      }};
}

OpDef group_normalization() {
  return {
      .name = "group_normalization",
      .summary =
          "(x - mean) / sqrt(var + epsilon) for each group of channels of each image, "
          "times scale plus bias for each channel (or, if so many, each group)",
      .inputs = {"x", "scale", "bias"},
      .attrs = {required_attr("num_groups", 1), real_attr("epsilon", 1e-5), {"stash_type", "f32"}},
      .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
        const std::int64_t groups = attrs.i("num_groups");
        TESSERA_TRY_DONE(check_channels(in, groups));
        TESSERA_TRY(const DType stash, float_type(attrs, "stash_type", DType::F32));
        const Val& x = in[0];
        if (const auto channels = x.dim(1).constant();
            groups < 1 || (channels && *channels % groups != 0))
          return bad_operands(fmt::format("num_groups is {}", groups),
                              fmt::format("it has to divide {}", x.dim(1).to_string()));
        const Val grouped = in_groups(converted(x, stash), groups);
        Val y = converted(Moments(grouped, {2}).normalized(attrs), x.dtype());
        const bool by_group = in[1].dim(0).is(groups) && !x.dim(1).is(groups);
        if (by_group) y = y * unsqueezed(in[1], {1}) + unsqueezed(in[2], {1});
        y = b.op("reshape", {y, b.op("shape", {x})});
        if (!by_group) y = y * per_channel(in[1], x) + per_channel(in[2], x);
        return Vals{y};
      }};
}

OpDef mean_variance_normalization() {
  return {.name = "mean_variance_normalization",
          .summary = "(x - mean) / (sqrt(var) + 1e-9) over some axes",
          .inputs = {"x"},
          .attrs = {{"axes", Ints{0, 2, 3}}},
          .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
            const Moments moments(widened(in[0]), attrs.ints("axes"));
            const Val y = moments.centred / (b.op("sqrt", {moments.variance}) + 1e-9);
            return Vals{converted(y, in[0].dtype())};
          }};
}

OpDef lp_normalization() {
  return {.name = "lp_normalization",
          .summary = "x / norm(x) along an axis, with the norm of order p (1 or 2); 0 if that is 0",
          .inputs = {"x"},
          .attrs = {{"axis", -1}, {"p", 2}},
          .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
            const Val& x = in[0];
            TESSERA_TRY(const int axis, normal_axis(attrs.i("axis"), x.rank()));
            const std::int64_t p = attrs.i("p");
            if (p != 1 && p != 2)
              return bad_operands(fmt::format("p is {}", p), "it has to be 1 or 2");
            const Val norm = reduced(p == 1 ? "reduce_l1" : "reduce_l2", x, {axis});
            const Val zero = b.number(0, x.dtype());
            return Vals{b.op("where", {b.op("equal", {norm, zero}), zero, x / norm})};
          }};
}

OpDef lrn() {
  return {
      .name = "lrn",
      .summary = "x / (bias + alpha/size * sum of squares over `size` neighbouring channels)^beta",
      .inputs = {"x"},
      .attrs = {{"alpha", 1e-4}, {"beta", 0.75}, {"bias", 1.0}, required_attr("size", 1)},
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        const std::int64_t size = attrs.i("size");
        if (in[0].rank() < 2 || size < 1 || size > (1 << 30))
          return bad_operands(fmt::format("{} axes, size {}", in[0].rank(), size),
                              "there have to be channels, and size has to be at least 1");
        if (!is_float(in[0].dtype())) return bad_operands("x is not of a floating-point type");
        // Channels out of range contribute nothing.
        const std::int64_t reach = in[0].dim(1).constant().value_or(size);
        const std::int64_t before = std::min((size - 1) / 2, reach);
        const std::int64_t after = std::min(size - 1 - (size - 1) / 2, reach);

        const Axis n{"n"}, c{"c"}, k{"k", before + after + 1};
        const std::vector<Axis> at = axes("y", in[0].rank() - 2);
        const Operand x{"x", in[0].dtype(), concat<Dim>({n, c}, sizes(at))};
        const Scalar near =
            x.or_zero(concat<Scalar>({n, Scalar(c) + Scalar(k) - Scalar(before)}, indices(at)));
        const Scalar scale = attrs.f("alpha") / static_cast<double>(size);
        const Scalar base = attrs.f("bias") + scale * sum({k}, near * near);
        return Definition{.inputs = {x},
                          .outputs = {{.name = "out",
                                       .dtype = in[0].dtype(),
                                       .axes = concat<MergedAxis>({{{n}}, {{c}}}, each(at)),
                                       .value = x(concat<Scalar>({n, c}, indices(at))) /
                                                pow(base, attrs.f("beta"))}}};
      }};
}

OpDef dropout() {
  return {
      .name = "dropout",
      .summary = "data unchanged and a mask of true; what training would drop is a random choice",
      .inputs = {"data", "ratio?", "training_mode?"},
      .outputs = {"out", "mask"},
      .attrs = {optional_attr("seed", 0)},
      .expand = [](Body& b, const Attrs&, const Vals& in) -> Expected<Vals> {
        const auto number = [&](std::size_t i, double otherwise) -> std::optional<double> {
          if (!given(in, i)) return otherwise;
          const auto& content = in[i].argument().content;
          if (!content || content->count() != 1) return std::nullopt;
          return number_at(*content, 0);
        };
        const auto ratio = number(1, 0.5), training = number(2, 0);
        if (!training) return needs_value("training_mode");
        if (*training != 0 && !ratio) return needs_value("ratio");
        if (*training != 0 && *ratio != 0)
          return Diagnostic{.id = "op-unsupported-random",
                            .message = "training_mode is true, so the result is random",
                            .note = "training_mode has to be false or ratio 0"};
        return Vals{b.op("identity", {in[0]}), filled(1, DType::Bool, {b.op("shape", {in[0]})})};
      }};
}

}  // namespace tessera::define
