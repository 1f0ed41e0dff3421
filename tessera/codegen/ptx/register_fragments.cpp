#include "tessera/codegen/ptx/register_fragments.h"

namespace tessera::codegen::ptx {

RegisterFragments::RegisterFragments(const Layout& layout, const Pieces& registers, DType dtype)
    : dtype_(dtype) {
  for (int reg = 0; reg < layout.registers(); ++reg)
    elements_[{layout.offset(0, reg), layout.offset(1, reg)}] =
        registers[static_cast<std::size_t>(reg)];
}

std::vector<llvm::Value*> RegisterFragments::words(Block& block, std::int64_t m,
                                                   std::int64_t k) const {
  std::vector<llvm::Value*> words;
  for (const std::int64_t column : {k, k + 8})
    for (const std::int64_t row : {m, m + 8}) {
      llvm::Value* const pair[] = {elements_.at({row, column}), elements_.at({row, column + 1})};
      words.push_back(block.pack(pair, dtype_));
    }
  return words;
}

}  // namespace tessera::codegen::ptx
