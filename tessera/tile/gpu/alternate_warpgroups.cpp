#include "tessera/tile/gpu/alternate_warpgroups.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>

namespace tessera::tile::gpu {
namespace {

constexpr int kThreads = 256, kLeastStages = 3;

template <class T>
const T* as(const Instruction& instruction) {
  return std::get_if<T>(&instruction);
}

/// Whether the threads of a warp execute an instruction without the others of the block.
bool is_of_warps(const Instruction& instruction) {
  if (const auto* convert = as<Convert>(instruction)) return !convert->through;
  if (const auto* branch = as<Branch>(instruction))  // all threads take the same one
    return std::ranges::all_of(branch->then, is_of_warps) &&
           std::ranges::all_of(branch->otherwise, is_of_warps);
  return as<Compute>(instruction) != nullptr || as<ReduceInThread>(instruction) != nullptr ||
         as<ReduceInWarp>(instruction) != nullptr || as<ReduceResult>(instruction) != nullptr ||
         as<RenameBuffer>(instruction) != nullptr || as<AddressView>(instruction) != nullptr ||
         as<LoadView>(instruction) != nullptr || as<Yield>(instruction) != nullptr;
}

/// A loop that can alternate: where its parts are.
struct AlternatingLoop {
  std::size_t first_matmul = 0, first_wait = 0, second_matmul = 0;  // in the body
  std::size_t carried = 0;  // of the loop's params: accumulators of the second matmul
  PrefetchNext prefetch = {};
};

class LoopMatcher {
 public:
  LoopMatcher(const PlannedKernel& planned, const ForLoop& loop) : planned_(planned), loop_(loop) {}

  Decision<AlternatingLoop> run() {
    const Body& body = loop_.body;
    const auto is_matmul = [](const Instruction& one) { return as<Matmul>(one) != nullptr; };
    if (std::ranges::count_if(body, is_matmul) != 2) return DeclineReason{"not two matmuls"};
    const auto first = std::ranges::find_if(body, is_matmul);
    const auto second = std::find_if(first + 1, body.end(), is_matmul);
    const auto wait = std::find_if(
        first + 1, second, [](const Instruction& one) { return as<WaitMatmul>(one) != nullptr; });
    if (wait == second || !waits_for(*wait, *first) || !waits_for(*(second + 1), *second) ||
        second + 3 != body.end())
      return DeclineReason{"the matmuls are not complete in their order"};
    if (body.size() < 2 || as<AwaitCopies>(body[0]) == nullptr ||
        as<PrefetchNext>(body[1]) == nullptr)
      return DeclineReason{"no copies are prefetched"};
    AlternatingLoop found{.first_matmul = index_of(first),
                          .first_wait = index_of(wait),
                          .second_matmul = index_of(second),
                          .prefetch = *as<PrefetchNext>(body[1])};
    for (std::size_t i = 2; i < found.second_matmul; ++i)
      if (i != found.first_matmul && i != found.first_wait && !is_of_warps(body[i]))
        return DeclineReason{"threads of the block exchange data"};
    if (as<Matmul>(*second)->a.place != DotOperand::Place::Registers ||
        as<Matmul>(*first)->b.place != DotOperand::Place::InBuffer ||
        as<Matmul>(*second)->b.place != DotOperand::Place::InBuffer)
      return DeclineReason{"the operands are not in registers and in stage buffers"};
    const Kernel& kernel = planned_.kernel;
    if (as<Matmul>(*first)->a.place != DotOperand::Place::InBuffer ||
        planned_.varies_in(kernel.ops[loop_.op], kernel.ops[as<Matmul>(*first)->op].in[0]))
      return DeclineReason{"the first operand changes in the loop"};
    const auto carried = carried_accumulators(*as<Matmul>(*second), *as<Yield>(body.back()));
    if (!carried) return DeclineReason{"the second sum is not carried"};
    found.carried = *carried;
    for (std::size_t i = 2; i < found.first_wait; ++i)
      if (reads(body[i], loop_.params[found.carried].value))
        return DeclineReason{"the second sum is read before the first matmul is complete"};
    return found;
  }

 private:
  std::size_t index_of(Body::const_iterator at) const {
    return static_cast<std::size_t>(at - loop_.body.begin());
  }
  ValueId result_of(const Matmul& matmul) const { return planned_.kernel.ops[matmul.op].out[0]; }
  bool waits_for(const Instruction& wait, const Instruction& matmul) const {
    const auto* one = as<WaitMatmul>(wait);
    return one != nullptr && one->pending == 0 && one->matmuls.size() == 1 &&
           one->matmuls[0].value == result_of(*as<Matmul>(matmul)) &&
           as<Matmul>(matmul)->completion == Matmul::Completion::Awaited;
  }
  /// The one value that the accumulators are handed on as, which is waited for in the next
  /// iteration.
  std::optional<std::size_t> carried_accumulators(const Matmul& matmul, const Yield& yield) const {
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < yield.values.size(); ++i) {
      if (yield.values[i].value != result_of(matmul)) continue;
      if (found || yield.values[i].layout != matmul.layout) return std::nullopt;
      found = i;
    }
    return found;
  }
  bool reads(const Instruction& instruction, ValueId id) const {
    const auto reads_of = [&](OpId op) {
      return std::ranges::count(planned_.kernel.ops[op].in, id) != 0;
    };
    if (const auto* compute = as<Compute>(instruction)) return reads_of(compute->op);
    if (const auto* matmul = as<Matmul>(instruction)) return reads_of(matmul->op);
    if (const auto* convert = as<Convert>(instruction)) return convert->value == id;
    if (const auto* reduce = as<ReduceInThread>(instruction)) return reads_of(reduce->op);
    if (const auto* load = as<LoadView>(instruction)) return reads_of(load->op);
    return as<Branch>(instruction) != nullptr;
  }

  const PlannedKernel& planned_;
  const ForLoop& loop_;
};

/// Writes the program anew, with loops that alternate.
class Alternation {
 public:
  Alternation(const BlockProgram& program, const PlannedKernel& planned)
      : program_(program), planned_(planned) {}

  Decision<BlockProgram> run() {
    made_.shared = program_.shared;
    for (const Instruction& instruction : program_.body) {
      if (const auto* prefetch = as<PrefetchFirst>(instruction)) {
        add(*prefetch);
      } else if (const auto* loop = as<ForLoop>(instruction);
                 loop != nullptr && loops_.contains(loop->op)) {
        add(*loop, loops_.at(loop->op));
      } else {
        made_.body.push_back(instruction);
      }
    }
    if (loops_.empty()) return DeclineReason{why_not_};
    prefetch_early();
    return std::move(made_);
  }

 private:
  /// The copies of a loop: whether it can alternate.
  void add(PrefetchFirst prefetch) {
    const auto at = std::ranges::find_if(program_.body, [&](const Instruction& one) {
      return as<ForLoop>(one) != nullptr && as<ForLoop>(one)->op == prefetch.loop;
    });
    TESSERA_CHECK(at != program_.body.end(), "copies are prefetched for a loop that follows");
    const ForLoop& loop = *as<ForLoop>(*at);
    if (const Decision<AlternatingLoop> found = match(loop, prefetch.stages)) {
      loops_.emplace(prefetch.loop, *found);
      prefetch.stages.is_alternating = true;
    } else {
      why_not_ = found.why_not();
    }
    made_.body.emplace_back(std::move(prefetch));
  }

  Decision<AlternatingLoop> match(const ForLoop& loop, const Stages& stages) {
    if (stages.count < kLeastStages) return DeclineReason{"there are two stages"};
    return LoopMatcher(planned_, loop).run();
  }

  /// Starts the copies of the first loop before the program loads anything else, where their
  /// addresses follow from parameters and program ids.
  void prefetch_early() {
    const auto first = std::ranges::find_if(
        made_.body, [](const Instruction& one) { return as<PrefetchFirst>(one) != nullptr; });
    std::set<ValueId> known(planned_.kernel.body.params.begin(), planned_.kernel.body.params.end());
    Body scalars, rest;
    for (auto one = made_.body.begin(); one != first; ++one) {
      const auto* compute = as<Compute>(*one);
      if (!is_of_warps(*one) && as<HoldOperand>(*one) == nullptr) return;
      if (compute == nullptr || compute->layout || !is_known(compute->op, known)) {
        rest.push_back(*one);
        continue;
      }
      const Operation& op = planned_.kernel.ops[compute->op];
      known.insert(op.out.begin(), op.out.end());
      scalars.push_back(*one);
    }
    if (!has_known_addresses(as<PrefetchFirst>(*first)->loop, known)) return;
    scalars.push_back(*first);
    std::ranges::copy(rest, std::back_inserter(scalars));
    std::ranges::copy(scalars, made_.body.begin());
  }
  bool is_known(OpId id, const std::set<ValueId>& known) const {
    return std::ranges::all_of(planned_.kernel.ops[id].in,
                               [&](ValueId in) { return known.contains(in); });
  }
  /// Whether the bounds of a loop are known, and all scalars and views that its body reads from
  /// outside, of which the addresses of its copies are some.
  bool has_known_addresses(OpId id, const std::set<ValueId>& known) const {
    const Kernel& kernel = planned_.kernel;
    const Operation& loop = kernel.ops[id];
    const auto is_ready = [&](ValueId in) {
      return kernel.type(in).is_tile() || planned_.varies_in(loop, in) || known.contains(in);
    };
    constexpr int kBounds = 3;  // from, to, step
    return std::all_of(loop.in.begin(), loop.in.begin() + kBounds, is_ready) &&
           std::ranges::all_of(loop.regions[0].ops, [&](OpId op) {
             return std::ranges::all_of(kernel.ops[op].in, is_ready);
           });
  }

  static Instruction of_warpgroup(int warpgroup, std::initializer_list<Instruction> body) {
    OfWarpgroup made{.warpgroup = warpgroup};
    for (const Instruction& one : body) made.body.push_back(one);
    return made;
  }

  void add(const ForLoop& loop, const AlternatingLoop& found) {
    made_.body.emplace_back(WaitCopies{.loop = loop.op});
    made_.body.emplace_back(Barrier{});
    made_.body.push_back(of_warpgroup(1, {found.prefetch, Barrier{}}));
    ForLoop alternating = loop;
    alternating.body = body_of(loop, found);
    made_.body.emplace_back(std::move(alternating));
    made_.body.push_back(of_warpgroup(0, {Barrier{}}));
    made_.body.emplace_back(WaitMatmul{.matmuls = {loop.results[found.carried]}, .pending = 0});
  }

  static Body body_of(const ForLoop& loop, const AlternatingLoop& found) {
    const auto at = [&](std::size_t index) {
      return loop.body.begin() + static_cast<std::ptrdiff_t>(index);
    };
    Body made;
    made.emplace_back(EnterStage{.loop = loop.op});
    made.push_back(of_warpgroup(0, {found.prefetch}));
    std::copy(at(2), at(found.first_wait), std::back_inserter(made));
    WaitMatmul wait = *as<WaitMatmul>(loop.body[found.first_wait]);
    wait.matmuls.insert(wait.matmuls.begin(), loop.params[found.carried]);
    made.emplace_back(std::move(wait));
    // Before the barrier at which the other warpgroup begins to read the next stage.
    made.push_back(of_warpgroup(1, {WaitCopies{.loop = loop.op}}));
    made.emplace_back(Barrier{});
    PrefetchNext prefetch = found.prefetch;
    prefetch.further = 1;  // as far ahead of the other one's reads
    made.push_back(of_warpgroup(1, {prefetch}));
    std::copy(at(found.first_wait + 1), at(found.second_matmul), std::back_inserter(made));
    made.push_back(of_warpgroup(0, {WaitCopies{.loop = loop.op}}));
    made.emplace_back(Barrier{});
    made.push_back(loop.body[found.second_matmul]);
    made.push_back(loop.body.back());
    return made;
  }

  const BlockProgram& program_;
  const PlannedKernel& planned_;
  BlockProgram made_;
  std::map<OpId, AlternatingLoop> loops_;
  std::string why_not_ = "no loop prefetches";
};

}  // namespace

Decision<BlockProgram> alternate_warpgroups(const BlockProgram& program,
                                            const PlannedKernel& planned) {
  if (planned.plan.threads() != kThreads) return DeclineReason{"there are not two warpgroups"};
  return Alternation(program, planned).run();
}

}  // namespace tessera::tile::gpu
