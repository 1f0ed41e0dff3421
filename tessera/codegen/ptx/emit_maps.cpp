#include <fmt/format.h>

#include "tessera/codegen/ptx/emitter.h"

// Copies into a ring by the GPU's copy engine, which knows the views from tensor maps.

namespace tessera::codegen::ptx {

/// One thread asks for the panels of all operands.
void Emitter::copy_boxes(const Operation& op, const Copy& copy, llvm::Value* arrived) {
  llvm::Function& function = block_.function();
  std::int64_t bytes = 0;
  for (const Ring& ring : roles_->ahead.rings) bytes += ring.panels.bytes();
  block_.special("mbarrier.expect", {arrived, block_.i32(bytes)});
  auto next = static_cast<unsigned>(function.arg_size() - roles_->maps.size());
  for (const Ring& ring : roles_->ahead.rings) {
    llvm::Value* map = function.getArg(next++);
    const Origin source = origin_of(op, ring, copy);
    // Places that no view reaches stay so in 32 bits.
    constexpr std::int64_t kFar = std::int64_t{1} << 30;
    const auto place = [&](std::size_t axis, std::int64_t further) {
      llvm::Value* at = ir_.CreateAdd(source.start[axis], block_.i64(further));
      at = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, at, block_.i64(-kFar));
      at = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, at, block_.i64(kFar));
      return ir_.CreateTrunc(at, ir_.getInt32Ty());
    };
    const SharedOperand& operand = source.operand;
    for (std::int64_t at = 0; at < operand.row_bytes(); at += operand.panel_width()) {
      const std::int64_t panel = at / operand.panel_width() * operand.panel_bytes();
      std::vector<llvm::Value*> arguments = {
          block_.shared(ir_.CreateAdd(operand.base, block_.i32(panel))), map, arrived,
          place(ring.column, at / operand.width)};
      for (std::size_t axis = source.shape.size(); axis-- > 0;)
        if (axis != ring.column) arguments.push_back(place(axis, 0));
      block_.special(fmt::format("map.copy.{}", source.shape.size()), arguments);
    }
  }
}

}  // namespace tessera::codegen::ptx
