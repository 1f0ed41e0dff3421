#include <algorithm>

#include "tessera/codegen/ptx/emitter.h"

namespace tessera::codegen::ptx {

using tile::Code;

const Sure* Emitter::sure_of(const Operation& op) const {
  const auto found = std::find_if(sure_.begin(), sure_.end(), [&](const auto& item) {
    return &kernel_.ops[item.first] == &op;
  });
  return found == sure_.end() ? nullptr : &found->second;
}

std::optional<tile::ValueId> Emitter::root_of(ValueId view) const {
  while (definitions_[view]) {
    const Operation& op = kernel_.ops[*definitions_[view]];
    if (op.code != Code::View && op.code != Code::Base && op.code != Code::Hint) return {};
    view = op.in[0];
  }
  return view;
}

// Nothing in the kernel writes what an argument names, as far as it says. Where two arguments name
// the same memory, one program would write what the others read, in no order.
bool Emitter::is_constant(tile::OpId load) const {
  const Operation& op = kernel_.ops[load];
  const auto is_same = [&](ValueId in) { return courses_.at(in) == ByProgram::Same; };
  if (op.code != Code::Vload || !std::all_of(op.in.begin(), op.in.end(), is_same)) return false;
  const std::optional<ValueId> root = root_of(op.in[0]);
  bool before_writes = true, read = false;
  for (const tile::OpId id : kernel_.body.ops) {
    read = read || id == load;
    const Operation& other = kernel_.ops[id];
    if (!tile::writes_memory(other.code)) continue;
    before_writes = before_writes && read;
    const auto written = root_of(other.in[0]);
    if (other.code != Code::Vstore || !written || written == root) return false;
  }
  return root.has_value() && before_writes;
}

void Emitter::by_versions() {
  find_courses();
  std::set<tile::OpId> done = arithmetic(ByProgram::Same);
  done.merge(arithmetic(ByProgram::Differs));
  llvm::Value* all = nullptr;
  std::map<tile::OpId, Sure> sure;
  for (const tile::OpId id : kernel_.body.ops) {
    const Operation& op = kernel_.ops[id];
    if (op.code != Code::Vload && op.code != Code::Vstore) continue;
    const tile::Type& view = type(op.in[0]);
    const auto rank = static_cast<std::size_t>(view.rank());
    if (!all_known({op.in.begin(), op.in.begin() + 1 + static_cast<std::ptrdiff_t>(rank)}))
      continue;
    const tile::Extents& shape = type(op.code == Code::Vload ? op.out[0] : op.in.back()).shape;
    Sure& known = sure[id];
    const int run = run_of(view, plan_.access(view, shape), shape);
    known.constant = is_constant(id);
    if (known.constant)
      all = block_.both(all, ir_.CreateICmpUGT(pid(Code::Npid, 0), block_.i64(1)));
    known.aligned = run > 1;
    if (known.aligned) all = block_.both(all, is_aligned(op, run));
    for (std::size_t axis = 0; axis < rank; ++axis) {
      known.inside.push_back(shape[axis] == 1);
      if (!known.inside.back()) continue;
      llvm::Value* at = ir_.CreateSExt(scalar(op.in[1 + axis]), ir_.getInt64Ty());
      all = block_.both(all, ir_.CreateICmpULT(at, this->view(op.in[0]).extents[axis]));
    }
  }
  const auto version = [&] {
    const std::vector<llvm::Value*> scalars = scalars_;
    open_scope();
    for (const tile::OpId id : kernel_.body.ops) {
      if (error_) break;
      if (done.count(id) == 0) operation(kernel_.ops[id]);
    }
    close_scope();
    accesses_.clear();
    scalars_ = scalars;
    ir_.CreateRetVoid();
  };
  if (all != nullptr) {
    llvm::BasicBlock *fast = block_.block("fast"), *slow = block_.block("slow");
    ir_.CreateCondBr(all, fast, slow);
    ir_.SetInsertPoint(fast);
    sure_ = std::move(sure);
    version();
    sure_.clear();
    ir_.SetInsertPoint(slow);
  }
  version();
}

}  // namespace tessera::codegen::ptx
