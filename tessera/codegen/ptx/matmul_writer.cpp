#include "tessera/codegen/ptx/matmul_writer.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <bit>
#include <set>

#include "tessera/codegen/ptx/functions.h"
#include "tessera/codegen/ptx/register_fragments.h"

namespace tessera::codegen::ptx {

void MatmulWriter::write(const tile::gpu::Matmul& matmul) {
  const Operation& op = operation(matmul.op);
  if (plan_.instruction_of(op) == MatmulInstruction::Scalars) return by_scalars(matmul);
  return plan_.uses_wgmma(op) ? by_warpgroups(matmul) : by_warps(matmul);
}

/// Shared-memory addresses of an operand's fragments: a base per thread, and for each fragment a
/// constant and the swizzle.
struct MatmulWriter::Fragments {
  MatmulWriter& writer;
  SharedOperand operand;
  bool turned;         // rows run along k: transposing ldmatrix
  llvm::Value* row;    // of the lane
  llvm::Value* chunk;  // of the lane, swizzled
  llvm::Value* start;

  /// `low_half_is_row`: the second eight lanes address rows 8 to 15 and the upper sixteen the next
  /// chunk; else the other way round. `across`: the warp's position along m or n.
  Fragments(MatmulWriter& e, const SharedOperand& of, bool k_in_rows, bool low_half_is_row,
            llvm::Value* across)
      : writer(e), operand(of), turned(k_in_rows) {
    Block& block = e.block_;
    llvm::IRBuilder<>& ir = e.ir_;
    // Lanes 0-7, 8-15, 16-23, 24-31 address the rows of four matrices of 8 by 16 bytes.
    llvm::Value* low = block.thread_bits(0, 3);
    llvm::Value* eight = block.thread_bits(low_half_is_row ? 3 : 4, 1);
    llvm::Value* next = block.thread_bits(low_half_is_row ? 4 : 3, 1);
    row = ir.CreateOr(low, ir.CreateShl(eight, block.i32(3)));
    chunk = next;
    if (turned) {
      chunk = ir.CreateOr(chunk, ir.CreateLShr(across, block.i32(3)));
    } else {
      row = ir.CreateAdd(row, across);
    }
    // Row offsets added later are multiples of 8: they do not change the swizzle.
    llvm::Value* lane = swizzled(block, operand, low, block.i32(0));
    llvm::Value* turn = ir.CreateLShr(
        ir.CreateSub(lane, ir.CreateMul(low, block.i32(operand.panel_width()))), block.i32(4));
    start = ir.CreateAdd(operand.base, ir.CreateMul(row, block.i32(operand.panel_width())));
    if (operand.row_bytes() > kPanel) {
      llvm::Value* panel = ir.CreateLShr(chunk, block.i32(3));
      start = ir.CreateAdd(start, ir.CreateMul(panel, block.i32(operand.panel_bytes())));
      chunk = ir.CreateAnd(chunk, block.i32(7));
    }
    chunk = ir.CreateXor(chunk, turn);
  }

  /// Four-byte elements along k, which ldmatrix does not transpose: each thread loads its own.
  /// `patches` of eight across, each at k and k + 4.
  std::vector<llvm::Value*> read_words(llvm::Value* offset, llvm::Value* across, std::int64_t k,
                                       int patches) const {
    Block& block = writer.block_;
    llvm::IRBuilder<>& ir = writer.ir_;
    std::vector<llvm::Value*> words;
    llvm::Value* const column = ir.CreateAdd(across, block.thread_bits(2, 3));
    for (const std::int64_t further : {0, 4})
      for (int patch = 0; patch < patches; ++patch) {
        llvm::Value* at = ir.CreateAdd(column, block.i32(8 * patch));
        llvm::Value* bytes =
            swizzled(block, operand, ir.CreateAdd(block.thread_bits(0, 2), block.i32(k + further)),
                     ir.CreateLShr(at, block.i32(2)));
        bytes = ir.CreateAdd(
            bytes, ir.CreateMul(ir.CreateAnd(at, block.i32(3)), block.i32(operand.width)));
        bytes = ir.CreateAdd(ir.CreateAdd(operand.base, offset), bytes);
        words.push_back(ir.CreateAlignedLoad(ir.getInt32Ty(), block.shared(bytes),
                                             llvm::Align(static_cast<unsigned>(operand.width))));
      }
    return words;
  }

  /// Loads `count` matrices at a constant offset of `rows` and `chunks`.
  std::vector<llvm::Value*> read(llvm::Value* offset, std::int64_t rows, std::int64_t chunks,
                                 int count) const {
    Block& block = writer.block_;
    llvm::IRBuilder<>& ir = writer.ir_;
    const std::int64_t low = chunks & 7, panels = chunks / 8;
    llvm::Value* at =
        ir.CreateAdd(start, ir.CreateMul(ir.CreateXor(chunk, block.i32(low)), block.i32(kChunk)));
    at = ir.CreateAdd(at, offset);
    llvm::Value* pointer = ir.CreatePtrAdd(
        block.shared(at), block.i64(rows * operand.panel_width() + panels * operand.panel_bytes()));
    using namespace llvm::Intrinsic;  // NOLINT(google-build-using-namespace): names of a table
    const llvm::Intrinsic::ID id = count == 4
                                       ? (turned ? nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16
                                                 : nvvm_ldmatrix_sync_aligned_m8n8_x4_b16)
                                       : (turned ? nvvm_ldmatrix_sync_aligned_m8n8_x2_trans_b16
                                                 : nvvm_ldmatrix_sync_aligned_m8n8_x2_b16);
    llvm::Value* loaded = block.intrinsic(id, {pointer}, {pointer->getType()});
    std::vector<llvm::Value*> words;
    for (int i = 0; i < count; ++i)
      words.push_back(ir.CreateExtractValue(loaded, static_cast<unsigned>(i)));
    return words;
  }
};

/// Tensor-core matmul of one tile by mma: fragments are loaded from shared memory by ldmatrix (the
/// first operand may be in registers), and multiplied patch by patch of 16 by 8 accumulators.
struct MatmulWriter::MmaTile {
  MatmulWriter& writer;
  const Layout layout;  // of the accumulators
  const MatmulInstruction instruction;
  Pieces sums;
  std::optional<RegisterFragments> own = {};  // the first operand, if it is in registers
  std::optional<Fragments> a = {};            // else
  std::optional<Fragments> b = {};
  std::set<std::int64_t> rows = {}, columns = {};  // of the patches

  static constexpr std::int64_t kChunksPerStep = 2;  // of 16 bytes

  MmaTile(MatmulWriter& e, const Layout& accumulators, MatmulInstruction of, Pieces start)
      : writer(e), layout(accumulators), instruction(of), sums(std::move(start)) {
    for (int reg = 0; reg < layout.registers(); reg += 4) {
      rows.insert(layout.offset(0, reg));
      columns.insert(layout.offset(1, reg));
    }
  }

  std::int64_t step() const { return k_step(instruction); }
  /// ldmatrix transposes 16-bit elements only.
  bool loads_words() const { return instruction == MatmulInstruction::Tf32; }
  llvm::Value* across(int axis, std::int64_t from) const {
    return writer.ir_.CreateAdd(writer.block_.coordinate(layout, axis, kLaneBits),
                                writer.block_.i32(from));
  }

  // Order of the matrices: A is loaded as (m, k), (m + 8, k), (m, k + 8), …; B as (k, n), (k + 8,
  // n), ….
  std::vector<llvm::Value*> a_fragment(llvm::Value* offset, std::int64_t m, std::int64_t s) const {
    if (own) return own->words(writer.block_, m, s * 16);
    if (a->turned && loads_words()) return a->read_words(offset, across(0, m), s * step(), 2);
    return a->turned ? a->read(offset, s * step(), m / 8, 4)
                     : a->read(offset, m, s * kChunksPerStep, 4);
  }
  /// Fragments of one k-step, by column.
  std::map<std::int64_t, std::vector<llvm::Value*>> b_fragments(llvm::Value* offset,
                                                                std::int64_t s) const {
    const int pairs = columns.size() > 1 ? 2 : 1;  // adjacent patches per ldmatrix
    std::map<std::int64_t, std::vector<llvm::Value*>> all;
    for (const std::int64_t n : columns) {
      if (b->turned && loads_words()) {
        all[n] = b->read_words(offset, across(1, n), s * step(), 1);
        continue;
      }
      if (pairs == 2 && n % 16 != 0) continue;
      const std::vector<llvm::Value*> words =
          b->turned ? b->read(offset, s * step(), n / 8, 2 * pairs)
                    : b->read(offset, n, s * kChunksPerStep, 2 * pairs);
      for (std::size_t i = 0; 2 * i < words.size(); ++i)
        all[n + 8 * static_cast<std::int64_t>(i)] = {words[2 * i], words[2 * i + 1]};
    }
    return all;
  }

  /// One k-step of the whole tile, from operands at these byte offsets.
  void multiply(llvm::Value* a_offset, llvm::Value* b_offset, std::int64_t s) {
    std::map<std::int64_t, std::vector<llvm::Value*>> a_words;
    for (const std::int64_t m : rows) a_words[m] = a_fragment(a_offset, m, s);
    const auto b_words = b_fragments(b_offset, s);
    for (int reg = 0; reg < layout.registers(); reg += 4) {
      std::vector<llvm::Value*> operands = a_words.at(layout.offset(0, reg));
      const std::vector<llvm::Value*>& second = b_words.at(layout.offset(1, reg));
      operands.insert(operands.end(), second.begin(), second.end());
      multiply_patch(std::move(operands), static_cast<std::size_t>(reg));
    }
  }

  void multiply_patch(std::vector<llvm::Value*> arguments, std::size_t first) {
    llvm::IRBuilder<>& ir = writer.ir_;
    Block& block = writer.block_;
    if (instruction == MatmulInstruction::Half)
      for (llvm::Value*& word : arguments)
        word = ir.CreateBitCast(word, llvm::FixedVectorType::get(ir.getHalfTy(), 2));
    if (instruction == MatmulInstruction::Tf32)
      for (llvm::Value*& word : arguments)
        word = block.intrinsic(llvm::Intrinsic::nvvm_f2tf32_rna,
                               {ir.CreateBitCast(word, ir.getFloatTy())});
    for (std::size_t i = 0; i < 4; ++i) arguments.push_back(sums[first + i]);
    using namespace llvm::Intrinsic;  // NOLINT(google-build-using-namespace): names of a table
    const llvm::Intrinsic::ID id =
        instruction == MatmulInstruction::Half     ? nvvm_mma_m16n8k16_row_col_f32_f32
        : instruction == MatmulInstruction::BFloat ? nvvm_mma_m16n8k16_row_col_bf16
        : instruction == MatmulInstruction::Tf32   ? nvvm_mma_m16n8k8_row_col_tf32
                                                   : nvvm_mma_m16n8k32_row_col_s8;
    llvm::Value* patch = block.intrinsic(id, arguments);
    for (std::size_t i = 0; i < 4; ++i)
      sums[first + i] = ir.CreateExtractValue(patch, static_cast<unsigned>(i));
  }

  /// All k-steps as straight-line code.
  void multiply_unrolled(std::int64_t steps) {
    for (std::int64_t s = 0; s < steps; ++s)
      multiply(writer.block_.i32(0), writer.block_.i32(0), s);
  }

  /// A loop over groups of `unroll` k-steps, which are a panel, or whole rows: the swizzle stays
  /// the same.
  void multiply_in_loop(std::int64_t steps, std::int64_t unroll) {
    llvm::IRBuilder<>& ir = writer.ir_;
    Block& block = writer.block_;
    const auto further = [&](const Fragments& of) {
      return of.turned ? unroll * step() * of.operand.panel_width() : of.operand.panel_bytes();
    };
    llvm::BasicBlock* before = ir.GetInsertBlock();
    llvm::BasicBlock *body = block.block("k"), *after = block.block("after");
    ir.CreateBr(body);
    ir.SetInsertPoint(body);
    std::vector<llvm::PHINode*> carried = writer.carry(sums, before);
    llvm::PHINode* group = ir.CreatePHI(ir.getInt32Ty(), 2);
    group->addIncoming(block.i32(0), before);
    sums.assign(carried.begin(), carried.end());
    for (std::int64_t s = 0; s < unroll; ++s) {
      llvm::Value* a_offset = ir.CreateMul(group, block.i32(further(*a)));
      llvm::Value* b_offset = ir.CreateMul(group, block.i32(further(*b)));
      multiply(a_offset, b_offset, s);
    }
    llvm::Value* next = ir.CreateAdd(group, block.i32(1));
    group->addIncoming(next, body);
    for (std::size_t i = 0; i < carried.size(); ++i) carried[i]->addIncoming(sums[i], body);
    ir.CreateCondBr(ir.CreateICmpULT(next, block.i32(steps / unroll)), body, after);
    ir.SetInsertPoint(after);
  }
};

void MatmulWriter::by_warps(const tile::gpu::Matmul& matmul) {
  const Operation& op = operation(matmul.op);
  const MatmulInstruction instruction = plan_.instruction_of(op);
  const Layout& layout = matmul.layout;
  const DType sum_type = instruction == MatmulInstruction::Byte ? DType::I32 : DType::F32;
  const DType result_type = dtype(op.out[0]);
  Pieces start = tile(op.in[2], layout);
  if (result_type != sum_type) start = emit_conversion(ir_, start, result_type, sum_type);
  MmaTile mma(*this, layout, instruction, std::move(start));
  const std::optional<Pieces> own = fragments(matmul);
  const std::vector<SharedOperand> operands = operands_in_shared(matmul);
  const bool a_turned = operands[0].column_axis == 0, b_turned = operands[1].column_axis == 1;
  if (!own)
    mma.a.emplace(*this, operands[0], a_turned, !a_turned, block_.coordinate(layout, 0, kLaneBits));
  mma.b.emplace(*this, operands[1], b_turned, b_turned, block_.coordinate(layout, 1, kLaneBits));
  if (own) mma.own.emplace(*plan_.fragments(op), *own, dtype(op.in[0]));

  constexpr std::int64_t kMostUnrolled = 8, kUnroll = 4;
  const std::int64_t steps = held_extent(type(op.in[0]).shape[1], mma.step()) / mma.step();
  if (steps <= kMostUnrolled || own)
    mma.multiply_unrolled(steps);
  else
    mma.multiply_in_loop(steps, kUnroll);
  Pieces sums = std::move(mma.sums);
  if (result_type != sum_type) sums = emit_conversion(ir_, sums, sum_type, result_type);
  define(op.out[0], layout, std::move(sums));
}

// One scalar fma per element, in the order of k.
void MatmulWriter::by_scalars(const tile::gpu::Matmul& matmul) {
  const Operation& op = operation(matmul.op);
  const Layout& layout = matmul.layout;
  const DType result_type = dtype(op.out[0]);
  const DType sum_type =
      result_type == DType::F16 || result_type == DType::BF16 ? DType::F32 : result_type;
  Pieces sums = emit_conversion(ir_, tile(op.in[2], layout), result_type, sum_type);
  const std::vector<tile::gpu::SharedTile>& buffers = matmul.scalars;
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    const Layout held = planned_.home(op.in[side]);
    block_.put(buffers[side], held, tile(op.in[side], held));
  }
  block_.barrier();

  llvm::BasicBlock* before = ir_.GetInsertBlock();
  llvm::BasicBlock *body = block_.block("k"), *after = block_.block("after");
  ir_.CreateBr(body);
  ir_.SetInsertPoint(body);
  std::vector<llvm::PHINode*> carried = carry(sums, before);
  llvm::PHINode* k = ir_.CreatePHI(ir_.getInt32Ty(), 2);
  k->addIncoming(block_.i32(0), before);
  std::map<std::int64_t, llvm::Value*> elements[2];
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    for (int reg = 0; reg < layout.registers(); ++reg) {
      llvm::Value*& element = elements[side][layout.offset(static_cast<int>(side), reg)];
      if (element != nullptr) continue;
      llvm::Value* own = block_.index(layout, static_cast<int>(side), reg);
      llvm::Value* const indices[] = {side == 0 ? own : k,
                                      side == 0 ? static_cast<llvm::Value*>(k) : own};
      element = emit_conversion(ir_, {block_.take_one(buffers[side], indices)}, dtype(op.in[side]),
                                sum_type)
                    .front();
    }
  }
  for (int reg = 0; reg < layout.registers(); ++reg) {
    llvm::Value* left = elements[0][layout.offset(0, reg)];
    llvm::Value* right = elements[1][layout.offset(1, reg)];
    llvm::Value*& sum = sums[static_cast<std::size_t>(reg)];
    sum = carried[static_cast<std::size_t>(reg)];
    sum = is_float(sum_type)
              ? ir_.CreateIntrinsic(llvm::Intrinsic::fma, {sum->getType()}, {left, right, sum})
              : ir_.CreateAdd(sum, ir_.CreateMul(left, right));
  }
  llvm::Value* next = ir_.CreateAdd(k, block_.i32(1));
  k->addIncoming(next, body);
  for (std::size_t i = 0; i < carried.size(); ++i) carried[i]->addIncoming(sums[i], body);
  ir_.CreateCondBr(ir_.CreateICmpULT(next, block_.i32(type(op.in[0]).shape[1])), body, after);
  ir_.SetInsertPoint(after);
  define(op.out[0], layout, emit_conversion(ir_, sums, sum_type, result_type));
}

}  // namespace tessera::codegen::ptx
