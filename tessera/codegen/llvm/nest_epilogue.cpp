#include "tessera/codegen/llvm/nest_epilogue.h"

namespace tessera::codegen {

NestEpilogue::Rows NestEpilogue::rows_of(const DotPart& part) const {
  const tile::Extents& space = nest().space;
  const std::size_t axes = space.size() - 1;
  Rows rows;
  for (int r = 0; r < part.rows; ++r) {
    std::vector<llvm::Value*> outer(space.size(), e_.index(0));
    std::int64_t left = 1;  // rows of the axes to the left
    for (std::size_t i = 0; i < axes; ++i) left *= space[i];
    llvm::Value* rest = e_.ir.CreateAdd(part.row, e_.index(r));
    for (std::size_t i = axes; i-- > 0 && left > 1;) {
      left /= space[i];
      outer[i] = left == 1 ? rest : e_.ir.CreateURem(rest, e_.index(space[i]));
      rest = e_.ir.CreateUDiv(rest, e_.index(space[i]));
    }
    rows.push_back(std::make_unique<Row>(e_, nest(), nest().lane, outer));
  }
  return rows;
}

llvm::Value* NestEpilogue::lane(const DotPart& part, int vector) const {
  return e_.ir.CreateAdd(part.column, e_.index(std::int64_t{vector} * nest().width));
}

std::vector<llvm::Value*> NestEpilogue::start(const DotPart& part) {
  if (!step_.start) return {};
  const Rows rows = rows_of(part);
  std::vector<llvm::Value*> values;
  for (const auto& row : rows)
    for (int v = 0; v < part.vectors; ++v)
      values.push_back(row->vector(step_.start->value, step_.start->at, lane(part, v)));
  for (const auto& row : rows) row->close();
  return values;
}

void NestEpilogue::finish(const DotPart& part, llvm::ArrayRef<llvm::Value*> sums, bool started) {
  const Rows rows = rows_of(part);
  const auto vectors = static_cast<std::size_t>(part.vectors);
  // Vector by vector: operands that all rows share are loaded once.
  for (std::size_t v = 0; v < vectors; ++v) {
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const Row::RegisterInput input{
          .buffer = step_.out,
          .total = started ? std::optional(step_.start->total) : std::nullopt,
          .vector = sums[r * vectors + v]};
      rows[r]->compute_from_registers(input, lane(part, static_cast<int>(v)));
    }
    for (const auto& row : rows) row->write_computed();
  }
  for (const auto& row : rows) row->close();
}

}  // namespace tessera::codegen
