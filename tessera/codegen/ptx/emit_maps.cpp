#include <fmt/format.h>

#include <algorithm>

#include "tessera/codegen/ptx/emitter.h"
#include "tessera/tile/argument.h"

// Copies into a ring by the GPU's copy engine, which knows the views from tensor maps.

namespace tessera::codegen::ptx {

using runtime::cuda::TensorMap;
using tile::Code;

std::optional<TensorMap> Emitter::map_of(ValueId view) const {
  const std::vector<ValueId> params = kernel_.params();
  TensorMap map;
  const auto defined = [&](ValueId id, Code code) {
    return definitions_[id] && kernel_.ops[*definitions_[id]].code == code
               ? &kernel_.ops[*definitions_[id]]
               : nullptr;
  };
  if (const Operation* made = defined(view, Code::View)) {
    // All that is open is its base.
    if (made->in.size() != 1) return {};
    map.extents = type(view).shape;
    map.strides = type(view).strides;
    view = made->in[0];
    if (const Operation* further = defined(view, Code::Offset)) {
      const Operation* by = defined(further->in[1], Code::Const);
      if (by == nullptr) return {};
      map.offset = by->literal.integer;
      view = further->in[0];
    }
    if (const Operation* base = defined(view, Code::Base)) view = base->in[0];
  }
  const auto param = std::find(params.begin(), params.end(), view);
  if (param == params.end()) return {};
  map.word = tile::word_positions(kernel_)[static_cast<std::size_t>(param - params.begin())];
  return map;
}

std::vector<TensorMap> Emitter::maps_of(const Ahead& ahead) const {
  std::vector<TensorMap> maps;
  for (const Ring& ring : ahead.rings) {
    const Operation& load = kernel_.ops[ring.load];
    std::optional<TensorMap> map = map_of(load.in[0]);
    if (!map) return {};
    map->column = static_cast<int>(ring.column);
    map->width = ring.operand.width;
    map->box = type(load.out[0]).shape;
    map->box[ring.column] = ring.operand.panel_width() / ring.operand.width;
    if (!is_valid(*map)) return {};
    // What is known now of a view is no surprise at launch: a base of 0 is aligned.
    const std::vector<std::uint64_t> words(static_cast<std::size_t>(map->word) + 1);
    if (!map->extents.empty() && !shape_of(*map, words)) return {};
    maps.push_back(*std::move(map));
  }
  return maps.size() <= runtime::cuda::kMostMaps ? maps : std::vector<TensorMap>{};
}

/// One thread asks for the panels of all operands.
void Emitter::copy_boxes(const Operation& op, const Copy& copy, llvm::Value* arrived) {
  llvm::Function& function = block_.function();
  std::int64_t bytes = 0;
  for (const Ring& ring : roles_->ahead.rings) bytes += ring.operand.bytes();
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
