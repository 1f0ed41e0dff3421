#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tessera/tile/gpu/programs.h"
#include "tessera/tile/gpu/schedule.h"
#include "tessera/tile/remarks.h"

namespace tessera::tile::gpu {
namespace {

/// Prints index bits as `1:0 0:3 1:3-7`, by axis and in order; `-`: none.
std::string bits_text(const std::vector<IndexBit>& bits) {
  std::string text;
  for (std::size_t i = 0, end = 0; i < bits.size(); i = end) {
    const IndexBit& first = bits[i];
    const auto at = [&](std::size_t other) {
      return first.axis < 0 ? IndexBit{}
                            : IndexBit{first.axis, first.bit + static_cast<int>(other - i)};
    };
    for (end = i + 1; end < bits.size() && bits[end] == at(end);) ++end;
    text += i == 0 ? "" : " ";
    text += first.axis < 0 ? "-" : fmt::format("{}:{}", first.axis, first.bit);
    if (first.axis >= 0 && end > i + 1) text += fmt::format("-{}", bits[end - 1].bit);
  }
  return text;
}

/// Printer of a scheduled kernel: remarks on all operations, and a header.
class Remarker {
 public:
  explicit Remarker(const ScheduledKernel& scheduled)
      : scheduled_(scheduled), planned_(*scheduled.planned), plan_(*scheduled.plan) {}

  std::string run() {
    region(planned_.kernel.body, nullptr, {});
    for (const WarpSpecialization::Early& early : early_loads())
      add(early.load, "loaded before the loop");
    if (scheduled_.mapping.rows) rows();
    std::string head = block_text() + specialization_text();
    if (scheduled_.program.shared.bytes > 0)
      head += fmt::format("// {} bytes of shared memory\n", scheduled_.program.shared.bytes);
    for (std::size_t i = 0; i < layouts_.size(); ++i)
      head += fmt::format("// L{}: {}\n", i, layouts_[i]);
    return head + tile::to_text(planned_.kernel, remarks_);
  }

 private:
  std::vector<WarpSpecialization::Early> early_loads() const {
    return scheduled_.warp_specialization && scheduled_.mapping.warp_specialized
               ? scheduled_.warp_specialization->early
               : std::vector<WarpSpecialization::Early>{};
  }

  void add(OpId id, const std::string& remark) {
    std::string& all = remarks_[id];
    all += (all.empty() ? "" : "; ") + remark;
  }

  std::string name(const Layout& layout) {
    const std::string text =
        fmt::format("registers [{}], threads [{}]", bits_text(layout.register_bits()),
                    bits_text(layout.thread_bits()));
    const auto found = std::find(layouts_.begin(), layouts_.end(), text);
    const auto number = found - layouts_.begin();
    if (found == layouts_.end()) layouts_.push_back(text);
    return fmt::format("L{}", number);
  }

  std::string block_text() const {
    const BlockMapping& mapping = scheduled_.mapping;
    const int threads = plan_.threads();
    std::string text = fmt::format("// a block of {} threads: ", scheduled_.threads());
    if (mapping.warp_specialized) {
      const ConsumerGroups groups = consumer_groups_of(threads);
      text += fmt::format("{} of {} threads with {} registers each, {} producer threads with {}",
                          groups.count == 1 ? "one consumer group" : "two consumer groups", threads,
                          groups.consumer_registers, kProducerThreads, groups.producer_registers);
    } else if (mapping.programs > 1) {
      text += fmt::format("{} programs, one warp each", mapping.programs);
    } else {
      text += "one program";
    }
    text += mapping.persistent || mapping.warp_specialized ? ", persistent\n" : "\n";
    if (!mapping.rows) return text;
    text += fmt::format("// rows: {} bytes per thread", scheduled_.rows.bytes_per_thread);
    if (mapping.coarsening > 1) text += fmt::format(", {} programs merged", mapping.coarsening);
    if (scheduled_.rows.registers > 0)
      text += fmt::format(", {} registers", scheduled_.rows.registers);
    if (mapping.persistent) text += fmt::format(", {} prefetched", mapping.prefetched);
    if (mapping.packed) text += ", packed until used";
    if (mapping.cut != nullptr)
      text += fmt::format(", {} elements in parts of {}, {} bytes cached", mapping.cut->extent,
                          mapping.cut->part, mapping.cached_bytes);
    return text + "\n";
  }

  std::string specialization_text() const {
    if (scheduled_.mapping.rows) return {};
    if (scheduled_.mapping.tile_pipelines) {
      std::string text;
      for (const TilePipeline& pipeline : scheduled_.tile_pipelines->pipelines)
        text += fmt::format("// a pipeline of {} stages of {} bytes, filled by TMA\n",
                            pipeline.count, pipeline.stage_bytes());
      return text;
    }
    if (!scheduled_.warp_specialization)
      return fmt::format("// no warp specialization: {}\n",
                         scheduled_.warp_specialization.why_not());
    const WarpSpecialization& specialization = *scheduled_.warp_specialization;
    return specialization.maps.empty()
               ? fmt::format("// no tensor maps: {}\n", specialization.no_maps_reason)
               : fmt::format("// {} tensor maps\n", specialization.maps.size());
  }

  void region(const Region& region, const Operation* loop, const LoopPipeline& pipeline) {
    for (const OpId id : region.ops) {
      const Operation& op = planned_.kernel.ops[id];
      switch (op.code) {
        case Code::For: {
          const auto inner = pipeline_of(planned_, op, scheduled_.mapping.stages);
          add(id, inner ? pipeline_text(*inner, id) : "no prefetching: " + inner.why_not());
          this->region(op.regions[0], &op, inner ? *inner : LoopPipeline{});
          break;
        }
        case Code::Dot: add(id, dot_text(op, loop)); break;
        case Code::Vload: add(id, load_text(id, pipeline)); break;
        case Code::Vstore: add(id, access_text(op, planned_.type(op.in.back()).shape)); break;
        case Code::Reduce:
        case Code::Scan: place(id); break;  // their regions are elementwise
        default:
          place(id);
          for (const Region& inner : op.regions) this->region(inner, nullptr, {});
      }
    }
  }

  void rows() {
    const ProgramDependences dependences = program_dependences(planned_.kernel);
    const BlockMapping& mapping = scheduled_.mapping;
    if (!mapping.persistent) {
      for (const auto& [id, known] : known_accesses(planned_, dependences))
        if (known.constant) add(id, "read-only, shared by all programs");
      return;
    }
    for (const PrefetchedLoad& load : prefetched_loads(planned_, dependences))
      add(load.load, load.fixed ? "loaded once for all programs"
                                : fmt::format("prefetched, distance {}", mapping.prefetched));
  }

  void place(OpId id) {
    const Operation& op = planned_.kernel.ops[id];
    if (op.out.empty() || !planned_.type(op.out[0]).is_tile()) return;
    const bool names = op.code == Code::Permute || op.code == Code::Reshape;
    if (names && staged_.count(op.in[0]) != 0) {
      staged_.insert(op.out[0]);
      return add(id, "in stage buffer");
    }
    const std::optional<Layout>& home = plan_.home(op.out[0]);
    add(id, home ? name(*home) : "rematerialized");
  }

  std::string pipeline_text(const LoopPipeline& pipeline, OpId loop) const {
    const BlockMapping& mapping = scheduled_.mapping;
    std::string text = fmt::format("{} stages of {} bytes", mapping.stages, pipeline.bytes);
    if (mapping.tile_pipelines) return "operands are in pipelines";
    if (!mapping.warp_specialized || scheduled_.warp_specialization->loop != loop) {
      text += ", prefetched by all threads";
    } else {
      text += mapping.maps > 0 ? ", filled by TMA" : ", filled by producer warps";
    }
    return text + (pipeline.pending.empty() ? "" : "; matmul overlaps with the next iteration");
  }

  std::string load_text(OpId id, const LoopPipeline& pipeline) {
    const Operation& op = planned_.kernel.ops[id];
    for (const StagedOperand& staged : pipeline.operands) {
      if (staged.load != id) continue;
      staged_.insert(op.out[0]);
      return fmt::format("in stage buffer: {} rows of {} bytes", staged.panels.rows,
                         staged.panels.row_bytes());
    }
    return access_text(op, planned_.type(op.out[0]).shape);
  }

  std::string access_text(const Operation& op, const Extents& shape) {
    const Type& view = planned_.type(op.in[0]);
    const Layout layout = plan_.access(op);
    return fmt::format("{}, up to {} bytes at a time", name(layout),
                       run_of(view, layout, shape) * byte_width(view.dtype));
  }

  std::string operand_text(const Operation& dot, std::size_t side, const Operation* loop) const {
    if (staged_.count(dot.in[side]) != 0) return "stage buffer";
    const std::optional<Layout> fragments = side == 0 ? plan_.fragments(dot) : std::nullopt;
    const bool before = loop != nullptr && !planned_.is_defined_in(*loop, dot.in[0]) &&
                        planned_.definitions[dot.in[0]].has_value();
    const bool in_registers =
        fragments && (before || (plan_.home(dot.in[0]) && *plan_.home(dot.in[0]) == *fragments));
    return in_registers ? "registers" : "shared memory";
  }

  std::string dot_text(const Operation& dot, const Operation* loop) {
    const Layout layout = plan_.accumulator_layout(dot);
    const MatmulInstruction instruction = plan_.instruction_of(dot);
    if (instruction == MatmulInstruction::Scalars)
      return fmt::format("{}: scalar fma", name(layout));
    std::string mnemonic = fmt::format("mma m16n8k{}", k_step(instruction)), why;
    if (plan_.uses_wgmma(dot)) {
      mnemonic = fmt::format("wgmma m64n{}k16", plan_.wgmma_columns(dot));
    } else {
      why = fmt::format(" (no wgmma: {})", plan_.why_not_wgmma(dot));
    }
    return fmt::format("{}: {}{}, a in {}, b in {}", name(layout), mnemonic, why,
                       operand_text(dot, 0, loop), operand_text(dot, 1, loop));
  }

  const ScheduledKernel& scheduled_;
  const PlannedKernel& planned_;
  const Plan& plan_;
  Remarks remarks_;
  std::vector<std::string> layouts_;  // in order of first use
  std::set<ValueId> staged_;
};

}  // namespace

std::string to_text(const ScheduledKernel& scheduled) {
  return Remarker(scheduled).run();
}

}  // namespace tessera::tile::gpu
