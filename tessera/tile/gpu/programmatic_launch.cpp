#include "tessera/tile/gpu/programmatic_launch.h"

#include <algorithm>

#include "tessera/tile/gpu/programs.h"

namespace tessera::tile::gpu {
namespace {

/// Whether an instruction may stand before await_grids: it accesses registers and shared memory.
bool is_local(const Instruction& instruction) {
  return std::holds_alternative<Compute>(instruction) ||
         std::holds_alternative<Convert>(instruction) ||
         std::holds_alternative<Barrier>(instruction);
}

class ProgrammaticLaunch {
 public:
  ProgrammaticLaunch(const PlannedKernel& planned, const std::set<ValueId>& constants)
      : planned_(planned), constants_(constants) {}

  void apply(Body& body) const {
    const auto first = std::ranges::find_if_not(body, is_local);
    auto* const tasks = first == body.end() ? nullptr : std::get_if<WarpTasks>(&*first);
    if (tasks != nullptr) return apply(*tasks);
    auto* const pipelines = first == body.end() ? nullptr : std::get_if<PipelineTasks>(&*first);
    if (pipelines != nullptr) return apply(*pipelines);
    auto* const prefetch = first == body.end() ? nullptr : std::get_if<PrefetchFirst>(&*first);
    std::vector<Instruction> before;
    if (prefetch != nullptr) {
      prefetch->constants = constant_loads(prefetch->stages.pipeline);
      if (!prefetch->constants.empty())
        before.emplace_back(PrefetchConstants{.loop = prefetch->loop,
                                              .stages = prefetch->stages,
                                              .is_published = prefetch->is_published,
                                              .loads = prefetch->constants});
    }
    before.emplace_back(AwaitGrids{});
    body.insert(first, before.begin(), before.end());
    body.insert(body.begin(), LaunchDependents{});
  }

 private:
  std::vector<OpId> constant_loads(const LoopPipeline& pipeline) const {
    std::vector<OpId> loads;
    for (const StagedOperand& staged : pipeline.operands) {
      const auto root = root_of(planned_, planned_.kernel.ops[staged.load].in[0]);
      if (root && constants_.contains(*root)) loads.push_back(staged.load);
    }
    return loads;
  }

  void apply(WarpTasks& tasks) const {
    tasks.start.insert(tasks.start.begin(), LaunchDependents{});
    const auto fill = std::ranges::find_if_not(tasks.producer, is_local);
    auto* const stages = fill == tasks.producer.end() ? nullptr : std::get_if<FillStages>(&*fill);
    if (stages != nullptr) stages->constants = constant_loads(tasks.stages.pipeline);
    if (stages != nullptr && !stages->constants.empty()) {
      tasks.producer_start = Body();
      tasks.producer_start.assign(tasks.producer.begin(), fill);
      tasks.producer_start.emplace_back(FillConstants{.loads = stages->constants});
    }
    tasks.producer.insert(tasks.producer.begin(), AwaitGrids{});
    tasks.consumer.insert(tasks.consumer.begin(), AwaitGrids{});
  }

  static void apply(PipelineTasks& tasks) {
    tasks.start.insert(tasks.start.begin(), LaunchDependents{});
    tasks.producer.insert(tasks.producer.begin(), AwaitGrids{});
    tasks.consumer.insert(tasks.consumer.begin(), AwaitGrids{});
  }

  const PlannedKernel& planned_;
  const std::set<ValueId>& constants_;
};

}  // namespace

BlockProgram programmatic_launch(BlockProgram program, const PlannedKernel& planned,
                                 const std::set<ValueId>& constants) {
  ProgrammaticLaunch(planned, constants).apply(program.body);
  return program;
}

}  // namespace tessera::tile::gpu
