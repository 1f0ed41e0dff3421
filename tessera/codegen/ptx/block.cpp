#include "tessera/codegen/ptx/block.h"

#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <bit>

#include "tessera/codegen/llvm/flow.h"
#include "tessera/codegen/ptx/instructions.h"
#include "tessera/support/check.h"

namespace tessera::codegen::ptx {

Block::Block(llvm::Function& function, int threads, std::optional<std::int64_t> own_bytes)
    : ir(function.getContext()), function_(&function), threads_(threads) {
  auto* entry = llvm::BasicBlock::Create(ir.getContext(), "entry", function_);
  auto* start = llvm::BasicBlock::Create(ir.getContext(), "start", function_);
  ir.SetInsertPoint(entry);
  thread_ = intrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {});
  if (own_bytes) {
    // Tells the compiler that the value is uniform over a warp.
    which_ = intrinsic(llvm::Intrinsic::nvvm_shfl_sync_idx_i32,
                       {i32(-1), ir.CreateLShr(thread_, i32(kLaneBits)), i32(0), i32(31)});
    thread_ = ir.CreateAnd(thread_, i32((1 << kLaneBits) - 1));
    if (*own_bytes > 0) own_ = ir.CreateMul(which_, i32(*own_bytes));
  }
  entry_end_ = coordinates_end_ = ir.CreateBr(start);
  ir.SetInsertPoint(start);
  auto* bytes = llvm::ArrayType::get(ir.getInt8Ty(), 0);
  memory_ = new llvm::GlobalVariable(module(), bytes, false, llvm::GlobalValue::ExternalLinkage,
                                     nullptr, "tessera_shared", nullptr,
                                     llvm::GlobalValue::NotThreadLocal, kShared, true);
  memory_->setAlignment(llvm::Align(kSharedAlignment));
}

llvm::Type* Block::element(DType dtype) {
  return type_of(dtype, ir.getContext());
}

llvm::BasicBlock* Block::block(const char* name) {
  return llvm::BasicBlock::Create(ir.getContext(), name, function_);
}

llvm::Value* Block::intrinsic(llvm::Intrinsic::ID id, llvm::ArrayRef<llvm::Value*> arguments,
                              llvm::ArrayRef<llvm::Type*> types) {
  return ir.CreateCall(llvm::Intrinsic::getDeclaration(&module(), id, types), arguments);
}

llvm::Value* Block::special(const std::string& name, llvm::ArrayRef<llvm::Value*> arguments,
                            llvm::Type* result) {
  std::vector<llvm::Type*> types;
  for (llvm::Value* argument : arguments) types.push_back(argument->getType());
  auto* type = llvm::FunctionType::get(result == nullptr ? ir.getVoidTy() : result, types, false);
  return ir.CreateCall(module().getOrInsertFunction(kSpecial + name, type), arguments);
}

llvm::Value* Block::thread_bits(int from, int count) {
  llvm::Value* bits = from == 0 ? thread_ : ir.CreateLShr(thread_, i32(from));
  return ir.CreateAnd(bits, i32((std::int64_t{1} << count) - 1));
}

llvm::Value* Block::coordinate(const Layout& layout, int axis, int from_bit) {
  llvm::Value*& known = coordinates_[{layout, {axis, from_bit}}];
  if (known != nullptr) return known;
  const llvm::IRBuilderBase::InsertPointGuard guard(ir);
  ir.SetInsertPoint(coordinates_end_);
  llvm::Value* sum = nullptr;
  const std::vector<IndexBit>& bits = layout.thread_bits();
  for (std::size_t i = static_cast<std::size_t>(from_bit); i < bits.size();) {
    if (bits[i].axis != axis) {
      ++i;
      continue;
    }
    std::size_t end = i + 1;  // end of the thread bits that are consecutive index bits
    while (end < bits.size() &&
           bits[end] == IndexBit{axis, bits[i].bit + static_cast<int>(end - i)})
      ++end;
    llvm::Value* part = thread_bits(static_cast<int>(i), static_cast<int>(end - i));
    part = ir.CreateShl(part, i32(bits[i].bit), "", true, true);
    sum = sum == nullptr ? part : ir.CreateOr(sum, part);
    i = end;
  }
  return known = sum == nullptr ? i32(0) : sum;
}

llvm::Value* Block::index(const Layout& layout, int axis, int reg) {
  return ir.CreateAdd(coordinate(layout, axis), i32(layout.offset(axis, reg)), "", true, true);
}

llvm::Value* Block::is_first(const Layout& layout) {
  std::int64_t mask = 0;
  for (std::size_t i = 0; i < layout.thread_bits().size(); ++i)
    if (layout.thread_bits()[i].axis < 0) mask |= std::int64_t{1} << i;
  if (mask == 0) return nullptr;
  return ir.CreateICmpEQ(ir.CreateAnd(thread_, i32(mask)), i32(0));
}

llvm::Value* Block::is_inside(const Layout& layout, const tile::Extents& shape, int reg) {
  llvm::Value* inside = nullptr;
  for (int axis = 0; axis < layout.rank(); ++axis) {
    llvm::Value* below = is_below(layout, axis, reg, shape[static_cast<std::size_t>(axis)]);
    if (below != ir.getTrue()) inside = both(inside, below);
  }
  return inside;
}

llvm::Value* Block::is_below(const Layout& layout, int axis, int reg, std::int64_t extent) {
  const std::int64_t first = layout.offset(axis, reg);
  if (first >= extent) return ir.getFalse();
  std::int64_t last = first;
  for (const IndexBit& bit : layout.thread_bits())
    if (bit.axis == axis) last += std::int64_t{1} << bit.bit;
  if (last < extent) return ir.getTrue();
  return ir.CreateICmpULT(index(layout, axis, reg), i32(extent));
}

llvm::Value* Block::across(llvm::Value* value, int thread_bit) {
  llvm::Type* type = value->getType();
  const unsigned bits = type->getPrimitiveSizeInBits();
  llvm::Value* word = ir.CreateBitCast(value, ir.getIntNTy(bits));
  const auto shuffle = [&](llvm::Value* half) {
    return intrinsic(llvm::Intrinsic::nvvm_shfl_sync_bfly_i32,
                     {i32(-1), half, i32(std::int64_t{1} << thread_bit), i32(31)});
  };
  if (bits <= 32) {
    word = ir.CreateTrunc(shuffle(ir.CreateZExt(word, ir.getInt32Ty())), ir.getIntNTy(bits));
  } else {
    llvm::Value* low = shuffle(ir.CreateTrunc(word, ir.getInt32Ty()));
    llvm::Value* high = shuffle(ir.CreateTrunc(ir.CreateLShr(word, i64(32)), ir.getInt32Ty()));
    word = ir.CreateOr(ir.CreateZExt(low, ir.getInt64Ty()),
                       ir.CreateShl(ir.CreateZExt(high, ir.getInt64Ty()), i64(32)));
  }
  return ir.CreateBitCast(word, type);
}

void Block::barrier() {
  if (which_ != nullptr) {
    intrinsic(llvm::Intrinsic::nvvm_bar_warp_sync, {i32(-1)});
  } else if (barrier_ != nullptr) {
    intrinsic(llvm::Intrinsic::nvvm_barrier, {barrier_, i32(threads_)});
  } else {
    intrinsic(llvm::Intrinsic::nvvm_barrier0, {});
  }
}

void Block::renew_thread() {
  thread_ = special("thread.pin", {thread_}, ir.getInt32Ty());
  llvm::BasicBlock* next = block("renewed");
  coordinates_end_ = ir.CreateBr(next);
  ir.SetInsertPoint(next);
  coordinates_.clear();
}

void Block::restrict_to(const ThreadGroups& of) {
  const llvm::IRBuilderBase::InsertPointGuard guard(ir);
  coordinates_end_ = entry_end_;
  ir.SetInsertPoint(entry_end_);
  thread_ = intrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {});
  if (of.first > 0) thread_ = ir.CreateSub(thread_, i32(of.first));
  threads_ = of.threads;
  barrier_ = i32(of.barrier);
  group_ = own_ = nullptr;
  if (of.groups > 1) {
    const int bits = index_bits(of.threads);
    // Tells the compiler that the value is uniform over a warp.
    group_ = intrinsic(llvm::Intrinsic::nvvm_shfl_sync_idx_i32,
                       {i32(-1), ir.CreateLShr(thread_, i32(bits)), i32(0), i32(31)});
    thread_ = ir.CreateAnd(thread_, i32(of.threads - 1));
    own_ = ir.CreateMul(group_, i32(of.own_bytes));
    barrier_ = ir.CreateAdd(barrier_, group_);
  }
  coordinates_.clear();
}

llvm::Value* Block::slot(llvm::Value* initial) {
  const llvm::IRBuilderBase::InsertPointGuard guard(ir);
  ir.SetInsertPoint(entry_end_);
  llvm::Value* made = ir.CreateAlloca(initial->getType());
  ir.CreateStore(initial, made);
  return made;
}

llvm::Type* Block::packed_type(DType dtype, int count) {
  const int bytes = byte_width(dtype) * count;
  if (bytes < 4) return ir.getIntNTy(static_cast<unsigned>(bytes) * 8);
  const int word = byte_width(dtype) == 8 ? 8 : 4;
  llvm::Type* type = ir.getIntNTy(static_cast<unsigned>(word) * 8);
  return bytes == word ? type
                       : llvm::FixedVectorType::get(type, static_cast<unsigned>(bytes / word));
}

llvm::Value* Block::pack(std::span<llvm::Value* const> values, DType dtype) {
  const int width = byte_width(dtype);
  llvm::Type* type = packed_type(dtype, static_cast<int>(values.size()));
  const unsigned word_bits = type->getScalarSizeInBits();
  const std::size_t per_word =
      std::max<std::size_t>(1, word_bits / 8 / static_cast<unsigned>(width));
  llvm::Type* word_type = ir.getIntNTy(word_bits);
  llvm::Value* packed = llvm::PoisonValue::get(type);
  for (std::size_t i = 0; i < values.size(); i += per_word) {
    llvm::Value* word = nullptr;
    if (width == 2 && per_word == 2) {
      auto* pair_type = llvm::FixedVectorType::get(values[i]->getType(), 2);
      llvm::Value* pair = llvm::PoisonValue::get(pair_type);
      for (unsigned j = 0; j < 2; ++j) pair = ir.CreateInsertElement(pair, values[i + j], j);
      word = ir.CreateBitCast(pair, word_type);
    } else {
      for (std::size_t j = 0; j < per_word; ++j) {
        const unsigned bits = values[i + j]->getType()->getPrimitiveSizeInBits();
        llvm::Value* part =
            ir.CreateZExt(ir.CreateBitCast(values[i + j], ir.getIntNTy(bits)), word_type);
        part = ir.CreateShl(part, 8 * static_cast<std::uint64_t>(width) * j);
        word = word == nullptr ? part : ir.CreateOr(word, part);
      }
    }
    packed = type == word_type ? word : ir.CreateInsertElement(packed, word, i / per_word);
  }
  return packed;
}

Pieces Block::unpack(llvm::Value* packed, DType dtype, int count) {
  const unsigned width = static_cast<unsigned>(byte_width(dtype));
  const unsigned word_bits = packed->getType()->getScalarSizeInBits();
  const unsigned per_word = std::max(1u, word_bits / 8 / width);
  llvm::Type* type = element(dtype);
  Pieces values;
  for (unsigned i = 0; i < static_cast<unsigned>(count); ++i) {
    llvm::Value* word =
        packed->getType()->isVectorTy() ? ir.CreateExtractElement(packed, i / per_word) : packed;
    const unsigned j = i % per_word;
    if (width == 2 && per_word == 2) {
      llvm::Value* pair = ir.CreateBitCast(word, llvm::FixedVectorType::get(type, 2));
      values.push_back(ir.CreateExtractElement(pair, j));
    } else if (dtype == DType::Bool) {
      llvm::Value* byte = ir.CreateTrunc(ir.CreateLShr(word, 8 * j), ir.getInt8Ty());
      values.push_back(ir.CreateIsNotNull(byte));
    } else {
      llvm::Value* part =
          ir.CreateTrunc(ir.CreateLShr(word, 8 * width * j), ir.getIntNTy(8 * width));
      values.push_back(ir.CreateBitCast(part, type));
    }
  }
  return values;
}

llvm::Value* Block::shared(llvm::Value* offset) {
  if (own_ != nullptr) offset = ir.CreateAdd(offset, own_);
  return ir.CreatePtrAdd(memory_, ir.CreateZExt(offset, ir.getInt64Ty()));
}

llvm::Value* Block::address(const Buffer& buffer, std::span<llvm::Value* const> indices) {
  llvm::Value* offset = i32(buffer.offset);
  if (buffer.base != nullptr) offset = ir.CreateAdd(offset, buffer.base);
  for (std::size_t axis = 0; axis < indices.size(); ++axis)
    offset = ir.CreateAdd(offset, ir.CreateMul(indices[axis], i32(buffer.strides[axis])));
  return shared(offset);
}

int Block::shared_run(const Buffer& buffer, const Layout& layout,
                      std::span<const std::int64_t> at) const {
  if (layout.rank() == 0) return 1;
  std::int64_t run = std::min<std::int64_t>(layout.run(layout.rank() - 1),
                                            tile::gpu::kChunk / byte_width(buffer.dtype));
  // Offsets along the last axis that are not a multiple of the vector would be misaligned.
  if (!at.empty() && at.back() != 0) run = std::min<std::int64_t>(run, at.back() & -at.back());
  for (std::size_t axis = 0; axis + 1 < buffer.strides.size(); ++axis)
    while (buffer.strides[axis] % (run * byte_width(buffer.dtype)) != 0) run /= 2;
  return static_cast<int>(run);
}

// An address that depends on the thread index alone is rematerialized where it is needed, which
// costs less than a live register. One with a base of its own, such as that of a consumer group, is
// computed once for all registers: the rest are constant offsets, which are part of an access.
llvm::Value* Block::address(const Buffer& buffer, const Layout& layout, int reg,
                            std::span<const std::int64_t> at) {
  const bool kept = own_ != nullptr || buffer.base != nullptr;
  std::vector<llvm::Value*> indices;
  std::int64_t bytes = 0;
  for (int axis = 0; axis < layout.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    const std::int64_t from = at.empty() ? 0 : at[i];
    indices.push_back(kept ? coordinate(layout, axis)
                           : ir.CreateAdd(index(layout, axis, reg), i32(from)));
    bytes += (layout.offset(axis, reg) + from) * buffer.strides[i];
  }
  llvm::Value* made = address(buffer, indices);
  return kept ? ir.CreatePtrAdd(made, i64(bytes)) : made;
}

void Block::put(const Buffer& buffer, const Layout& layout, const Pieces& registers,
                std::span<const std::int64_t> at, const tile::Extents* shape) {
  const int run = shape != nullptr ? 1 : shared_run(buffer, layout, at);
  for (int reg = 0; reg < layout.registers(); reg += run) {
    const auto store = [&] {
      const std::span<llvm::Value* const> values(registers.data() + reg,
                                                 static_cast<std::size_t>(run));
      ir.CreateAlignedStore(
          pack(values, buffer.dtype), address(buffer, layout, reg, at),
          llvm::Align(static_cast<std::uint64_t>(run * byte_width(buffer.dtype))));
    };
    llvm::Value* inside = shape == nullptr ? nullptr : is_inside(layout, *shape, reg);
    when(inside, store);
  }
}

Pieces Block::take(const Buffer& buffer, const Layout& layout, std::span<const std::int64_t> at) {
  const int run = shared_run(buffer, layout, at);
  Pieces registers;
  for (int reg = 0; reg < layout.registers(); reg += run) {
    llvm::Value* packed = ir.CreateAlignedLoad(
        packed_type(buffer.dtype, run), address(buffer, layout, reg, at),
        llvm::Align(static_cast<std::uint64_t>(run * byte_width(buffer.dtype))));
    for (llvm::Value* value : unpack(packed, buffer.dtype, run)) registers.push_back(value);
  }
  return registers;
}

llvm::Value* Block::take_one(const Buffer& buffer, std::span<llvm::Value* const> indices) {
  llvm::Value* packed =
      ir.CreateAlignedLoad(packed_type(buffer.dtype, 1), address(buffer, indices),
                           llvm::Align(static_cast<std::uint64_t>(byte_width(buffer.dtype))));
  return unpack(packed, buffer.dtype, 1).front();
}

Pieces Block::convert(const Pieces& registers, const Layout& from, const Layout& to,
                      const std::optional<tile::gpu::SharedTile>& through) {
  if (!through) {
    Pieces renamed;
    for (int reg = 0; reg < to.registers(); ++reg) {
      std::size_t source = 0;
      for (std::size_t i = 0; i < to.register_bits().size(); ++i) {
        const auto place = std::find(from.register_bits().begin(), from.register_bits().end(),
                                     to.register_bits()[i]);
        source |= static_cast<std::size_t>((reg >> i) & 1)
                  << (place - from.register_bits().begin());
      }
      renamed.push_back(registers[source]);
    }
    return renamed;
  }
  put(*through, from, registers);
  barrier();
  return take(*through, to);
}

}  // namespace tessera::codegen::ptx
