#include <numbers>

#include "tessera/ops/families.h"

namespace tessera::define {
namespace {

constexpr double kPi = std::numbers::pi;

/// exp(±i·2π·k·m/N) times a complex number whose parts are read by `part` (0: real, 1: imaginary):
/// its part `z`. The angle is reduced exactly.
struct Rotation {
  Scalar k, m;
  Dim length;
  bool inverse = false;

  Scalar operator()(const Scalar& z, const std::function<Scalar(const Scalar&)>& part) const {
    const Scalar angle = 2 * kPi * mod(k * m, Scalar(length)) / Scalar(length);
    const Scalar sign = inverse ? 2 * z - 1 : 1 - 2 * z;
    return part(z) * cos(angle) + sign * part(1 - z) * sin(angle);
  }
};

/// Real numbers come as complex ones without an imaginary part.
Expected<int> parts_of(const Argument& signal) {
  if (signal.rank() >= 2 && signal.dim(signal.rank() - 1).is(1)) return 1;
  if (signal.rank() >= 2 && signal.dim(signal.rank() - 1).is(2)) return 2;
  return bad_operands("the last axis of the signal is neither 1 nor 2",
                      "it holds the real and imaginary parts");
}

/// A size that is an input with one element.
Expected<Dim> one_known_size(const Signature& in, std::size_t index, std::string_view name) {
  TESSERA_TRY(const Shape sizes, known_sizes(in, index, name));
  if (sizes.size() != 1)
    return bad_operands(fmt::format("{} has {} elements", name, sizes.size()),
                        "it has to have one");
  if (sizes[0].constant().value_or(0) < 0)
    return bad_operands(fmt::format("{} is {}", name, sizes[0].to_string()));
  return sizes[0];
}

/// a - b cos(2πi/N) + c cos(4πi/N), where N is the size, or one less if it is not periodic.
struct Cosines {
  double a, b, c;
};

OpDef cosine_window(std::string name, std::string summary, Cosines terms) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .inputs = {"size"},
          .attrs = {{"output_datatype", "f32"}, flag_attr("periodic", 1)},
          .define = [terms](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
            TESSERA_TRY(const DType dtype, dtype_attr(attrs, "output_datatype", DType::F32));
            TESSERA_TRY_DONE(check_domain(Domain::Floats, dtype));
            TESSERA_TRY(const Dim size, one_known_size(in, 0, "size"));
            const Axis i{"i", size};
            const Scalar period = Scalar(size) - (attrs.i("periodic") != 0 ? 0 : 1);
            const Scalar angle = 2 * kPi * Scalar(i) / period;
            const Scalar value = terms.a - terms.b * cos(angle) + terms.c * cos(2.0 * angle);
            return Definition{.inputs = {as_given("size", in[0])},
                              .outputs = {output(dtype, each({i}), value)}};
          }};
}

}  // namespace

OpDef blackman_window() {
  return cosine_window("blackman_window", "the Blackman window", {0.42, 0.5, 0.08});
}
OpDef hamming_window() {
  return cosine_window("hamming_window", "the Hamming window", {25.0 / 46, 21.0 / 46, 0});
}
OpDef hann_window() {
  return cosine_window("hann_window", "the Hann window", {0.5, 0.5, 0});
}

OpDef dft() {
  return {
      .name = "dft",
      .summary = "the discrete Fourier transform along an axis, or its inverse",
      .inputs = {"x", "dft_length?", "axis?"},
      .attrs = {flag_attr("inverse", 0), flag_attr("onesided", 0)},
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        TESSERA_TRY_DONE(check_domain(Domain::Floats, in[0].dtype()));
        TESSERA_TRY(const int parts, parts_of(in[0]));
        std::int64_t named = -2;
        if (given(in, 2)) {
          TESSERA_TRY(named, known_integer(in, 2, "axis"));
        }
        TESSERA_TRY(const int axis, normal_axis(named, in[0].rank()));
        if (axis == in[0].rank() - 1)
          return bad_operands("axis is the last one", "that holds the parts of complex numbers");
        const bool inverse = attrs.i("inverse") != 0, onesided = attrs.i("onesided") != 0;
        const auto along = static_cast<std::size_t>(axis);

        std::vector<Axis> at = axes("i", in[0].rank() - 1);
        Operand x{"x", in[0].dtype(), concat<Dim>(sizes(at), {parts})};
        Dim length = onesided && inverse ? (at[along].size() - 1) * 2 : at[along].size();
        if (given(in, 1)) {
          TESSERA_TRY(length, one_known_size(in, 1, "dft_length"));
        }
        const Dim half = floor_div(length, 2) + 1;
        const Axis k{"k", onesided && !inverse ? half : length};
        const Axis m{"m", onesided && inverse ? half : length};
        const Axis z{"z", onesided && inverse ? 1 : 2};
        at[along] = k;
        const Rotation rotation{.k = k, .m = m, .length = length, .inverse = inverse};
        const Scalar term = rotation(z, [&](const Scalar& part) {
          std::vector<Scalar> where = indices(at);
          where[along] = m;
          where.push_back(part);
          return x.or_zero(where);
        });
        // Of a real signal's transform one half is given; the other is its conjugate.
        const Scalar alone = equal(m, 0) || equal(2 * Scalar(m), Scalar(length));
        Scalar value =
            onesided && inverse ? sum({m}, term * select(alone, 1.0, 2.0)) : sum({m}, term);
        if (inverse) value = value / Scalar(length);
        return Definition{.inputs = concat<Operand>({x}, rest_as_given({"dft_length", "axis"}, in)),
                          .outputs = {output(in[0].dtype(), each(concat<Axis>(at, {z})), value)}};
      },
  };
}

OpDef stft() {
  return {
      .name = "stft",
      .summary = "the discrete Fourier transforms of windowed frames of a signal",
      .inputs = {"signal", "frame_step", "window?", "frame_length?"},
      .attrs = {flag_attr("onesided", 1)},
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        TESSERA_TRY_DONE(check_domain(Domain::Floats, in[0].dtype()));
        TESSERA_TRY(const int parts, parts_of(in[0]));
        if (in[0].rank() != 3 || (given(in, 2) && in[2].rank() != 1))
          return bad_operands("the signal or the window has the wrong number of axes",
                              "they have 3 and 1");
        TESSERA_TRY(const std::int64_t step, known_integer(in, 1, "frame_step"));
        if (step < 1) return bad_operands(fmt::format("frame_step is {}", step));

        const Axis b{"b"}, l{"l"}, z{"z", 2};
        Axis m{"m"};  // within a frame; where nothing else is said it is as long as the window
        if (given(in, 3)) {
          TESSERA_TRY(m.extent, one_known_size(in, 3, "frame_length"));
        } else if (!given(in, 2)) {
          m.extent = l;
        }
        const Axis frame{"f", floor_div(l.size() - m.size(), step) + 1};
        const Axis k{"k", attrs.i("onesided") != 0 ? floor_div(m.size(), 2) + 1 : m.size()};

        const Operand signal{"signal", in[0].dtype(), {b, l, parts}};
        std::vector<Operand> inputs = {signal, as_given("frame_step", in[1])};
        Scalar term = Rotation{.k = k, .m = m, .length = m}(z, [&](const Scalar& part) {
          return signal.or_zero({b, Scalar(frame) * step + Scalar(m), part});
        });
        if (given(in, 2)) {
          inputs.push_back({"window", in[2].dtype(), {m}});
          term = inputs.back()({m}) * term;
        }
        if (given(in, 3)) inputs.push_back(as_given("frame_length", in[3]));
        return Definition{
            .inputs = std::move(inputs),
            .outputs = {output(in[0].dtype(), each({b, frame, k, z}), sum({m}, term))}};
      },
  };
}

OpDef mel_weight_matrix() {
  return {
      .name = "mel_weight_matrix",
      .summary = "triangles, evenly spaced on the mel scale, that weight the bins of a spectrum",
      .inputs = {"num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz",
                 "upper_edge_hertz"},
      .attrs = {{"output_datatype", "f32"}},
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        TESSERA_TRY(const DType dtype, dtype_attr(attrs, "output_datatype", DType::F32));
        TESSERA_TRY_DONE(check_domain(Domain::Floats, dtype));
        TESSERA_TRY(const Dim bins, one_known_size(in, 0, "num_mel_bins"));
        TESSERA_TRY(const Dim length, one_known_size(in, 1, "dft_length"));
        std::vector<Operand> inputs = {as_given("num_mel_bins", in[0])};
        inputs = concat(
            inputs, rest_as_given(
                        {"dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz"}, in));
        TESSERA_TRY(const Scalar rate, only_element(inputs[2]));
        TESSERA_TRY(const Scalar lower, only_element(inputs[3]));
        TESSERA_TRY(const Scalar upper, only_element(inputs[4]));

        const Axis s{"s", floor_div(length, 2) + 1}, bin{"m", bins};
        const auto mel = [](const Scalar& hertz) { return log(1.0 + hertz / 700.0); };
        const Scalar step = (mel(upper) - mel(lower)) / (1.0 * Scalar(bins + 2));
        // The corners of the triangles, as bins of the spectrum.
        const auto corner = [&](int i) {
          const Scalar hertz = 700.0 * (exp(mel(lower) + step * (Scalar(bin) + i)) - 1.0);
          return floor(hertz * Scalar(length + 1) / rate);
        };
        const Scalar left = corner(0), centre = corner(1), right = corner(2), at = 1.0 * Scalar(s);
        const Scalar rise = select(equal(left, centre), 1.0, (at - left) / (centre - left));
        const Scalar fall = (right - at) / (right - centre);
        const Scalar value =
            select(centre <= at && at < right, fall, select(left <= at && at <= centre, rise, 0.0));
        return Definition{.inputs = std::move(inputs),
                          .outputs = {output(dtype, each({s, bin}), value)}};
      },
  };
}

}  // namespace tessera::define
