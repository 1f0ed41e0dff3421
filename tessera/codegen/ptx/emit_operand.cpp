#include <algorithm>
#include <bit>

#include "tessera/codegen/ptx/emitter.h"

// Operands of matmuls: in shared memory, or in registers as fragments.

namespace tessera::codegen::ptx {
using tile::Code;

bool Emitter::names_shared(const Operation& op) {
  if (op.code != Code::Permute && op.code != Code::Reshape) return false;
  const auto found = operands_.find(op.in[0]);
  if (found == operands_.end()) return false;
  SharedOperand named = found->second;
  if (op.code == Code::Permute && op.ints[0] == 1) named.column_axis = 1 - named.column_axis;
  operands_[op.out[0]] = named;
  return true;
}

std::optional<Pieces> Emitter::fragments(const Operation& dot) {
  const std::optional<Layout> layout = plan_.fragments(dot);
  if (!layout) return {};
  wait_for(dot.in[0]);
  const auto found = tiles_.find({dot.in[0], *layout});
  if (found == tiles_.end()) return {};
  // Padding beyond the last column is multiplied by zeros, so it must not be NaN or infinite.
  Pieces registers = found->second;
  for (int reg = 0; reg < layout->registers(); ++reg) {
    llvm::Value*& value = registers[static_cast<std::size_t>(reg)];
    if (llvm::Value* inside = block_.is_inside(*layout, type(dot.in[0]).shape, reg))
      value = ir_.CreateSelect(inside, value, llvm::Constant::getNullValue(value->getType()));
  }
  return registers;
}

void Emitter::bring(const Operation& loop) {
  const tile::Region& body = loop.regions[0];
  const auto inside = [&](ValueId id) {
    const bool param = std::find(body.params.begin(), body.params.end(), id) != body.params.end();
    return param || (definitions_[id] && std::find(body.ops.begin(), body.ops.end(),
                                                   *definitions_[id]) != body.ops.end());
  };
  for (const tile::OpId id : body.ops) {
    const Operation& op = kernel_.ops[id];
    if (op.code != Code::Dot || plan_.instruction_of(op) == MatmulInstruction::Scalars ||
        inside(op.in[0]))
      continue;
    if (const auto layout = plan_.fragments(op)) tile(op.in[0], *layout);
  }
}

// Swizzled byte offset of a chunk of a row. Chunks of eight rows in a column would fall into the
// same banks: they are permuted by the row number.
llvm::Value* Emitter::swizzled(const SharedOperand& operand, llvm::Value* row, llvm::Value* chunk) {
  const std::int64_t per_row = operand.panel_width() / kChunk;
  llvm::Value* turn = ir_.CreateAnd(ir_.CreateLShr(row, block_.i32(index_bits(8 / per_row))),
                                    block_.i32(per_row - 1));
  llvm::Value* panel = ir_.CreateLShr(chunk, block_.i32(index_bits(per_row)));
  llvm::Value* inside = ir_.CreateXor(ir_.CreateAnd(chunk, block_.i32(per_row - 1)), turn);
  llvm::Value* at = ir_.CreateAdd(ir_.CreateMul(row, block_.i32(operand.panel_width())),
                                  ir_.CreateMul(inside, block_.i32(kChunk)));
  return operand.row_bytes() <= kPanel
             ? at
             : ir_.CreateAdd(at, ir_.CreateMul(panel, block_.i32(operand.panel_bytes())));
}

void Emitter::clear(const SharedOperand& operand) {
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

void Emitter::put_operand(const SharedOperand& operand, const Layout& layout,
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
      llvm::Value* at = ir_.CreateAdd(swizzled(operand, row, chunk), inside);
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

std::vector<SharedOperand> Emitter::operands_in_shared(const Operation& op,
                                                       MatmulInstruction instruction,
                                                       bool first_in_registers) {
  std::vector<SharedOperand> operands(2);
  std::vector<Pieces> registers(2);
  std::int64_t bytes = 0;
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    const ValueId id = op.in[side];
    if (side == 0 && first_in_registers) continue;
    if (const auto there = operands_.find(id); there != operands_.end()) {
      operands[side] = there->second;
      continue;
    }
    const tile::Extents& shape = type(id).shape;
    const int k_axis = side == 0 ? 1 : 0;
    const std::size_t k = static_cast<std::size_t>(k_axis);
    const Layout layout = home(id);
    SharedOperand& operand = operands[side];
    operand.width = byte_width(dtype(id));
    // 8-bit operands are supported along rows only.
    operand.column_axis = instruction == MatmulInstruction::Byte ? k_axis
                          : layout.run(0) > layout.run(1)        ? 0
                                                                 : 1;
    const std::int64_t along_k = held_extent(shape[k], k_step(instruction));
    const std::int64_t across =
        std::max(held_extent(shape[1 - k], side == 0 ? 16 : 8), layout.extent(1 - k_axis));
    operand.columns = operand.column_axis == k_axis ? along_k : across;
    operand.rows = operand.column_axis == k_axis ? across : along_k;
    registers[side] = tile(id, layout);
    bytes += shared_room(operand.bytes());
  }
  if (bytes == 0) return operands;

  std::int64_t offset = block_.scratch(bytes);
  std::vector<const tile::Extents*> shapes(2, nullptr);
  bool cleared = false;
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    if (registers[side].empty()) continue;
    operands[side].base = block_.i32(offset);
    offset += shared_room(operands[side].bytes());
    // Padding beyond the end of k must be 0; padding along the other axis is not used.
    const ValueId id = op.in[side];
    const std::size_t k = side == 0 ? 1 : 0;
    const Layout layout = home(id);
    const std::int64_t extent = type(id).shape[k];
    if (extent == held_extent(extent, k_step(instruction)) &&
        layout.extent(static_cast<int>(k)) == extent)
      continue;
    shapes[side] = &type(id).shape;
    clear(operands[side]);
    cleared = true;
  }
  if (cleared) block_.barrier();
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
    if (!registers[side].empty())
      put_operand(operands[side], home(op.in[side]), registers[side], shapes[side]);
  if (plan_.uses_wgmma(op)) publish();
  block_.barrier();
  block_.forget();  // it is read from now on
  return operands;
}

}  // namespace tessera::codegen::ptx
