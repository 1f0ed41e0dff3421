#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "tessera/runtime/host/arguments.h"
#include "tessera/runtime/host/functions.h"
#include "tessera/support/rng.h"

namespace tessera::host {
namespace {

Rng seeded(const Arguments& in) {
  return Rng(in.attrs().has("seed") ? std::bit_cast<std::uint64_t>(in.attrs().f("seed")) : 0);
}

double uniform(const Attrs& attrs, Rng& rng) {
  const double low = attrs.f("low"), high = attrs.f("high");
  return low + rng.uniform() * (high - low);
}

/// Box-Muller; 1 - u keeps the logarithm finite.
double normal(const Attrs& attrs, Rng& rng) {
  const double radius = std::sqrt(-2 * std::log(1 - rng.uniform()));
  const double angle = 2 * std::numbers::pi * rng.uniform();
  return attrs.f("mean") + attrs.f("scale") * radius * std::cos(angle);
}

using Distribution = double (*)(const Attrs&, Rng&);

Results drawn(const Arguments& in, DType dtype, Shape shape, Distribution draw) {
  if (!is_float(dtype))
    return in.fault(fmt::format("dtype={}", to_string(dtype)),
                    "a floating-point dtype is expected");
  TESSERA_TRY(Draft out, in.allocate(dtype, std::move(shape)));
  Rng rng = seeded(in);
  for (std::int64_t i = 0; i < out.count(); ++i) out.set_number(i, draw(in.attrs(), rng));
  return in.results({std::move(out).finish()});
}

Results drawn_new(const Arguments& in, Distribution draw) {
  TESSERA_TRY(const DType dtype, in.dtype("dtype", DType::F32));
  return drawn(in, dtype, in.attrs().ints("shape"), draw);
}

Results drawn_like(const Arguments& in, Distribution draw) {
  TESSERA_TRY(const Tensor like, in.tensor(0));
  TESSERA_TRY(const DType dtype, in.dtype("dtype", like.dtype));
  return drawn(in, dtype, like.shape, draw);
}

}  // namespace

Results random_uniform(const Call& call) {
  return drawn_new(Arguments(call, "random_uniform"), uniform);
}
Results random_normal(const Call& call) {
  return drawn_new(Arguments(call, "random_normal"), normal);
}
Results random_uniform_like(const Call& call) {
  return drawn_like(Arguments(call, "random_uniform_like"), uniform);
}
Results random_normal_like(const Call& call) {
  return drawn_like(Arguments(call, "random_normal_like"), normal);
}

Results bernoulli(const Call& call) {
  const Arguments in(call, "bernoulli");
  TESSERA_TRY(const Tensor chances, in.float_tensor(0));
  TESSERA_TRY(const DType dtype, in.dtype("dtype", chances.dtype));
  if (dtype == DType::String) return in.fault("dtype=string", "a dtype of numbers is expected");
  TESSERA_TRY(Draft out, in.allocate(dtype, chances.shape));
  Rng rng = seeded(in);
  for (std::int64_t i = 0; i < out.count(); ++i) {
    const double chance = number_at(chances, i);
    if (!(chance >= 0 && chance <= 1))
      return in.fault(fmt::format("{} is no probability", chance), "it must lie in [0, 1]");
    out.set_integer(i, rng.uniform() < chance ? 1 : 0);
  }
  return in.results({std::move(out).finish()});
}

Results multinomial(const Call& call) {
  const Arguments in(call, "multinomial");
  TESSERA_TRY(const Tensor logits, in.float_tensor(0));
  TESSERA_TRY(const DType dtype, in.dtype("dtype", DType::I32));
  const std::int64_t samples = in.attrs().i("sample_size");
  if (logits.shape.size() != 2)
    return in.fault(fmt::format("shape {}", shape_text(logits.shape)),
                    "[batch, class] is expected");
  if (!is_integer(dtype))
    return in.fault(fmt::format("dtype={}", to_string(dtype)), "an integer dtype is expected");
  const std::int64_t batches = logits.shape[0], classes = logits.shape[1];
  if (samples < 1) return in.fault(fmt::format("sample_size={}", samples), "it must be positive");
  if (classes < 1) return in.fault("there are no classes to choose from");
  TESSERA_TRY(Draft out, in.allocate(dtype, {batches, samples}));
  Rng rng = seeded(in);
  for (std::int64_t b = 0; b < batches; ++b) {
    std::vector<double> cumulative;
    double largest = -HUGE_VAL, total = 0;
    for (std::int64_t c = 0; c < classes; ++c)
      largest = std::max(largest, number_at(logits, b * classes + c));
    for (std::int64_t c = 0; c < classes; ++c)
      cumulative.push_back(total += std::exp(number_at(logits, b * classes + c) - largest));
    if (!std::isfinite(total))
      return in.fault(fmt::format("row {} is no distribution of log-probabilities", b));
    for (std::int64_t s = 0; s < samples; ++s) {
      const auto chosen = std::ranges::upper_bound(cumulative, rng.uniform() * total);
      // Rounding may reach the total, where the search ends past the last class.
      out.set_integer(b * samples + s,
                      std::min(std::distance(cumulative.begin(), chosen), classes - 1));
    }
  }
  return in.results({std::move(out).finish()});
}

}  // namespace tessera::host
