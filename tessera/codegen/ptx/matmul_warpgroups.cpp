#include <fmt/format.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>

#include "tessera/codegen/ptx/functions.h"
#include "tessera/codegen/ptx/instructions.h"
#include "tessera/codegen/ptx/matmul_writer.h"
#include "tessera/codegen/ptx/register_fragments.h"

// Matmuls by wgmma: four warps multiply 64 rows, reading shared memory asynchronously, while the
// threads continue.

namespace tessera::codegen::ptx {

namespace {

bool is_constant(llvm::Value* value) {
  return llvm::isa<llvm::Constant>(value);
}

/// Shared-memory addressing of a wgmma operand. `k_axis`: the axis of the tile that is reduced.
struct Source {
  SharedOperand operand;
  bool turned;  // rows run along k
  WgmmaDescriptor form;

  Source(const SharedOperand& of, int k_axis)
      : operand(of),
        turned(of.column_axis != k_axis),
        form{.panel = of.panel_width(),
             .leading = turned ? of.panel_bytes() : 0,
             .stride = 8 * of.panel_width()} {}
  /// Byte offset of the part at a position along k and across it.
  std::int64_t offset(std::int64_t across, std::int64_t k) const {
    return turned ? operand.offset(k, across) : operand.offset(across, k);
  }
};

/// Address of a warpgroup's part of an operand: each of the layout's thread bits above the group's
/// adds the offset of its index bit. `group`: number of the warpgroup.
llvm::Value* part_of_warpgroup(Block& block, llvm::IRBuilder<>& ir, const Layout& layout,
                               const Source& source, int axis, llvm::Value* group) {
  llvm::Value* bytes = block.i32(0);
  for (std::size_t i = kGroupBits; i < layout.thread_bits().size(); ++i) {
    const IndexBit& bit = layout.thread_bits()[i];
    if (bit.axis != axis) continue;
    const std::int64_t further = source.offset(std::int64_t{1} << bit.bit, 0);
    llvm::Value* set = ir.CreateAnd(
        ir.CreateLShr(group, block.i32(static_cast<int>(i) - kGroupBits)), block.i32(1));
    bytes = ir.CreateAdd(bytes, ir.CreateMul(set, block.i32(further)));
  }
  return ir.CreateAdd(source.operand.base, bytes);
}

}  // namespace

// Registers as operands and results of an instruction, or of none: what they hold is computed
// before it, and read after it.
Pieces MatmulWriter::passed_through(const std::string& name, const Pieces& registers) {
  std::vector<llvm::Type*> types;
  std::string
      kinds;  // encodes the operand types in the name: accumulators and words may come in any order
  for (llvm::Value* value : registers) {
    if (types.empty() || types.back() != value->getType())
      kinds += fmt::format(".{}{}", value->getType()->isFloatTy() ? 'f' : 'i', types.size());
    types.push_back(value->getType());
  }
  llvm::Value* passed = block_.special(fmt::format("{}.{}{}", name, registers.size(), kinds),
                                       registers, llvm::StructType::get(ir_.getContext(), types));
  Pieces result;
  for (unsigned i = 0; i < registers.size(); ++i)
    result.push_back(ir_.CreateExtractValue(passed, i));
  return result;
}

Pieces MatmulWriter::finished(const Pieces& registers, std::size_t pending) {
  const std::string name = fmt::format("wgmma.wait.{}", pending);
  if (!registers.empty()) return passed_through(name, registers);
  block_.special(name, {});
  return {};
}

// Register operands pass through the wait too: until then they must not be overwritten.
void MatmulWriter::write(const tile::gpu::WaitMatmul& wait) {
  Pieces all;
  for (const tile::gpu::Fragment& matmul : wait.matmuls) {
    const Pieces sums = tile(matmul);
    all.insert(all.end(), sums.begin(), sums.end());
    if (const auto held = held_.find(matmul.value); held != held_.end())
      all.insert(all.end(), held->second.begin(), held->second.end());
  }
  all = finished(all, wait.pending);
  auto next = all.begin();
  for (const tile::gpu::Fragment& matmul : wait.matmuls) {
    const auto count = static_cast<std::ptrdiff_t>(tile(matmul).size());
    bind({matmul}, Pieces(next, next + count));
    next += count;
    if (const auto held = held_.find(matmul.value); held != held_.end()) {
      next += std::ssize(held->second);
      held_.erase(held);
    }
  }
}

void MatmulWriter::by_warpgroups(const tile::gpu::Matmul& matmul) {
  const Operation& op = operation(matmul.op);
  const MatmulInstruction instruction = plan_.instruction_of(op);
  const Layout& layout = matmul.layout;
  const DType result_type = dtype(op.out[0]);
  Pieces sums = emit_conversion(ir_, tile(op.in[2], layout), result_type, DType::F32);
  const std::optional<Pieces> own = fragments(matmul);
  const std::vector<SharedOperand> operands = operands_in_shared(matmul);
  constexpr std::int64_t kStep = 16, kWords = 4;  // of k; registers of a factor
  const std::int64_t steps = (type(op.in[0]).shape[1] + kStep - 1) / kStep;

  // Uniform over a warp, which the compiler cannot infer from thread indices.
  llvm::Value* group =
      block_.intrinsic(llvm::Intrinsic::nvvm_shfl_sync_idx_i32,
                       {block_.i32(-1), ir_.CreateLShr(block_.thread(), block_.i32(kGroupBits)),
                        block_.i32(0), block_.i32(31)});
  const Source b(operands[1], 0);
  llvm::Value* b_base = part_of_warpgroup(block_, ir_, layout, b, 1, group);
  std::optional<Source> a;
  llvm::Value* a_base = nullptr;
  std::optional<RegisterFragments> in_registers;
  if (own) {
    in_registers.emplace(*plan_.fragments(op), *own, dtype(op.in[0]));
  } else {
    a.emplace(operands[0], 1);
    a_base = part_of_warpgroup(block_, ir_, layout, *a, 0, group);
  }
  const auto described = [&](const Source& source, llvm::Value* base, std::int64_t offset) {
    WgmmaDescriptor form = source.form;
    form.offset = offset;
    return std::array<llvm::Value*, 2>{block_.shared(base),
                                       block_.i64(static_cast<std::int64_t>(form.bits()))};
  };

  // Accumulator registers of 64 rows: two of a row, the two eight rows below, the next eight
  // columns.
  std::int64_t rows = 1;
  for (const IndexBit& bit : layout.register_bits())
    if (bit.axis == 0 && bit.bit > 3) rows *= 2;
  const std::int64_t per_block = layout.registers() / rows, columns = plan_.wgmma_columns(op);
  const std::string name = fmt::format("wgmma.mma.{}.{}.{}{}", columns,
                                       instruction == MatmulInstruction::Half ? "f16" : "bf16",
                                       a && a->turned ? 1 : 0, b.turned ? 1 : 0) +
                           (own ? ".rs" : ".ss");
  const std::int64_t used = columns / 2;  // registers of the columns that there are
  const std::vector<llvm::Type*> types(static_cast<std::size_t>(used), ir_.getFloatTy());
  llvm::Type* result = llvm::StructType::get(ir_.getContext(), types);

  Pieces held;  // factors in registers: computed before the first instruction, so that none waits
  if (own)
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t s = 0; s < steps; ++s)
        for (llvm::Value* word : in_registers->words(
                 block_, layout.offset(0, static_cast<int>(row * per_block)), s * kStep))
          held.push_back(word);
  if (own && std::ranges::none_of(sums, is_constant)) {
    Pieces all = held;
    all.insert(all.end(), sums.begin(), sums.end());
    all = passed_through("wgmma.pin", all);
    std::copy_n(all.begin(), held.size(), held.begin());
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(held.size()), sums.size(), sums.begin());
  }
  block_.special("wgmma.fence", {});
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t first = row * per_block;
    const std::int64_t m = layout.offset(0, static_cast<int>(first));
    for (std::int64_t s = 0; s < steps; ++s) {
      std::vector<llvm::Value*> arguments;
      if (own) {
        const auto words = held.begin() + (row * steps + s) * kWords;
        arguments.insert(arguments.end(), words, words + kWords);
      } else {
        const auto words = described(*a, a_base, a->offset(m, s * kStep));
        arguments.insert(arguments.end(), words.begin(), words.end());
      }
      const auto words = described(b, b_base, b.offset(0, s * kStep));
      arguments.insert(arguments.end(), words.begin(), words.end());
      const auto part = sums.begin() + first;
      arguments.insert(arguments.end(), part, part + used);
      llvm::Value* made = block_.special(name, arguments, result);
      for (std::int64_t i = 0; i < used; ++i)
        part[i] = ir_.CreateExtractValue(made, static_cast<unsigned>(i));
    }
  }
  block_.special("wgmma.commit", {});
  if (matmul.completion == tile::gpu::Matmul::Completion::Now)
    sums = emit_conversion(ir_, finished(sums, 0), DType::F32, result_type);
  define(op.out[0], layout, std::move(sums));
  if (matmul.completion == tile::gpu::Matmul::Completion::NextIteration) finished({}, 1);
  if (matmul.completion == tile::gpu::Matmul::Completion::Awaited)
    held_.insert_or_assign(op.out[0], std::move(held));
}

}  // namespace tessera::codegen::ptx
