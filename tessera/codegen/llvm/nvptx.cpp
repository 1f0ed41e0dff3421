#include "tessera/codegen/llvm/nvptx.h"

#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>

namespace tessera::codegen::nvptx {

bool takes(const Lanes& x) {
  const llvm::Module& module = *x.ir().GetInsertBlock()->getModule();
  return x.type()->isFloatTy() && llvm::StringRef(module.getTargetTriple()).starts_with("nvptx");
}

Lanes quotient(const Lanes& a, const Lanes& b) {
  const Lanes reciprocal = each_piece(
      [&](auto* of) {
        return b.ir().CreateIntrinsic(llvm::Intrinsic::nvvm_rcp_approx_ftz_f, {}, {of});
      },
      b);
  const Lanes near = a * reciprocal;
  return fma(fma(-near, b, a), reciprocal, near);
}

}  // namespace tessera::codegen::nvptx
