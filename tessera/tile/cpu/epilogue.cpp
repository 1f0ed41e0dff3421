#include "tessera/tile/cpu/epilogue.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "tessera/tile/function.h"

namespace tessera::tile::cpu {
namespace {

bool is_all_inside(const Operation& access, std::size_t rank) {
  return access.ints.size() >= rank &&
         std::all_of(access.ints.begin(), access.ints.begin() + static_cast<std::ptrdiff_t>(rank),
                     [](std::int64_t known) { return known == 1; });
}

/// Legality and construction of a fused epilogue.
class Finishing {
 public:
  Finishing(const Nest& nest, const DotStep& dot, const ScheduledKernel& scheduled,
            const Placement& placement)
      : nest_(nest), dot_(dot), scheduled_(scheduled), placement_(placement) {}

  bool run(const machine::Machine& machine) const {
    const Type& sums = kernel().type(kernel().ops[dot_.op].out[0]);
    const auto last = static_cast<int>(nest_.space.size()) - 1;
    if (dot_.accumulate || nest_.fold || nest_.lane != last || nest_.width == 1) return false;
    if (nest_.width * byte_width(sums.dtype) != machine.vector_bytes) return false;
    if (nest_.space.back() != sums.shape[1] ||
        Type::tile(sums.dtype, nest_.space).count() != sums.count())
      return false;
    return std::ranges::all_of(nest_.roots, [&](const Root& root) {
      return root.kind == Root::Kind::Effect && stores(kernel().ops[root.op]);
    });
  }

  /// The only use of the accumulators, if it is their sum with something else.
  std::optional<DotStep::Start> start() const {
    const std::vector<int> used = uses(kernel());
    for (ValueId id = 0; id < used.size(); ++id)
      if (scheduled_.buffer_of[id] == dot_.out && used[id] > 1) return {};
    for (const Root& root : nest_.roots) {
      const ValueId stored = kernel().ops[root.op].in.back();
      if (depends(stored)) return start(stored, identity_map(nest_.space.size()));
    }
    return {};
  }

 private:
  const Kernel& kernel() const { return scheduled_.kernel; }

  std::optional<DotStep::Start> start(ValueId value, const IndexMap& map) const {
    if (scheduled_.buffer_of[value] >= 0) return {};
    const Operation& op = kernel().ops[*placement_.definition[value]];
    if (const auto moved = operand_map(kernel(), op, map)) return start(op.in[0], *moved);
    const auto sums = std::ranges::find_if(op.in, [&](ValueId in) { return depends(in); });
    if (op.code != Code::Map || op.function != Function::Add || !reads_sums(*sums))
      return start(*sums, map);
    const ValueId other = op.in[sums == op.in.begin() ? 1 : 0];
    if (depends(other) || !kernel().type(other).is_tile()) return {};
    return DotStep::Start{.value = other, .total = value, .at = map};
  }

  /// Whether a value is the accumulators, possibly after data movement.
  bool reads_sums(ValueId value) const {
    while (scheduled_.buffer_of[value] < 0) {
      const auto definition = placement_.definition[value];
      if (!definition) return false;
      const Operation& op = kernel().ops[*definition];
      const auto map = identity_map(kernel().type(value).shape.size());
      if (!operand_map(kernel(), op, map)) return false;
      value = op.in[0];
    }
    return scheduled_.buffer_of[value] == dot_.out;
  }
  bool depends(ValueId value) const {
    if (!kernel().type(value).is_tile()) return false;
    if (scheduled_.buffer_of[value] >= 0) return scheduled_.buffer_of[value] == dot_.out;
    const auto definition = placement_.definition[value];
    return definition && std::ranges::any_of(kernel().ops[*definition].in,
                                             [&](ValueId in) { return depends(in); });
  }

  bool stores(const Operation& store) const {
    if (store.code != Code::Vstore || !is_all_inside(store, nest_.space.size())) return false;
    const auto into = parameter_of(kernel(), placement_.definition, store.in[0]);
    for (const DotSource* source : {&dot_.a, &dot_.b}) {
      if (!source->vload) continue;
      const ValueId view = kernel().ops[*source->vload].in[0];
      const auto from = parameter_of(kernel(), placement_.definition, view);
      if (!into || !from || *into == *from) return false;
    }
    return is_at_hand(store.in.back(), identity_map(nest_.space.size()));
  }

  /// Whether a value follows from the accumulators at the nest's own position and from loads in
  /// bounds.
  bool is_at_hand(ValueId value, const IndexMap& map) const {
    if (!kernel().type(value).is_tile()) return true;
    if (const int buffer = scheduled_.buffer_of[value]; buffer >= 0)
      return buffer != dot_.out || is_own_position(kernel().type(value).shape, map);
    if (!placement_.definition[value]) return false;
    const Operation& op = kernel().ops[*placement_.definition[value]];
    if (op.code == Code::Vload) return is_all_inside(op, map.size());
    if (const auto moved = operand_map(kernel(), op, map)) return is_at_hand(op.in[0], *moved);
    // The constants of a polynomial would spill accumulators.
    if (op.code == Code::Map && is_transcendental(op.function)) return false;
    const bool maps = op.code == Code::Map || op.code == Code::Cast || op.code == Code::Bitcast ||
                      op.code == Code::Const || op.code == Code::Iota;
    return maps && std::ranges::all_of(op.in, [&](ValueId in) { return is_at_hand(in, map); });
  }

  /// Whether a tile with as many elements as the nest's space is read in order: axes with extents
  /// above 1 are the same ones.
  bool is_own_position(const Extents& shape, const IndexMap& map) const {
    std::vector<int> axes, own;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] == 1) continue;
      if (map[i].offset != 0 || map[i].axis < 0) return false;
      if (nest_.space[static_cast<std::size_t>(map[i].axis)] != shape[i]) return false;
      axes.push_back(map[i].axis);
    }
    for (std::size_t i = 0; i < nest_.space.size(); ++i)
      if (nest_.space[i] > 1) own.push_back(static_cast<int>(i));
    return axes == own;
  }

  const Nest& nest_;
  const DotStep& dot_;
  const ScheduledKernel& scheduled_;
  const Placement& placement_;
};

}  // namespace

void fuse_epilogues(std::vector<Step>& steps, const ScheduledKernel& scheduled,
                    const Placement& placement, const machine::Machine& machine,
                    const std::function<bool(std::size_t, int)>& is_needed) {
  const auto is_free = [&](const Step& step) {
    if (step.kind != Step::Kind::Scalar) return false;
    const Operation& op = scheduled.kernel.ops[step.op];
    return !has_effect(op.code) && !reads_memory(op.code) &&
           std::ranges::none_of(op.in,
                                [&](ValueId in) { return scheduled.kernel.type(in).is_tile(); });
  };
  for (std::size_t at = 0; at < steps.size(); ++at) {
    if (steps[at].kind != Step::Kind::Dot) continue;
    // Scalars between the two are computed first.
    std::size_t next = at + 1;
    while (next < steps.size() && is_free(steps[next])) ++next;
    if (next == steps.size() || steps[next].kind != Step::Kind::Nest) continue;
    DotStep& dot = steps[at].dot;
    const Finishing finishing(steps[next].nest, dot, scheduled, placement);
    if (!finishing.run(machine) || is_needed(next, dot.out)) continue;
    dot.start = finishing.start();
    dot.epilogue = std::move(steps[next].nest);
    std::rotate(steps.begin() + static_cast<std::ptrdiff_t>(at),
                steps.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                steps.begin() + static_cast<std::ptrdiff_t>(next));
    steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(next));
  }
}

}  // namespace tessera::tile::cpu
