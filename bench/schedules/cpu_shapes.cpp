#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "bench/schedules/shapes.h"
#include "tessera/expr/text.h"

namespace tessera {

namespace {

/// Names of the kinds in tables, in the order of ContractionShape::Kind.
constexpr std::array<std::string_view, 4> kKinds = {"conv", "matmul", "batched", "mixer"};

}  // namespace

std::string ContractionShape::text() const {
  return fmt::format("{} {} {} {} {} {} {} {} {}", kKinds[static_cast<std::size_t>(kind)], n, h, w,
                     c, f, window, stride, epilogue);
}

ContractionShape ContractionShape::parse(const std::string& text) {
  std::istringstream in(text);
  ContractionShape s;
  std::string kind;
  in >> kind >> s.n >> s.h >> s.w >> s.c >> s.f >> s.window >> s.stride >> s.epilogue;
  const auto found = std::ranges::find(kKinds, kind);
  if (found != kKinds.end()) s.kind = static_cast<Kind>(found - kKinds.begin());
  return s;
}

double ContractionShape::work() const {
  return static_cast<double>(n * h * w) * static_cast<double>(c * f * window * window);
}

std::int64_t log_uniform(Rng& rng, double low, double high, std::int64_t unit) {
  const double x = std::exp(std::log(low) + rng.uniform() * std::log(high / low));
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(x / static_cast<double>(unit) + 0.5)) *
         unit;
}

namespace {

using Kind = ContractionShape::Kind;

/// Shapes from 1 to 400 million multiply-adds.
ContractionShape draw(Rng& rng) {
  while (true) {
    ContractionShape s;
    s.epilogue = one_of<std::string>(rng, {"none", "relu", "relu", "residual", "gelu"});
    const std::uint64_t kind = rng.below(10);
    if (kind < 7) {
      s.window = one_of<std::int64_t>(rng, {1, 1, 1, 3, 3, 3, 5, 7});
      s.stride = rng.below(4) == 0 ? 2 : 1;
      s.n = rng.below(6) == 0 ? one_of<std::int64_t>(rng, {2, 4}) : 1;
      s.h = s.w = log_uniform(rng, 5, 120, 1);
      if (rng.below(5) == 0) s.w = log_uniform(rng, 5, 120, 1);
      s.c = rng.below(8) == 0 ? one_of<std::int64_t>(rng, {3, 4, 8})
                              : log_uniform(rng, 16, 1024, rng.below(2) == 0 ? 16 : 8);
      s.f = log_uniform(rng, 16, 1024, rng.below(2) == 0 ? 16 : 8);
    } else {
      s.kind = kind < 9 ? Kind::Weights : Kind::Batched;
      s.n = s.kind == Kind::Batched ? log_uniform(rng, 2, 24, 1) : 1;
      s.h = 1;
      s.w = log_uniform(rng, 1, 1024, 1);
      s.c = log_uniform(rng, 16, 3072, 8);
      s.f = log_uniform(rng, 16, 3072, 8);
    }
    if (s.work() >= 1e6 && s.work() <= 4e8) return s;
  }
}

Expected<lower::Group> group_of(const ContractionShape& s, const program::CompileOptions&) {
  const std::string sum =
      s.kind == Kind::Window
          ? fmt::format(
                "(sum(c: {}, r: {}, s: {}) {{ (a[n, {} * y + r - {}, {} * x + s - {}, c] else 0.0) "
                "* b[f, c, r, s] }})",
                s.c, s.window, s.window, s.stride, s.window / 2, s.stride, s.window / 2)
      : s.kind == Kind::Weights ? fmt::format("(sum(c: {}) {{ a[n, y, x, c] * b[c, f] }})", s.c)
                                : fmt::format("(sum(c: {}) {{ a[n, y, x, c] * b[n, c, f] }})", s.c);
  const std::int64_t in_h = s.kind == Kind::Window ? (s.h - 1) * s.stride + 1 : s.h,
                     in_w = s.kind == Kind::Window ? (s.w - 1) * s.stride + 1 : s.w;
  std::vector<Operand> inputs = {{"a", DType::F32, {s.n, in_h, in_w, s.c}}};
  if (s.kind == Kind::Window) inputs.push_back({"b", DType::F32, {s.f, s.c, s.window, s.window}});
  if (s.kind == Kind::Weights) inputs.push_back({"b", DType::F32, {s.c, s.f}});
  if (s.kind == Kind::Batched) inputs.push_back({"b", DType::F32, {s.n, s.c, s.f}});
  std::string value = sum;
  if (s.epilogue != "none") {
    inputs.push_back({"bias", DType::F32, {s.f}});
    value = sum + " + bias[f]";
  }
  if (s.epilogue == "residual") {
    inputs.push_back({"more", DType::F32, {s.n, s.h, s.w, s.f}});
    value = "max(" + value + " + more[n, y, x, f], 0.0)";
  }
  if (s.epilogue == "relu") value = "max(" + value + ", 0.0)";
  if (s.epilogue == "gelu") value = "(" + value + ") * tanh(" + value + ")";
  std::string operands;
  for (const Operand& input : inputs) {
    std::vector<std::string> dims;
    for (const Dim& dim : input.shape) dims.push_back(dim.to_string());
    operands += fmt::format("{}{}: f32[{}]", operands.empty() ? "" : ", ", input.name,
                            fmt::join(dims, ", "));
  }
  TESSERA_TRY(
      const Definition definition,
      parse_definition(fmt::format("define({}) {{ out: f32[n: {}, y: {}, x: {}, f: {}] = {} }}",
                                   operands, s.n, s.h, s.w, s.f, value)));
  lower::Group group{.results = {"out"}};
  TESSERA_TRY(group.stages, tile::then({}, definition, inputs));
  if (s.kind != Kind::Batched) group.weights = {"b", "bias"};
  return group;
}

}  // namespace

ShapeFamily cpu_shapes() {
  program::CompileOptions code;
  code.machine.cores = 1;
  return {.code = code, .draw = draw, .group = group_of};
}

}  // namespace tessera
