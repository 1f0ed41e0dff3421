#include <fmt/format.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>

#include "tessera/codegen/ptx/emitter.h"
#include "tessera/codegen/ptx/roles.h"
#include "tessera/tile/argument.h"
#include "tessera/tile/passes/rewrite.h"

// A kernel around one loop of products: some threads of a block fill the ring, the others multiply
// and do all else. They meet at barriers in shared memory, two for each stage, so that copies for
// the next program of the grid are made while the results of this one are written.

namespace tessera::codegen::ptx {

using runtime::cuda::TensorMap;
using tile::Code;

namespace {

constexpr int kComputeBarrier = 1;
constexpr std::int64_t kBarrierBytes = 8;

}  // namespace

std::optional<std::vector<tile::OpId>> Emitter::known_from(
    const std::vector<ValueId>& values) const {
  std::set<tile::OpId> found;
  std::vector<ValueId> open = values;
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    if (!definitions_[id]) {
      const std::vector<ValueId>& params = kernel_.params();
      if (std::find(params.begin(), params.end(), id) == params.end()) return {};
      continue;
    }
    const Operation& op = kernel_.ops[*definitions_[id]];
    if (type(id).is_tile() || !tile::is_pure(kernel_, op) || !op.regions.empty()) return {};
    if (found.insert(*definitions_[id]).second) open.insert(open.end(), op.in.begin(), op.in.end());
  }
  std::vector<tile::OpId> in_order;
  for (const tile::OpId id : kernel_.body.ops)
    if (found.count(id) != 0) in_order.push_back(id);
  // What stands in a loop or branch is not among them.
  return in_order.size() == found.size() ? std::optional(in_order) : std::nullopt;
}

std::optional<Emitter::Roles> Emitter::find_roles() {
  if (!plan_.any_warpgroups()) return {};
  std::optional<Roles> roles;
  bool wrote = false;
  for (const tile::OpId id : kernel_.body.ops) {
    const Operation& op = kernel_.ops[id];
    // Programs that speak to each other may wait for one that would come later.
    bool meets = op.code == Code::Barrier || op.code == Code::Atomic || op.code == Code::Cas;
    for (const tile::Region& region : op.regions)
      tile::for_each_op(kernel_, region, [&](tile::OpId inner) {
        const Code code = kernel_.ops[inner].code;
        meets = meets || code == Code::Barrier || code == Code::Atomic || code == Code::Cas;
      });
    if (meets) return {};
    wrote = wrote || tile::writes_memory(op.code) || any_writes(op);
    if (op.code == Code::Vload && roles && !wrote) {
      constexpr int kFew = 4;  // registers that a loop can spare
      if (home(op.out[0]).registers() <= kFew && known_from(op.in)) roles->early.push_back(id);
    }
    if (op.code != Code::For || roles || wrote) continue;
    const std::optional<Ahead> ahead = find_ahead(op);
    // The sums of its product are all that a round leaves behind.
    if (!ahead || ahead->pending.empty()) continue;
    std::vector<ValueId> needs(op.in.begin(), op.in.begin() + 3);
    const std::function<void(ValueId)> follow = [&](ValueId value) {
      if (value == op.regions[0].params[0]) return;
      if (!definitions_[value] || !is_inside(op, *definitions_[value])) {
        needs.push_back(value);
        return;
      }
      for (const ValueId in : kernel_.ops[*definitions_[value]].in) follow(in);
    };
    for (const Ring& ring : ahead->rings)
      for (const ValueId in : kernel_.ops[ring.load].in) follow(in);
    if (const auto needed = known_from(needs))
      roles = Roles{.loop = id,
                    .ahead = *ahead,
                    .needed = *needed,
                    .maps = options_.maps ? maps_of(*ahead) : std::vector<TensorMap>{}};
  }
  return roles;
}

bool Emitter::filled_by_others(const Operation& loop) const {
  return roles_ && &loop == &kernel_.ops[roles_->loop];
}

llvm::Value* Emitter::stage_barrier(std::int64_t first, llvm::Value* stage) {
  return block_.shared(
      ir_.CreateAdd(block_.i32(first), ir_.CreateMul(stage, block_.i32(kBarrierBytes))));
}

void Emitter::to_next_stage() {
  llvm::Type* word = ir_.getInt32Ty();
  llvm::Value* next = ir_.CreateAdd(ir_.CreateLoad(word, roles_->stage), block_.i32(1));
  llvm::Value* wraps = ir_.CreateICmpEQ(next, block_.i32(stages_));
  llvm::Value* phase = ir_.CreateLoad(word, roles_->phase);
  ir_.CreateStore(ir_.CreateSelect(wraps, block_.i32(0), next), roles_->stage);
  ir_.CreateStore(ir_.CreateXor(phase, ir_.CreateZExt(wraps, word)), roles_->phase);
}

/// Bytes to the stage that comes next, once it is there.
llvm::Value* Emitter::arrived_stage() {
  llvm::Type* word = ir_.getInt32Ty();
  llvm::Value* stage = ir_.CreateLoad(word, roles_->stage);
  block_.special("mbarrier.wait",
                 {stage_barrier(roles_->arrived, stage), ir_.CreateLoad(word, roles_->phase)});
  // What other threads wrote and this one has waited for, its products may read.
  if (roles_->mapped == nullptr) {
    publish();
  } else {
    block_.when(ir_.CreateNot(roles_->mapped), [&] { publish(); });
  }
  return ir_.CreateMul(stage, block_.i32(roles_->ahead.bytes));
}

/// The stage before the one that comes next may be filled again, as far as this warp goes.
void Emitter::leave_stage(llvm::Value* condition) {
  llvm::Value* stage = ir_.CreateLoad(ir_.getInt32Ty(), roles_->stage);
  llvm::Value* before =
      ir_.CreateSelect(ir_.CreateICmpEQ(stage, block_.i32(0)), block_.i32(stages_ - 1),
                       ir_.CreateSub(stage, block_.i32(1)));
  llvm::Value* first = ir_.CreateICmpEQ(block_.thread_bits(0, kLaneBits), block_.i32(0));
  block_.when(ir_.CreateAnd(condition, first), [&] {
    block_.intrinsic(llvm::Intrinsic::nvvm_mbarrier_arrive_shared,
                     {stage_barrier(roles_->left, before)});
  });
}

void Emitter::for_programs(llvm::Value* count, const std::function<void()>& body) {
  llvm::Value* first = pid(Code::Pid, 0);
  llvm::Value* step = ir_.CreateZExt(
      block_.intrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x, {}), ir_.getInt64Ty());
  llvm::BasicBlock *before = ir_.GetInsertBlock(), *header = block_.block("programs"),
                   *inside = block_.block("program"), *after = block_.block("end");
  ir_.CreateBr(header);
  ir_.SetInsertPoint(header);
  llvm::PHINode* program = ir_.CreatePHI(ir_.getInt64Ty(), 2);
  program->addIncoming(first, before);
  ir_.CreateCondBr(ir_.CreateICmpSLT(program, count), inside, after);
  ir_.SetInsertPoint(inside);
  open_scope();
  program_ = program;
  block_.forget();
  body();
  close_scope();
  program_ = nullptr;
  accesses_.clear();
  program->addIncoming(ir_.CreateAdd(program, step), ir_.GetInsertBlock());
  ir_.CreateBr(header);
  ir_.SetInsertPoint(after);
  ir_.CreateRetVoid();
}

std::vector<TensorMap> Emitter::maps_of(const Ahead& ahead) const {
  constexpr std::size_t kMostAxes = 5;
  constexpr std::int64_t kMostInABox = 256;
  const std::vector<ValueId> params = kernel_.params();
  const std::vector<int> positions = tile::word_positions(kernel_);
  std::vector<TensorMap> maps;
  for (const Ring& ring : ahead.rings) {
    const Operation& load = kernel_.ops[ring.load];
    const auto param = std::find(params.begin(), params.end(), load.in[0]);
    if (param == params.end()) return {};
    TensorMap map{.word = positions[static_cast<std::size_t>(param - params.begin())],
                  .column = static_cast<int>(ring.column),
                  .width = ring.operand.width,
                  .box = type(load.out[0]).shape};
    map.box[ring.column] = ring.operand.panel_width() / ring.operand.width;
    if (map.box.size() > kMostAxes ||
        *std::max_element(map.box.begin(), map.box.end()) > kMostInABox)
      return {};
    maps.push_back(map);
  }
  return maps;
}

/// One thread asks for the panels of all operands.
void Emitter::copy_boxes(const Operation& op, const Copy& copy, llvm::Value* arrived) {
  llvm::Function& function = block_.function();
  std::int64_t bytes = 0;
  for (const Ring& ring : roles_->ahead.rings) bytes += ring.operand.bytes();
  block_.special("mbarrier.expect", {arrived, block_.i32(bytes)});
  auto next = static_cast<unsigned>(function.arg_size() - roles_->maps.size());
  for (const Ring& ring : roles_->ahead.rings) {
    llvm::Value* map = function.getArg(next++);
    const Origin source = origin_of(op, ring, copy);
    // Places that no view reaches stay so in 32 bits.
    constexpr std::int64_t kFar = std::int64_t{1} << 30;
    const auto place = [&](std::size_t axis, std::int64_t further) {
      llvm::Value* at = ir_.CreateAdd(source.start[axis], block_.i64(further));
      at = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, at, block_.i64(-kFar));
      at = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, at, block_.i64(kFar));
      return ir_.CreateTrunc(at, ir_.getInt32Ty());
    };
    const SharedOperand& operand = source.operand;
    for (std::int64_t at = 0; at < operand.row_bytes(); at += operand.panel_width()) {
      const std::int64_t panel = at / operand.panel_width() * operand.panel_bytes();
      std::vector<llvm::Value*> arguments = {
          block_.shared(ir_.CreateAdd(operand.base, block_.i32(panel))), map, arrived,
          place(ring.column, at / operand.width)};
      for (std::size_t axis = source.shape.size(); axis-- > 0;)
        if (axis != ring.column) arguments.push_back(place(axis, 0));
      block_.special(fmt::format("map.copy.{}", source.shape.size()), arguments);
    }
  }
}

void Emitter::fill_ring(bool by_maps) {
  const Operation& op = kernel_.ops[roles_->loop];
  for (const tile::OpId id : roles_->needed) operation(kernel_.ops[id]);
  // Where maps cannot be made, 16 bytes do not fit either, but for views of more than 2^30.
  const bool mapped = roles_->mapped != nullptr;
  const Fits fits = mapped ? Fits{ir_.getFalse(), ir_.getFalse()} : how_it_fits(op, roles_->ahead);
  llvm::Value *from = scalar(op.in[0]), *to = scalar(op.in[1]), *step = scalar(op.in[2]);
  llvm::BasicBlock *before = ir_.GetInsertBlock(), *header = block_.block("rounds"),
                   *inside = block_.block("round"), *after = block_.block("after");
  ir_.CreateBr(header);
  ir_.SetInsertPoint(header);
  llvm::PHINode* index = ir_.CreatePHI(from->getType(), 2);
  index->addIncoming(from, before);
  ir_.CreateCondBr(ir_.CreateICmpSLT(index, to), inside, after);
  ir_.SetInsertPoint(inside);
  llvm::Type* word = ir_.getInt32Ty();
  llvm::Value* stage = ir_.CreateLoad(word, roles_->stage);
  // All have left a stage that nobody has entered: the phase before the first.
  block_.special("mbarrier.wait",
                 {stage_barrier(roles_->left, stage),
                  ir_.CreateXor(ir_.CreateLoad(word, roles_->phase), block_.i32(1))});
  llvm::Value* arrived = stage_barrier(roles_->arrived, stage);
  const Copy copy{index, ir_.CreateMul(stage, block_.i32(roles_->ahead.bytes)), fits};
  const auto arrive = [&](CopiedBy by) {
    if (by == CopiedBy::Chunks) {
      block_.intrinsic(llvm::Intrinsic::nvvm_cp_async_mbarrier_arrive_noinc_shared, {arrived});
    } else {
      publish();
      block_.intrinsic(llvm::Intrinsic::nvvm_mbarrier_arrive_shared, {arrived});
    }
  };
  if (by_maps) {
    copy_boxes(op, copy, arrived);
  } else {
    copy_round(op, roles_->ahead, copy, arrive);
  }
  to_next_stage();
  index->addIncoming(ir_.CreateAdd(index, step), ir_.GetInsertBlock());
  ir_.CreateBr(header);
  ir_.SetInsertPoint(after);
}

void Emitter::compute_program() {
  std::set<tile::OpId> done;
  const auto once = [&](tile::OpId id) {
    if (!error_ && done.insert(id).second) operation(kernel_.ops[id]);
  };
  for (const tile::OpId id : kernel_.body.ops) {
    if (id == roles_->loop) {
      for (const tile::OpId load : roles_->early) {
        const auto numbers = known_from(kernel_.ops[load].in);
        for (const tile::OpId number : *numbers) once(number);
        once(load);
      }
    }
    once(id);
  }
}

void Emitter::by_roles(llvm::Value* count) {
  copies_ahead_ = true;
  const int compute = plan_.threads();
  const std::int64_t ring = block_.reserve(roles_->ahead.bytes * stages_);
  for (Ring& part : roles_->ahead.rings) part.operand.base = block_.i32(ring + part.offset);
  roles_->arrived = block_.reserve(kSharedAlignment);
  roles_->left = roles_->arrived + stages_ * kBarrierBytes;
  llvm::Value* copiers = block_.i32(kCopyThreads);
  if (shape_.maps > 0) {
    llvm::Function& function = block_.function();
    const auto word =
        static_cast<unsigned>(function.arg_size()) - static_cast<unsigned>(shape_.maps) - 1;
    roles_->mapped = ir_.CreateICmpNE(function.getArg(word), block_.i64(0));
    copiers = ir_.CreateSelect(roles_->mapped, block_.i32(1), copiers);
  }
  block_.when(ir_.CreateICmpEQ(block_.thread(), block_.i32(0)), [&] {
    for (int stage = 0; stage < stages_; ++stage) {
      const auto start = [&](std::int64_t first, llvm::Value* arrivals) {
        block_.intrinsic(llvm::Intrinsic::nvvm_mbarrier_init_shared,
                         {stage_barrier(first, block_.i32(stage)), arrivals});
      };
      start(roles_->arrived, copiers);
      start(roles_->left, block_.i32(compute >> kLaneBits));
    }
    publish();
  });
  block_.barrier();
  roles_->stage = block_.slot(block_.i32(0));
  roles_->phase = block_.slot(block_.i32(0));

  const RoleRegisters registers = role_registers(compute);
  llvm::BasicBlock *computes = block_.block("compute"), *copies = block_.block("copy");
  ir_.CreateCondBr(ir_.CreateICmpULT(block_.thread(), block_.i32(compute)), computes, copies);
  ir_.SetInsertPoint(copies);
  block_.become({.first = compute, .threads = kCopyThreads, .barrier = kComputeBarrier + 1});
  block_.intrinsic(llvm::Intrinsic::nvvm_setmaxnreg_dec_sync_aligned_u32,
                   {block_.i32(registers.copy)});
  const std::vector<llvm::Value*> scalars = scalars_;
  const std::map<ValueId, View> views = views_;
  const auto fill = [&](bool by_maps) {
    for_programs(count, [&] { fill_ring(by_maps); });
    scalars_ = scalars;
    views_ = views;
  };
  if (roles_->mapped != nullptr) {
    llvm::BasicBlock *one = block_.block("one"), *idle = block_.block("idle"),
                     *maps = block_.block("maps"), *all = block_.block("all");
    ir_.CreateCondBr(roles_->mapped, one, all);
    ir_.SetInsertPoint(one);
    ir_.CreateCondBr(ir_.CreateICmpEQ(block_.thread(), block_.i32(0)), maps, idle);
    ir_.SetInsertPoint(idle);
    ir_.CreateRetVoid();
    ir_.SetInsertPoint(maps);
    fill(true);
    ir_.SetInsertPoint(all);
  }
  fill(false);

  ir_.SetInsertPoint(computes);
  block_.become({.first = 0, .threads = compute, .barrier = kComputeBarrier});
  block_.intrinsic(llvm::Intrinsic::nvvm_setmaxnreg_inc_sync_aligned_u32,
                   {block_.i32(registers.compute)});
  for_programs(count, [&] { compute_program(); });
}

}  // namespace tessera::codegen::ptx
