#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tessera/codegen/gpu_image.h"
#include "tessera/engine/engine.h"
#include "tessera/interp/interp.h"
#include "tessera/ir/bind.h"
#include "tessera/passes/pipeline.h"
#include "tessera/program/backend.h"
#include "tessera/program/compile.h"
#include "tessera/program/launch_arguments.h"
#include "tessera/runtime/session.h"
#include "tests/codegen/ptx_emulator.h"
#include "tests/support/evaluate.h"
#include "tests/support/graph_check.h"

namespace tessera::program {

/// The graph with all inputs but the first ones for constants: weights are packed.
inline Graph with_weights(const Graph& graph, const std::vector<Tensor>& tensors,
                          std::size_t first) {
  GraphBuilder out;
  Vals values;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    values.push_back(i < first ? out.input("", {.type = graph.type(graph.inputs()[i])})
                               : out.constant(tensors[i]));
  const auto outputs = placed(out, graph, values, {}, KnownSizes::Constant);
  EXPECT_TRUE(outputs);
  return *out.finish(*outputs);
}

struct Case {
  std::string graph;
  std::vector<Tensor> inputs;  // the first is the caller's, the others are weights
  std::size_t given = 1;
  CompileOptions options = {};
  double tolerance = 2e-5;
};

/// A program for a GPU, whose kernels are emulated thread by thread, computes what the interpreter
/// computes.
inline CompileReport expect_same_on_gpu(const Case& one) {
  const Graph graph = with_weights(testing::parsed(one.graph), one.inputs, one.given);
  const std::vector<Datum> inputs(one.inputs.begin(),
                                  one.inputs.begin() + static_cast<std::ptrdiff_t>(one.given));
  const auto expected = interp::run(graph, inputs, {});
  EXPECT_TRUE(expected) << to_string(expected.error());
  const auto optimized = passes::optimize(graph, {});
  EXPECT_TRUE(optimized);
  CompileOptions options = one.options;
  if (!options.machine.is_gpu()) options.machine = machine::cuda();
  const auto compiled = compile(optimized->graph, options);
  EXPECT_TRUE(compiled) << to_string(compiled.error());
  if (!compiled || !expected) return {};
  EXPECT_TRUE(compiled->program.is_for_gpu());
  const codegen::PtxOptions ptx =
      codegen::ptx_options(options.machine, image_options(options, 0).kernel);
  const auto loaded = runtime::LoadedProgram::load(compiled->program);
  EXPECT_TRUE(loaded) << to_string(loaded.error());
  if (!loaded) return {};
  const std::vector<codegen::LaunchFacts> launches =
      launch_facts(compiled->program, compiled->kernels);
  runtime::SessionOptions emulated{.host = engine::interpreter_host()};
  emulated.emulate = [&](const runtime::step::Launch& launch,
                         std::span<const std::uint64_t> words) {
    const tile::Kernel& kernel = *compiled->kernels[launch.kernel];
    const codegen::PtxOptions own = codegen::program_ptx_options(ptx, launches[launch.kernel]);
    return codegen::emulate(kernel, launch_arguments(kernel, launch, words), launch.grid,
                            {.ptx = own});
  };
  auto session = runtime::Session::create(*loaded, emulated);
  EXPECT_TRUE(session) << to_string(session.error());
  if (!session) return {};
  const auto found = (*session)->run(inputs);
  EXPECT_TRUE(found) << to_string(found.error());
  if (!found) return {};
  for (std::size_t i = 0; i < expected->size(); ++i)
    testing::expect_near((*found)[i].tensor(), (*expected)[i].tensor(), one.tolerance);
  return compiled->report;
}

}  // namespace tessera::program
