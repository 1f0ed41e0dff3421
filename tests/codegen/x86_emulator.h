#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>

#include "tessera/support/check.h"
#include "tessera/support/half.h"

namespace tessera::codegen {
namespace x86_emulator {

// As Intel's "Architecture Instruction Set Extensions Programming Reference" describes palette 1.
struct Tile {
  std::array<std::array<std::byte, 64>, 16> rows;
  int height = 0, bytes = 0;
};
inline thread_local std::array<Tile, 8> tiles;
inline thread_local bool is_configured = false;

inline Tile& tile_at(std::uint8_t number) {
  TESSERA_CHECK(is_configured && number < 8, "tile {} is not configured", number);
  return tiles[number];
}

template <class T>
T get(const Tile& tile, int row, int index) {
  T value;
  std::memcpy(
      &value,
      &tile.rows[static_cast<std::size_t>(row)][static_cast<std::size_t>(index) * sizeof value],
      sizeof value);
  return value;
}
template <class T>
void put(Tile& tile, int row, int index, T value) {
  std::memcpy(
      &tile.rows[static_cast<std::size_t>(row)][static_cast<std::size_t>(index) * sizeof value],
      &value, sizeof value);
}

inline void ldtilecfg(const std::uint8_t* config) {
  TESSERA_CHECK(config[0] == 1 && config[1] == 0, "palette {} from row {}", config[0], config[1]);
  for (std::size_t i = 0; i < 8; ++i) {
    std::uint16_t bytes = 0;
    std::memcpy(&bytes, config + 16 + 2 * i, sizeof bytes);
    const int height = config[48 + i];
    TESSERA_CHECK(bytes >= 1 && bytes <= 64 && height >= 1 && height <= 16, "tile {}: {} x {}", i,
                  height, bytes);
    tiles[i] = {.rows = {}, .height = height, .bytes = bytes};
  }
  is_configured = true;
}

inline void tilerelease() {
  is_configured = false;
}

inline void tilezero(std::uint8_t number) {
  tile_at(number).rows = {};
}

inline void tileloadd(std::uint8_t number, const std::byte* from, std::int64_t stride) {
  Tile& tile = tile_at(number);
  tile.rows = {};
  for (int row = 0; row < tile.height; ++row)
    std::memcpy(tile.rows[static_cast<std::size_t>(row)].data(), from + row * stride,
                static_cast<std::size_t>(tile.bytes));
}

inline void tilestored(std::uint8_t number, std::byte* to, std::int64_t stride) {
  const Tile& tile = tile_at(number);
  for (int row = 0; row < tile.height; ++row)
    std::memcpy(to + row * stride, tile.rows[static_cast<std::size_t>(row)].data(),
                static_cast<std::size_t>(tile.bytes));
}

/// The tiles of a product, which fit.
struct Product {
  Product(std::uint8_t to, std::uint8_t left, std::uint8_t right)
      : c(tile_at(to)), a(tile_at(left)), b(tile_at(right)) {
    TESSERA_CHECK(to != left && to != right && left != right, "a product of a tile with itself");
    TESSERA_CHECK(c.height == a.height && c.bytes == b.bytes && a.bytes == 4 * b.height,
                  "tiles {}x{} and {}x{} do not make one of {}x{}", a.height, a.bytes, b.height,
                  b.bytes, c.height, c.bytes);
  }
  Tile &c, &a, &b;
};

template <class A, class B>
void tdpb(std::uint8_t to, std::uint8_t left, std::uint8_t right) {
  const Product p(to, left, right);
  for (int m = 0; m < p.c.height; ++m)
    for (int n = 0; n < p.c.bytes / 4; ++n) {
      auto sum = get<std::uint32_t>(p.c, m, n);
      for (int k = 0; k < p.b.height; ++k)
        for (int i = 0; i < 4; ++i)
          sum += static_cast<std::uint32_t>(int{get<A>(p.a, m, 4 * k + i)} *
                                            int{get<B>(p.b, k, 4 * n + i)});
      put(p.c, m, n, sum);
    }
}

inline void tdpbf16ps(std::uint8_t to, std::uint8_t left, std::uint8_t right) {
  const Product p(to, left, right);
  for (int m = 0; m < p.c.height; ++m)
    for (int n = 0; n < p.c.bytes / 4; ++n) {
      float sums[2] = {};
      for (int k = 0; k < p.b.height; ++k)
        for (int i = 0; i < 2; ++i)
          sums[i] += to_float(get<BFloat16>(p.a, m, 2 * k + i)) *
                     to_float(get<BFloat16>(p.b, k, 2 * n + i));
      put(p.c, m, n, get<float>(p.c, m, n) + (sums[0] + sums[1]));
    }
}

template <class F>
std::uint64_t address(F* function) {
  return reinterpret_cast<std::uintptr_t>(function);
}

/// The elements from `first` on, each `step` behind the one before.
inline llvm::Value* every(llvm::IRBuilder<>& ir, llvm::Value* vector, int first, int step) {
  const auto count =
      static_cast<int>(llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements());
  llvm::SmallVector<int, 16> mask;
  for (int i = first; i < count; i += step) mask.push_back(i);
  return ir.CreateShuffleVector(vector, mask);
}

/// c + the sums of products of neighbours: u8 x i8 by fours, or bf16 x bf16 by pairs.
inline llvm::Value* dot_of_neighbours(llvm::IRBuilder<>& ir, llvm::CallInst& call) {
  llvm::Value *c = call.getArgOperand(0), *a = call.getArgOperand(1), *b = call.getArgOperand(2);
  const auto* type = llvm::cast<llvm::FixedVectorType>(c->getType());
  const bool floats = type->getElementType()->isFloatTy();
  const unsigned lanes = type->getNumElements(), group = floats ? 2 : 4;
  llvm::Type* narrow = floats ? static_cast<llvm::Type*>(ir.getBFloatTy()) : ir.getInt8Ty();
  auto* from = llvm::FixedVectorType::get(narrow, lanes * group);
  auto* to = llvm::FixedVectorType::get(type->getElementType(), lanes * group);
  a = ir.CreateBitCast(a, from);
  b = ir.CreateBitCast(b, from);
  llvm::Value* products = floats ? ir.CreateFMul(ir.CreateFPExt(a, to), ir.CreateFPExt(b, to))
                                 : ir.CreateMul(ir.CreateZExt(a, to), ir.CreateSExt(b, to));
  for (unsigned i = 0; i < group; ++i) {
    llvm::Value* part = every(ir, products, static_cast<int>(i), static_cast<int>(group));
    c = floats ? ir.CreateFAdd(c, part) : ir.CreateAdd(c, part);
  }
  return c;
}

}  // namespace x86_emulator

/// Replaces the instructions of x86-64 that dots are made of, in a module, by what does the same on
/// any processor. A use of tiles that a processor would refuse is a failed check.
inline void emulate_x86(llvm::Module& module) {
  using namespace x86_emulator;
  using I = std::int8_t;
  using U = std::uint8_t;
  const std::map<std::string, std::uint64_t> functions = {
      {"llvm.x86.ldtilecfg", address(ldtilecfg)},
      {"llvm.x86.tilerelease", address(tilerelease)},
      {"llvm.x86.tilezero", address(tilezero)},
      {"llvm.x86.tileloadd64", address(tileloadd)},
      {"llvm.x86.tilestored64", address(tilestored)},
      {"llvm.x86.tdpbf16ps", address(tdpbf16ps)},
      {"llvm.x86.tdpbssd", address(tdpb<I, I>)},
      {"llvm.x86.tdpbsud", address(tdpb<I, U>)},
      {"llvm.x86.tdpbusd", address(tdpb<U, I>)},
      {"llvm.x86.tdpbuud", address(tdpb<U, U>)},
  };
  llvm::SmallVector<llvm::Function*, 8> intrinsics;
  const auto is_dot = [](const llvm::Function& function) {
    const llvm::StringRef name = function.getName();
    return function.isIntrinsic() && (name.contains("vpdpbusd") || name.contains("dpbf16ps."));
  };
  for (llvm::Function& function : module)
    if (functions.contains(function.getName().str()) || is_dot(function))
      intrinsics.push_back(&function);
  llvm::IRBuilder<> ir(module.getContext());
  for (llvm::Function* intrinsic : intrinsics) {
    if (is_dot(*intrinsic)) {
      for (llvm::User* user : llvm::make_early_inc_range(intrinsic->users())) {
        auto* old = llvm::cast<llvm::CallInst>(user);
        ir.SetInsertPoint(old);
        old->replaceAllUsesWith(dot_of_neighbours(ir, *old));
        old->eraseFromParent();
      }
      continue;
    }
    auto* type = llvm::FunctionType::get(ir.getVoidTy(), intrinsic->getFunctionType()->params(),
                                         /*isVarArg=*/false);
    llvm::Constant* callee = llvm::ConstantExpr::getIntToPtr(
        ir.getInt64(functions.at(intrinsic->getName().str())), ir.getPtrTy());
    for (llvm::User* user : llvm::make_early_inc_range(intrinsic->users())) {
      auto* old = llvm::cast<llvm::CallInst>(user);
      ir.SetInsertPoint(old);
      llvm::CallInst* call = ir.CreateCall(
          type, callee, llvm::SmallVector<llvm::Value*, 3>(old->arg_begin(), old->arg_end()));
      // AArch64 leaves the upper bits of small arguments open, but not so x86-64's compilers.
      for (unsigned i = 0; i < call->arg_size(); ++i)
        if (call->getArgOperand(i)->getType()->isIntegerTy(8))
          call->addParamAttr(i, llvm::Attribute::ZExt);
      old->eraseFromParent();
    }
    intrinsic->eraseFromParent();
  }
}

}  // namespace tessera::codegen
