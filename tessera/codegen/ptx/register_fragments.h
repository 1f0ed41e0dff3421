#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "tessera/codegen/ptx/block.h"

namespace tessera::codegen::ptx {

/// First operand of a matmul that is in registers, in the fragment layout of mma and wgmma.
class RegisterFragments {
 public:
  RegisterFragments(const Layout& layout, const Pieces& registers, DType dtype);

  /// Packed words of the 16 by 16 fragment at row `m` and column `k`.
  std::vector<llvm::Value*> words(Block& block, std::int64_t m, std::int64_t k) const;

 private:
  std::map<std::pair<std::int64_t, std::int64_t>, llvm::Value*> elements_;  // by row and column
  DType dtype_;
};

}  // namespace tessera::codegen::ptx
