#include <algorithm>

#include "bench/schedules/shapes.h"
#include "tessera/ir/builder.h"
#include "tessera/program/plan.h"

namespace tessera {
namespace {

using Kind = ContractionShape::Kind;

ContractionShape draw(Rng& rng) {
  while (true) {
    ContractionShape s;
    s.epilogue = one_of<std::string>(rng, {"none", "relu", "relu", "residual", "gelu"});
    const std::int64_t unit = one_of<std::int64_t>(rng, {8, 8, 16, 32, 64, 64});
    const std::uint64_t kind = rng.below(20);
    if (kind < 10) {
      s.window = one_of<std::int64_t>(rng, {1, 1, 1, 3, 3, 3, 5, 7});
      s.stride = rng.below(4) == 0 ? 2 : 1;
      s.n = one_of<std::int64_t>(rng, {1, 1, 1, 1, 2, 4, 8, 16, 32});
      s.h = s.w = log_uniform(rng, 4, 160, 1);
      if (rng.below(5) == 0) s.w = log_uniform(rng, 4, 160, 1);
      s.c = rng.below(8) == 0 ? one_of<std::int64_t>(rng, {3, 4, 8, 12})
                              : log_uniform(rng, 16, 2048, unit);
      s.f = log_uniform(rng, 16, 2048, unit);
    } else {
      s.kind = kind < 16 ? Kind::Weights : kind < 18 ? Kind::Batched : Kind::AcrossRows;
      s.n = s.kind == Kind::Batched      ? log_uniform(rng, 2, 192, 1)
            : s.kind == Kind::AcrossRows ? one_of<std::int64_t>(rng, {1, 1, 4, 16})
                                         : 1;
      s.h = 1;
      s.w = log_uniform(rng, 1, s.kind == Kind::Weights ? 16384 : 1024, rng.below(2) == 0 ? 1 : 16);
      s.c = log_uniform(rng, 16, 8192, unit);
      s.f = log_uniform(rng, 16, 8192, unit);
    }
    const std::int64_t pixels = s.n * s.h * s.w * s.stride * s.stride;
    const std::int64_t weights = s.c * s.f * s.window * s.window;
    constexpr std::int64_t kMostElements = 1 << 24;
    if (s.work() >= 2e6 && s.work() <= 3e10 && pixels * s.c <= kMostElements &&
        pixels * s.f <= kMostElements && weights <= kMostElements)
      return s;
  }
}

Tensor zeros(const std::vector<std::int64_t>& shape) {
  const std::vector<std::uint16_t> all(static_cast<std::size_t>(*element_count(shape)));
  return Tensor::of(DType::F16, shape, std::span<const std::uint16_t>(all));
}

Expected<Graph> graph_of(const ContractionShape& s) {
  GraphBuilder g;
  Val product, bias;
  Shape shape;  // of the result
  if (s.kind == Kind::Window) {
    const std::int64_t pad = s.window / 2;
    const Val image =
        g.input("a", DType::F16, {s.n, s.c, (s.h - 1) * s.stride + 1, (s.w - 1) * s.stride + 1});
    product = g.op("conv", {image, g.constant(zeros({s.f, s.c, s.window, s.window}), "b")},
                   {{"pads", Ints(4, pad)}, {"strides", Ints(2, s.stride)}});
    bias = g.constant(zeros({s.f, 1, 1}), "bias");
    shape = {s.n, s.f, s.h, s.w};
  } else if (s.kind ==
             Kind::AcrossRows) {  // along the rows: the sum is over the first axis of the matrix
    const Val a = g.input("a", DType::F16, {s.n, s.c, s.w});
    product = g.op("matmul", {g.constant(zeros({s.f, s.c}), "b"), a});
    bias = g.constant(zeros({s.f, 1}), "bias");
    shape = {s.n, s.f, s.w};
  } else {
    const bool is_batched = s.kind == Kind::Batched;
    const Val a = g.input("a", DType::F16, {s.n, s.w, s.c});
    const Val b =
        is_batched ? g.input("b", DType::F16, {s.n, s.c, s.f}) : g.constant(zeros({s.c, s.f}), "b");
    product = g.op("matmul", {a, b});
    bias = g.constant(zeros({s.f}), "bias");
    shape = {s.n, s.w, s.f};
  }
  Val out = product;
  if (s.epilogue != "none") out = g.op("add", {out, bias});
  if (s.epilogue == "residual") out = g.op("add", {out, g.input("more", DType::F16, shape)});
  if (s.epilogue == "relu" || s.epilogue == "residual") out = g.op("relu", {out});
  if (s.epilogue == "gelu") out = g.op("mul", {out, g.op("sigmoid", {out})});
  return g.finish({{"out", out}});
}

/// The group with the contraction, in the midst of a model, where tensors lie as kernels like them.
Expected<lower::Group> group_of(const ContractionShape& shape,
                                const program::CompileOptions& code) {
  TESSERA_TRY(const Graph graph, graph_of(shape));
  program::Lowerings lowerings = program::lowerings_for(code);
  TESSERA_TRY(const program::Draft draft,
              program::plan(graph, {code, lowerings, program::Boundary::Inside}));
  for (const tune::GroupTask& task : tune::tasks_of(draft, lowerings))
    if (std::holds_alternative<lower::BlockContractionSchedule>(task.schedules[task.usual]))
      return task.group;
  return Diagnostic{.id = "no-schedule", .message = "the shape is lowered without a contraction"};
}

}  // namespace

ShapeFamily gpu_shapes() {
  return {.code = {.machine = machine::cuda("sm_90a"), .contraction_dtype = DType::F16},
          .draw = draw,
          .group = group_of};
}

}  // namespace tessera
