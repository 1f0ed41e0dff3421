#include <algorithm>
#include <bit>

#include "tessera/codegen/ptx/matmul_writer.h"

// Operands of matmuls: in shared memory, or in registers as fragments.

namespace tessera::codegen::ptx {

using tile::Code;
using tile::gpu::DotOperand;

void MatmulWriter::write(const tile::gpu::RenameBuffer& rename) {
  const Operation& op = operation(rename.op);
  SharedOperand named = values_.buffers.at(op.in[0]);
  if (op.code == Code::Permute && op.ints[0] == 1) named.column_axis = 1 - named.column_axis;
  values_.buffers[op.out[0]] = named;
}

std::optional<Pieces> MatmulWriter::fragments(const tile::gpu::Matmul& matmul) {
  if (matmul.a.place != DotOperand::Place::Registers) return {};
  const Operation& dot = operation(matmul.op);
  return padded_fragments(dot, *plan_.fragments(dot));
}

// Padding beyond the last column is multiplied by zeros, so it must not be NaN or infinite.
Pieces MatmulWriter::padded_fragments(const Operation& dot, const Layout& layout) {
  Pieces registers = tile(dot.in[0], layout);
  for (int reg = 0; reg < layout.registers(); ++reg) {
    llvm::Value*& value = registers[static_cast<std::size_t>(reg)];
    if (llvm::Value* inside = block_.is_inside(layout, type(dot.in[0]).shape, reg))
      value = ir_.CreateSelect(inside, value, llvm::Constant::getNullValue(value->getType()));
  }
  return registers;
}

void MatmulWriter::write(const tile::gpu::HoldOperand& hold) {
  const Operation& dot = operation(hold.op);
  const SharedOperand operand{hold.buffer.panels, block_.i32(hold.buffer.offset)};
  put_operand(operand, hold.layout, padded_fragments(dot, hold.layout), nullptr);
  block_.publish();
  values_.buffers[dot.in[0]] = operand;
}

// Swizzled byte offset of a chunk of a row. Chunks of eight rows in a column would fall into the
// same banks: they are permuted by the row number.
llvm::Value* swizzled(Block& block, const SharedOperand& operand, llvm::Value* row,
                      llvm::Value* chunk) {
  llvm::IRBuilder<>& ir = block.ir;
  const std::int64_t per_row = operand.panel_width() / kChunk;
  llvm::Value* turn =
      ir.CreateAnd(ir.CreateLShr(row, block.i32(index_bits(8 / per_row))), block.i32(per_row - 1));
  llvm::Value* panel = ir.CreateLShr(chunk, block.i32(index_bits(per_row)));
  llvm::Value* inside = ir.CreateXor(ir.CreateAnd(chunk, block.i32(per_row - 1)), turn);
  llvm::Value* at = ir.CreateAdd(ir.CreateMul(row, block.i32(operand.panel_width())),
                                 ir.CreateMul(inside, block.i32(kChunk)));
  return operand.row_bytes() <= kPanel
             ? at
             : ir.CreateAdd(at, ir.CreateMul(panel, block.i32(operand.panel_bytes())));
}

void MatmulWriter::clear(const SharedOperand& operand) {
  llvm::Value* zero = llvm::Constant::getNullValue(llvm::FixedVectorType::get(ir_.getInt32Ty(), 4));
  const std::int64_t line = block_.threads() * kChunk;
  for (std::int64_t at = 0; at < operand.bytes(); at += line) {
    llvm::Value* offset =
        ir_.CreateAdd(ir_.CreateMul(block_.thread(), block_.i32(kChunk)), block_.i32(at));
    block_.when(ir_.CreateICmpULT(offset, block_.i32(operand.bytes())), [&] {
      ir_.CreateAlignedStore(zero, block_.shared(ir_.CreateAdd(operand.base, offset)),
                             llvm::Align(kChunk));
    });
  }
}

void MatmulWriter::put_operand(const SharedOperand& operand, const Layout& layout,
                               const Pieces& registers, const tile::Extents* shape) {
  const int column_axis = operand.column_axis;
  const DType of = word_type(operand.width);
  int run = shape != nullptr
                ? 1
                : std::min<int>(layout.run(column_axis), static_cast<int>(kChunk) / operand.width);
  for (int reg = 0; reg < layout.registers(); reg += run) {
    llvm::Value* row = block_.index(layout, 1 - column_axis, reg);
    llvm::Value* column = block_.index(layout, column_axis, reg);
    const auto write = [&] {
      const std::int64_t per_chunk = kChunk / operand.width;
      llvm::Value* chunk = ir_.CreateLShr(column, block_.i32(index_bits(per_chunk)));
      llvm::Value* inside = ir_.CreateMul(ir_.CreateAnd(column, block_.i32(per_chunk - 1)),
                                          block_.i32(operand.width));
      llvm::Value* at = ir_.CreateAdd(swizzled(block_, operand, row, chunk), inside);
      const std::span<llvm::Value* const> values(registers.data() + reg,
                                                 static_cast<std::size_t>(run));
      ir_.CreateAlignedStore(block_.pack(values, of),
                             block_.shared(ir_.CreateAdd(operand.base, at)),
                             llvm::Align(static_cast<std::uint64_t>(run * operand.width)));
    };
    llvm::Value* wanted = shape == nullptr ? nullptr : block_.is_inside(layout, *shape, reg);
    block_.when(wanted, write);
  }
}

std::vector<SharedOperand> MatmulWriter::operands_in_shared(const tile::gpu::Matmul& matmul) {
  const Operation& op = operation(matmul.op);
  std::vector<SharedOperand> operands(2);
  bool copies = false, cleared = false;
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    const DotOperand& operand = side == 0 ? matmul.a : matmul.b;
    if (operand.place == DotOperand::Place::InBuffer)
      operands[side] = values_.buffers.at(op.in[side]);
    if (!operand.buffer) continue;
    operands[side] = {operand.buffer->panels, block_.i32(operand.buffer->offset)};
    if (operand.buffer->is_cleared) clear(operands[side]);
    cleared = cleared || operand.buffer->is_cleared;
    copies = true;
  }
  if (!copies) return operands;
  if (cleared) block_.barrier();
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    const DotOperand& operand = side == 0 ? matmul.a : matmul.b;
    if (!operand.buffer) continue;
    const Layout held = planned_.home(op.in[side]);
    put_operand(operands[side], held, tile(op.in[side], held),
                operand.buffer->is_cleared ? &type(op.in[side]).shape : nullptr);
  }
  if (plan_.uses_wgmma(op)) block_.publish();
  block_.barrier();
  return operands;
}

}  // namespace tessera::codegen::ptx
