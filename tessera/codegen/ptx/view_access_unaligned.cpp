#include "tessera/codegen/ptx/view_access.h"

// Unaligned rows: 16 bytes are combined from two aligned words of 16 bytes. A word is loaded only
// if some of it is needed, so that no page outside of the row is accessed.

namespace tessera::codegen::ptx {
namespace {

constexpr int kWords = 4;

}  // namespace

bool ViewAccess::may_be_unaligned(const Place& place) {
  return place.known && place.known->unaligned && place.run * byte_width(place.dtype) == kChunk;
}

// The 16 bytes at a byte offset from the first of two adjacent words.
llvm::Value* ViewAccess::from_two_words(llvm::Value* low, llvm::Value* high, llvm::Value* bytes,
                                        int width) {
  Pieces words;
  for (llvm::Value* part : {low, high})
    for (int i = 0; i < kWords; ++i)
      words.push_back(ir_.CreateExtractElement(part, static_cast<std::uint64_t>(i)));
  for (const int step : {2, 1}) {  // words; what is left after the first step is less than two
    if (step * 4 < width) continue;
    llvm::Value* moves = ir_.CreateIsNotNull(ir_.CreateAnd(bytes, block_.i32(step * 4)));
    for (std::size_t i = 0; i + static_cast<std::size_t>(step) < words.size(); ++i)
      words[i] = ir_.CreateSelect(moves, words[i + static_cast<std::size_t>(step)], words[i]);
    words.resize(words.size() - static_cast<std::size_t>(step));
  }
  llvm::Value* packed = llvm::PoisonValue::get(low->getType());
  llvm::Value* bits = ir_.CreateShl(ir_.CreateAnd(bytes, block_.i32(3)), block_.i32(3));
  for (std::size_t i = 0; i < kWords; ++i) {
    llvm::Value* word = words[i];
    if (width < 4)
      word =
          ir_.CreateIntrinsic(llvm::Intrinsic::fshr, {word->getType()}, {words[i + 1], word, bits});
    packed = ir_.CreateInsertElement(packed, word, i);
  }
  return packed;
}

llvm::Value* ViewAccess::load_unaligned(const Place& place, int reg) {
  llvm::Value *from = address(place, reg), *to = ir_.CreateAdd(from, block_.i64(kChunk - 1));
  llvm::Value* touches = nullptr;
  if (place.known->edge) {
    const Values::Row& row = values_.rows.at(place.id);
    touches = touches_row(place, reg, place.run);
    from = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, from, row.first);
    to =
        ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, to, ir_.CreateSub(row.end, block_.i64(1)));
  }
  auto* word = llvm::FixedVectorType::get(ir_.getInt32Ty(), kWords);
  const auto load = [&](llvm::Value* at) {
    at = ir_.CreateAnd(at, block_.i64(-kChunk));
    if (touches != nullptr) at = ir_.CreateSelect(touches, at, nowhere());
    return ir_.CreateAlignedLoad(word, global(at), llvm::Align(kChunk));
  };
  llvm::Value* bytes =
      ir_.CreateTrunc(ir_.CreateAnd(place.address, block_.i64(kChunk - 1)), ir_.getInt32Ty());
  llvm::Value* packed = from_two_words(load(from), load(to), bytes, byte_width(place.dtype));
  return ir_.CreateBitCast(packed, block_.packed_type(place.dtype, place.run));
}

}  // namespace tessera::codegen::ptx
