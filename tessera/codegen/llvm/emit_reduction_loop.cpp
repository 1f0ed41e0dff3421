#include <algorithm>

#include "tessera/codegen/llvm/dot.h"
#include "tessera/codegen/llvm/emitter.h"

// Reduction loops, whose iterations accumulate a dot:
//
//   nest [64, 96]                    0 -> buffer 0
//   for … { dot a x b added to buffer 0 }
//   nest [64, 96]                    vstore(c, buffer 0)
//
// The first iteration has no addend, and the last one stores its sums directly to the view, where
// the part in bounds is the same for the view and the factors. The result is stored once, at the
// end, because other programs may store the same elements.

namespace tessera::codegen {

using tile::Code;
using tile::Operation;
using tile::ValueId;
using tile::cpu::DotStep;
using tile::cpu::Nest;
using tile::cpu::Root;
using tile::cpu::Step;

namespace {

/// Buffer that a nest fills with zeros; -1: it does something else.
int zeroed_buffer(Emitter& e, const Step& step) {
  if (step.kind != Step::Kind::Nest || step.nest.fold || step.nest.roots.size() != 1) return -1;
  const Root& root = step.nest.roots.front();
  if (root.kind != Root::Kind::Write || !e.definition[root.value]) return -1;
  const Operation& op = e.op(*e.definition[root.value]);
  const auto& buffer = e.scheduled.buffers[static_cast<std::size_t>(root.buffer)];
  const bool is_all = buffer.shape == step.nest.space && buffer.shape.size() == 2 &&
                      std::ranges::all_of(root.at, [](std::int64_t at) { return at == 0; });
  return is_all && op.code == Code::Const && e.literal(buffer.dtype, op.literal)->isNullValue()
             ? root.buffer
             : -1;
}

/// Whether a step is a scalar that may be computed earlier.
bool is_free(const Emitter& e, const Step& step) {
  if (step.kind != Step::Kind::Scalar) return false;
  const Operation& op = e.op(step.op);
  return !tile::has_effect(op.code) && !tile::reads_memory(op.code) &&
         std::ranges::none_of(op.in, [&](ValueId in) { return e.type(in).is_tile(); });
}

/// The dot of a loop whose body only accumulates it into a buffer.
const DotStep* only_dot(const Emitter& e, const Step& loop, int buffer) {
  const Operation& op = e.op(loop.op);
  if (loop.kind != Step::Kind::For || op.out.size() != 1) return nullptr;
  if (e.scheduled.buffer_of[op.out[0]] != buffer) return nullptr;
  const DotStep* dot = nullptr;
  for (const Step& step : loop.bodies[0]) {
    if (is_free(e, step)) continue;
    if (step.kind != Step::Kind::Dot || dot != nullptr) return nullptr;
    dot = &step.dot;
  }
  if (dot == nullptr || dot->out != buffer || !dot->accumulate || dot->epilogue) return nullptr;
  const Operation& product = e.op(dot->op);
  const tile::Type &a = e.type(product.in[0]), &b = e.type(product.in[1]);
  const DotShape shape{a.dtype,    b.dtype,    e.type(product.out[0]).dtype,
                       a.shape[0], b.shape[1], a.shape[1]};
  const bool can = can_add_from(shape, plan_dot(shape, e.machine, dot->b.panel), e.machine);
  return can ? dot : nullptr;
}

/// The store of a nest that stores `sums` unchanged, to memory that the dot does not read.
const Operation* only_store(const Emitter& e, const Step& step, ValueId sums, const DotStep& dot) {
  if (step.kind != Step::Kind::Nest || step.nest.roots.size() != 1) return nullptr;
  const Root& root = step.nest.roots.front();
  if (root.kind != Root::Kind::Effect || e.op(root.op).code != Code::Vstore) return nullptr;
  const Operation& store = e.op(root.op);
  if (store.in.back() != sums || step.nest.space != e.type(sums).shape) return nullptr;
  if (tile::uses(e.kernel)[sums] != 1) return nullptr;
  const auto into = tile::cpu::parameter_of(e.kernel, e.definition, store.in[0]);
  for (const tile::cpu::DotSource* source : {&dot.a, &dot.b}) {
    if (!source->vload) continue;
    const auto from = tile::cpu::parameter_of(e.kernel, e.definition, e.op(*source->vload).in[0]);
    if (!into || !from || *into == *from) return nullptr;
  }
  return &store;
}

}  // namespace

std::size_t Emitter::emit_reduction_loop(const std::vector<Step>& steps, std::size_t at) {
  if (options.checked || options.overlap) return at;
  const int buffer = zeroed_buffer(*this, steps[at]);
  if (buffer < 0) return at;
  const auto past_scalars = [&](std::size_t i) {
    while (i < steps.size() && is_free(*this, steps[i])) ++i;
    return i;
  };
  const std::size_t loop = past_scalars(at + 1);
  if (loop == steps.size()) return at;
  const DotStep* dot = only_dot(*this, steps[loop], buffer);
  const std::size_t last = past_scalars(loop + 1);
  if (dot == nullptr || last == steps.size()) return at;
  const Operation* store = only_store(*this, steps[last], op(steps[loop].op).out[0], *dot);
  if (store == nullptr) return at;

  // On AArch64 filling a large tile with zeros and copying it in the end is nearly as fast, and
  // compiles much faster.
  const tile::Type& sums = type(store->in.back());
  if (machine.architecture == machine::Architecture::AArch64 &&
      sums.count() * byte_width(sums.dtype) > machine.l1d)
    return at;

  for (std::size_t i = at; i < last; ++i)
    if (steps[i].kind == Step::Kind::Scalar) emit_scalar(steps[i].op);
  reduction_loop = ReductionLoop{
      .dot = dot, .store = store, .ran = slot(ir.getInt1Ty()), .stored = slot(ir.getInt1Ty())};
  for (llvm::AllocaInst* flag : {reduction_loop->ran, reduction_loop->stored})
    ir.CreateStore(ir.getFalse(), flag);
  const ReductionLoop these = *reduction_loop;
  emit_loop(steps[loop]);
  reduction_loop.reset();
  const auto is = [&](llvm::AllocaInst* flag) { return ir.CreateLoad(ir.getInt1Ty(), flag); };
  branch(ir.CreateNot(is(these.stored)), [&] {
    branch(ir.CreateNot(is(these.ran)), [&] { emit_nest(steps[at].nest); });
    emit_nest(steps[last].nest);
  });
  return last + 1;
}

}  // namespace tessera::codegen
