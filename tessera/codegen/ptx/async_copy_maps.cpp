#include <fmt/format.h>

#include <algorithm>

#include "tessera/codegen/ptx/async_copy.h"

// TMA copies into the multi-stage buffers, by tensor maps.

namespace tessera::codegen::ptx {

void AsyncCopy::copy_boxes(const Operation& op, const LoopPipeline& pipeline, const Copy& copy,
                           const BoxCopy& boxes) {
  llvm::Function& function = block_.function();
  std::int64_t bytes = 0;
  for (const StagedOperand& staged : boxes.operands) bytes += staged.panels.bytes();
  block_.special(boxes.is_last ? "mbarrier.expect" : "mbarrier.expect_more",
                 {boxes.mbarrier, block_.i32(bytes)});
  const std::size_t first_map = function.arg_size() - static_cast<std::size_t>(mapping_.maps);
  for (const StagedOperand& staged : boxes.operands) {
    const auto number = std::ranges::find(pipeline.operands, staged.load, &StagedOperand::load) -
                        pipeline.operands.begin();
    llvm::Value* map =
        function.getArg(static_cast<unsigned>(first_map + static_cast<std::size_t>(number)));
    const Origin source = origin_of(op, staged, copy);
    // Positions out of bounds stay so in 32 bits.
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
          block_.shared(ir_.CreateAdd(operand.base, block_.i32(panel))), map, boxes.mbarrier,
          place(staged.column, at / operand.width)};
      for (std::size_t axis = source.shape.size(); axis-- > 0;)
        if (axis != staged.column) arguments.push_back(place(axis, 0));
      block_.special(fmt::format("map.copy.{}", source.shape.size()), arguments);
    }
  }
}

}  // namespace tessera::codegen::ptx
