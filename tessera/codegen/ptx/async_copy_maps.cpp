#include <fmt/format.h>

#include <algorithm>

#include "tessera/codegen/ptx/async_copy.h"

// TMA copies into the multi-stage buffers, by tensor maps.

namespace tessera::codegen::ptx {

void AsyncCopy::copy_boxes(const Operation& op, const LoopPipeline& pipeline, const Copy& copy,
                           const BoxCopy& boxes) {
  std::int64_t bytes = 0;
  for (const StagedOperand& staged : boxes.operands) bytes += staged.panels.bytes();
  block_.special(boxes.is_last ? "mbarrier.expect" : "mbarrier.expect_more",
                 {boxes.mbarrier, block_.i32(bytes)});
  for (const StagedOperand& staged : boxes.operands) {
    const auto number = std::ranges::find(pipeline.operands, staged.load, &StagedOperand::load) -
                        pipeline.operands.begin();
    const Origin source = origin_of(op, staged, copy);
    std::vector<int> order = {static_cast<int>(source.column)};
    for (int axis = static_cast<int>(source.shape.size()); axis-- > 0;)
      if (axis != order.front()) order.push_back(axis);
    copy_box(source, {static_cast<std::size_t>(number), order}, boxes.mbarrier);
  }
}

void AsyncCopy::copy_tile_by_map(const StagedOperand& staged, llvm::Value* base, std::size_t map,
                                 llvm::Value* mbarrier) {
  block_.special("mbarrier.expect", {mbarrier, block_.i32(staged.panels.bytes())});
  const Origin source = origin_here(staged, base);
  copy_box(source, {map, runtime::cuda::axis_order(source.shape, static_cast<int>(source.column))},
           mbarrier);
}

void AsyncCopy::copy_box(const Origin& source, const MapOfBox& of, llvm::Value* mbarrier) {
  const auto& [number, order] = of;
  llvm::Function& function = block_.function();
  const std::size_t first_map = function.arg_size() - static_cast<std::size_t>(mapping_.maps);
  llvm::Value* map = function.getArg(static_cast<unsigned>(first_map + number));
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
        block_.shared(ir_.CreateAdd(operand.base, block_.i32(panel))), map, mbarrier};
    for (const int axis : order)
      arguments.push_back(place(static_cast<std::size_t>(axis),
                                axis == static_cast<int>(source.column) ? at / operand.width : 0));
    block_.special(fmt::format("map.copy.{}", source.shape.size()), arguments);
  }
}

}  // namespace tessera::codegen::ptx
