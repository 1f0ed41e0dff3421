#include "bench/gpu/in_model.h"

#include <map>
#include <set>

#include "tessera/codegen/gpu_image.h"
#include "tessera/program/plan.h"

namespace tessera {
namespace {

using runtime::Value;
using runtime::step::Launch;

/// The arguments of a kernel, without memory, and the values that they lie in.
Step step_of(const tile::Kernel& kernel, const Launch& launch) {
  Step step{
      .kernel = kernel,
      .arguments = {},
      .grid = launch.grid,
      .options = codegen::ptx_options(machine::cuda(), {.precision = codegen::Precision::Fast})};
  for (std::size_t i = 0; i < launch.patches.size(); ++i) {
    const tile::Type& type = kernel.type(kernel.params()[i]);
    const Launch::Patch& patch = launch.patches[i];
    step.arguments.push_back(
        type.is_view() ? tile::Argument::view(type.dtype, nullptr, type.shape, type.strides)
                       : tile::Argument::pointer(type.dtype, nullptr, patch.bytes));
    TESSERA_CHECK(patch.at.offset == 0, "{} begins within a value", kernel.name);
    step.rooms.push_back(patch.at.value);
  }
  return step;
}

}  // namespace

Expected<program::Draft> plan_of(const Expected<Graph>& graph, const machine::Machine& gpu) {
  if (!graph) return graph.error();
  const program::CompileOptions options{.machine = gpu, .contraction_dtype = DType::F16};
  program::Lowerings lowerings = program::lowerings_for(options);
  return program::plan(*graph, {options, lowerings, program::Boundary::Inside});
}

std::vector<Step> steps_of(const program::Draft& draft) {
  std::vector<Step> steps;
  for (const runtime::Step& step : draft.program.steps) {
    const auto* launch = std::get_if<Launch>(&step);
    TESSERA_CHECK(launch != nullptr, "steps that are no kernels");
    steps.push_back(step_of(*draft.kernels[launch->kernel], *launch));
  }
  return steps;
}

Bench in_model(std::string name, const Expected<Graph>& graph, double amount, const char* unit) {
  Bench bench{std::move(name), {}, {}, amount, unit};
  const auto draft = plan_of(graph, machine::cuda());
  if (!draft) {
    bench.steps.push_back({.kernel = draft.error(), .arguments = {}, .grid = {}});
    return bench;
  }
  bench.steps = steps_of(*draft);
  const runtime::Program& program = draft->program;
  std::set<std::size_t> left;  // by one kernel to another
  for (const Step& step : bench.steps) left.insert(step.rooms.back());
  for (const runtime::ValueIndex output : program.outputs) left.erase(output);
  // What no kernel touches needs no room: an image lies with its neighbours.
  std::map<std::size_t, std::size_t> rooms;
  for (Step& step : bench.steps)
    for (std::size_t& value : step.rooms) {
      const auto [room, is_new] = rooms.emplace(value, bench.rooms.size());
      const Value& of = program.values[value];
      if (is_new) bench.rooms.push_back({of.dtype, of.bytes, left.contains(value)});
      value = room->second;
    }
  bench.name += " as " + draft->report.steps.back().strategy;
  return bench;
}

}  // namespace tessera
