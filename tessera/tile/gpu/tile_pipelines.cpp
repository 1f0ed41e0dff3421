#include "tessera/tile/gpu/tile_pipelines.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "tessera/tile/gpu/tensor_maps.h"

namespace tessera::tile::gpu {
namespace {

/// Finder of the loads of a program whose tiles matmuls read from shared memory.
class Finder {
 public:
  explicit Finder(const PlannedKernel& planned) : planned_(planned), kernel_(planned.kernel) {}

  Decision<TilePipelines> run() {
    for_each_op(kernel_, kernel_.body, [&](OpId id) { follow(id); });
    if (!why_not_.empty()) return DeclineReason{why_not_};
    if (loads_.empty()) return DeclineReason{"no matmul reads a tile of a view"};
    visit(kernel_.body, {});
    if (!why_not_.empty()) return DeclineReason{why_not_};
    need_addresses();
    if (!why_not_.empty()) return DeclineReason{why_not_};
    LoopPipeline all;
    for (const TilePipeline& pipeline : found_.pipelines)
      all.operands.push_back(pipeline.loads.front());
    const auto maps = tensor_maps_of(planned_, all);
    if (!maps) return DeclineReason{maps.why_not()};
    found_.maps = *maps;
    for (runtime::cuda::TensorMap& map : found_.maps)
      map.order = runtime::cuda::axis_order(map.box, map.column);
    return std::move(found_);
  }

 private:
  void decline(std::string why) {
    if (why_not_.empty()) why_not_ = std::move(why);
  }

  /// Whether an operation names the same tile in shared memory: transposed, or its rows flattened.
  bool names(const Operation& op) const {
    const Extents &from = planned_.type(op.in[0]).shape, &to = planned_.type(op.out[0]).shape;
    if (op.code == Code::Permute) return from.size() == 2;
    return op.code == Code::Reshape && to.size() >= 2 && from.size() > 2 &&
           (to.back() == from.back() ||
            (to.size() == 2 && std::equal(to.begin(), to.end(), from.end() - 2)));
  }

  /// Loads are candidates until something else than a matmul reads them.
  void follow(OpId id) {
    const Operation& op = kernel_.ops[id];
    if (op.code == Code::Vload && planned_.type(op.out[0]).is_tile())
      origin_.emplace(op.out[0], id);
    if (op.code == Code::Dot) return follow_dot(op);
    const bool is_name = !op.in.empty() && (op.code == Code::Permute || op.code == Code::Reshape) &&
                         origin_.contains(op.in[0]) && names(op);
    if (is_name) {
      origin_.emplace(op.out[0], origin_.at(op.in[0]));
      return;
    }
    for (const ValueId in : op.in)
      if (const auto from = origin_.find(in); from != origin_.end()) {
        if (loads_.contains(from->second)) decline("a tile has other uses than matmuls");
        computed_.insert(from->second);
      }
  }
  void follow_dot(const Operation& dot) {
    if (!planned_.plan.uses_wgmma(dot))
      return decline(std::string(planned_.plan.why_not_wgmma(dot)));
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const auto from = origin_.find(dot.in[side]);
      if (from != origin_.end() && !computed_.contains(from->second)) {
        loads_.insert(from->second);
        continue;
      }
      const auto fragments = side == 0 ? planned_.plan.fragments(dot) : std::nullopt;
      if (!fragments || planned_.home(dot.in[side]) != *fragments)
        return decline("an operand is neither loaded from a view nor a fragment in registers");
    }
  }

  /// Loads that the matmuls of an operation read.
  void add_loads_of(const Operation& op, std::set<OpId>& read) const {
    for (const Region& part : op.regions)
      for (const OpId inner : part.ops) add_loads_of(kernel_.ops[inner], read);
    if (op.code != Code::Dot) return;
    for (const ValueId in : op.in)
      if (const auto from = origin_.find(in); from != origin_.end()) read.insert(from->second);
  }

  /// Assigns the loads of a region to pipelines, in order.
  void visit(const Region& region, const std::vector<OpId>& loops) {
    std::map<OpId, OpId> last;  // by load of this region
    for (const OpId id : region.ops) {
      const Operation& op = kernel_.ops[id];
      std::set<OpId> read;
      add_loads_of(op, read);
      for (const OpId load : read)
        if (std::ranges::count(region.ops, load) != 0) last[load] = id;
      if (op.code == Code::Barrier || op.code == Code::Atomic || op.code == Code::Cas)
        decline("programs may synchronize with each other");
      if (loads_.contains(id)) assign(id, loops);
      wrote_ = wrote_ || writes_memory(op.code);
      std::vector<OpId> inner = loops;
      inner.push_back(id);
      for (const Region& part : op.regions) visit(part, inner);
    }
    for (const auto& [load, by] : last) found_.last_reads[by].push_back(load);
  }
  void assign(OpId id, const std::vector<OpId>& loops) {
    if (wrote_) return decline("a store comes before a load");
    for (const OpId loop : loops) {
      if (kernel_.ops[loop].code != Code::For) return decline("a load is in a branch");
      loops_.insert(loop);
    }
    const Decision<StagedOperand> staged = staged_tile(planned_, id);
    if (!staged) return decline(staged.why_not());
    const Operation& load = kernel_.ops[id];
    const auto is_same = [&](const TilePipeline& pipeline) {
      const Operation& first = kernel_.ops[pipeline.loads.front().load];
      return first.in[0] == load.in[0] &&
             planned_.type(first.out[0]).shape == planned_.type(load.out[0]).shape;
    };
    auto pipeline = std::ranges::find_if(found_.pipelines, is_same);
    if (pipeline == found_.pipelines.end())
      pipeline = found_.pipelines.insert(pipeline, TilePipeline{});
    pipeline->loads.push_back(*staged);
  }

  /// Scalars and views that the addresses of loads and the bounds of their loops are computed of.
  void need_addresses() {
    std::vector<ValueId> open;
    std::set<ValueId> known(kernel_.params().begin(), kernel_.params().end());
    for (const OpId load : loads_)
      open.insert(open.end(), kernel_.ops[load].in.begin(), kernel_.ops[load].in.end());
    for (const OpId loop : loops_) {
      const Operation& op = kernel_.ops[loop];
      known.insert(op.regions[0].params[0]);
      open.insert(open.end(), op.in.begin(), op.in.begin() + 3);  // from, to, step
    }
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      if (known.contains(id)) continue;
      const Operation* op = planned_.defining_op(id);
      if (op == nullptr || planned_.type(id).is_tile() || has_effect(op->code) ||
          reads_memory(op->code) || !op->regions.empty())
        return decline(
            "its addresses depend on more than parameters, program ids and loop indices");
      if (found_.needed.insert(*planned_.definitions[id]).second)
        open.insert(open.end(), op->in.begin(), op->in.end());
    }
  }

  const PlannedKernel& planned_;
  const Kernel& kernel_;
  std::map<ValueId, OpId> origin_;  // the load that a tile in memory comes from
  std::set<OpId> computed_;         // loads that something else than a matmul reads
  std::set<OpId> loads_, loops_;
  bool wrote_ = false;
  TilePipelines found_;
  std::string why_not_;
};

}  // namespace

const TilePipeline* TilePipelines::of(OpId load) const {
  for (const TilePipeline& pipeline : pipelines)
    if (std::ranges::count(pipeline.loads, load, &StagedOperand::load) != 0) return &pipeline;
  return nullptr;
}

Decision<TilePipelines> find_tile_pipelines(const PlannedKernel& planned) {
  return Finder(planned).run();
}

void choose_stages(TilePipelines& all, int most, std::int64_t bytes) {
  for (TilePipeline& pipeline : all.pipelines) {
    pipeline.count = 1;
    bytes -= pipeline.stage_bytes();
  }
  // Further stages go to the pipelines that are read last first: their buffers are released last.
  for (int count = 2; count <= most; ++count)
    for (auto pipeline = all.pipelines.rbegin(); pipeline != all.pipelines.rend(); ++pipeline) {
      if (pipeline->loads.size() == 1 || pipeline->stage_bytes() > bytes) continue;
      bytes -= pipeline->stage_bytes();
      pipeline->count = count;
    }
}

}  // namespace tessera::tile::gpu
