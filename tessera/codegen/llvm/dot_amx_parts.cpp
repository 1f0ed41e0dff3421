#include "tessera/codegen/llvm/dot_amx_parts.h"

#include <fmt/format.h>
#include <llvm/IR/Module.h>

#include <array>
#include <numeric>

namespace tessera::codegen::amx {
namespace {

using llvm::Value;
using IR = llvm::IRBuilder<>;

/// Tile register numbers: four of c, two of a, two of b.
int tile_of_c(int row, int column) {
  return 2 * row + column;
}
int tile_of_a(int row) {
  return 4 + row;
}
int tile_of_b(int column) {
  return 6 + column;
}

Value* constant(IR& ir, std::int64_t value) {
  return ir.getInt64(static_cast<std::uint64_t>(value));
}

Value* bytes_at(IR& ir, Value* base, Value* offset) {
  return ir.CreateGEP(ir.getInt8Ty(), base, offset);
}

void call(IR& ir, const std::string& name, llvm::ArrayRef<Value*> arguments) {
  ir.CreateCall(intrinsic_named(*ir.GetInsertBlock()->getModule(), name), arguments);
}

/// Tile intrinsic: tile registers by number, which are immediates, then values.
void call(IR& ir, const char* name, std::initializer_list<int> tiles,
          std::initializer_list<Value*> values = {}) {
  llvm::SmallVector<Value*, 3> arguments;
  for (const int tile : tiles) arguments.push_back(ir.getInt8(static_cast<std::uint8_t>(tile)));
  arguments.append(values);
  call(ir, name, arguments);
}

llvm::FixedVectorType* vector_of(IR& ir, int elements, int bytes = 1) {
  return llvm::FixedVectorType::get(ir.getIntNTy(8U * static_cast<unsigned>(bytes)),
                                    static_cast<unsigned>(elements));
}

void store(IR& ir, Value* value, Value* at) {
  ir.CreateAlignedStore(value, at, llvm::Align(1));
}

/// The first `live` elements of a vector in memory, padded with zeros.
Value* load_first(IR& ir, llvm::FixedVectorType* type, Value* at, Value* live) {
  const unsigned count = type->getNumElements();
  llvm::SmallVector<std::uint8_t, 64> positions(count);
  std::iota(positions.begin(), positions.end(), std::uint8_t{0});
  Value* spread = ir.CreateVectorSplat(count, ir.CreateTrunc(live, ir.getInt8Ty()));
  Value* exists = ir.CreateICmpULT(
      llvm::ConstantDataVector::get(ir.getContext(), llvm::ArrayRef<std::uint8_t>(positions)),
      spread);
  const llvm::Align align(type->getScalarSizeInBits() / 8);
  return ir.CreateMaskedLoad(type, at, align, exists, llvm::Constant::getNullValue(type));
}

/// Interleaves 1, 2 or 4 vectors: x0[0] x1[0] … x0[1] x1[1] ….
Value* interleaved(IR& ir, llvm::ArrayRef<Value*> rows) {
  if (rows.size() == 1) return rows[0];
  Values even, odd;
  for (std::size_t i = 0; i < rows.size(); ++i) (i % 2 == 0 ? even : odd).push_back(rows[i]);
  Value *x = interleaved(ir, even), *y = interleaved(ir, odd);
  const int count =
      static_cast<int>(llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements());
  llvm::SmallVector<int, 128> mask;
  for (int i = 0; i < count; ++i) mask.append({i, count + i});
  return ir.CreateShuffleVector(x, y, mask);
}

llvm::Function* packer_function(llvm::Module& module, const std::string& name,
                                llvm::ArrayRef<llvm::Type*> types, FunctionBody body) {
  return shared_function(module, name, types, [&](IR& ir, llvm::Function& function) {
    for (const unsigned i : {0U, 1U}) function.addParamAttr(i, llvm::Attribute::NoAlias);
    body(ir, function);
  });
}

struct Types {
  explicit Types(llvm::Module& module)
      : pointer(llvm::PointerType::get(module.getContext(), 0)),
        i64(llvm::Type::getInt64Ty(module.getContext())),
        i1(llvm::Type::getInt1Ty(module.getContext())) {}
  llvm::Type *pointer, *i64, *i1;
};

}  // namespace

void configure(IR& ir, int height) {
  // Palette 1; bytes per row of each tile from offset 16 on, 2 bytes each; rows from offset 48 on.
  std::array<std::uint8_t, 64> bytes{};
  bytes[0] = 1;
  for (int tile = 0; tile < 8; ++tile) {
    bytes[static_cast<std::size_t>(16 + 2 * tile)] = bytes_of_row;
    bytes[static_cast<std::size_t>(48 + tile)] =
        static_cast<std::uint8_t>(tile < tile_of_b(0) ? height : rows_of_tile);
  }
  llvm::Module& module = *ir.GetInsertBlock()->getModule();
  const std::string name = fmt::format("dot.amx.tiles.{}", height);
  llvm::GlobalVariable* config = module.getGlobalVariable(name, /*AllowInternal=*/true);
  if (config == nullptr) {
    auto* value =
        llvm::ConstantDataArray::get(ir.getContext(), llvm::ArrayRef<std::uint8_t>(bytes));
    config = new llvm::GlobalVariable(module, value->getType(), /*isConstant=*/true,
                                      llvm::GlobalValue::InternalLinkage, value, name);
    config->setAlignment(llvm::Align(64));
  }
  call(ir, "llvm.x86.ldtilecfg", {}, {config});
}

void release(IR& ir) {
  call(ir, "llvm.x86.tilerelease", {});
}

llvm::Function* kernel(llvm::Module& module, const Kernel& kernel) {
  const Types t(module);
  const std::string name = fmt::format("dot.amx.{}.{}x{}.h{}", kernel.instruction, kernel.rows,
                                       kernel.columns, kernel.height);
  return shared_function(
      module, name, {t.i64, t.pointer, t.i64, t.pointer, t.i64, t.pointer, t.pointer, t.i64, t.i1},
      [&](IR& ir, llvm::Function& function) {
        function.setAlignment(llvm::Align(64));
        const auto in = [&](unsigned i) -> Value* { return function.getArg(i); };
        Value *tiles = in(0), *a_next = in(2), *b_stride = in(4), *rest = in(5), *c_stride = in(7);
        Value* row_stride = constant(ir, bytes_of_row);
        const auto each_of_c = [&](const char* instruction, bool in_memory) {
          for (int row = 0; row < kernel.rows; ++row)
            for (int column = 0; column < kernel.columns; ++column) {
              Value* at = ir.CreateAdd(ir.CreateMul(c_stride, constant(ir, row * kernel.height)),
                                       constant(ir, column * bytes_of_row));
              if (in_memory)
                call(ir, instruction, {tile_of_c(row, column)},
                     {bytes_at(ir, in(6), at), c_stride});
              else
                call(ir, instruction, {tile_of_c(row, column)});
            }
        };
        emit_if(ir, in(8), [&] { each_of_c("llvm.x86.tileloadd64", true); });
        emit_if(ir, ir.CreateNot(in(8)), [&] { each_of_c("llvm.x86.tilezero", false); });

        const auto multiply = [&](Value* a, Value* b, Value* stride) {
          for (int row = 0; row < kernel.rows; ++row) {
            Value* at = row == 0 ? a : bytes_at(ir, a, a_next);
            call(ir, "llvm.x86.tileloadd64", {tile_of_a(row)}, {at, row_stride});
            for (int column = 0; column < kernel.columns; ++column) {
              if (row == 0)
                call(ir, "llvm.x86.tileloadd64", {tile_of_b(column)},
                     {bytes_at(ir, b, constant(ir, column * bytes_of_row)), stride});
              call(ir, kernel.instruction,
                   {tile_of_c(row, column), tile_of_a(row), tile_of_b(column)});
            }
          }
        };
        Value* a_step = constant(ir, kernel.height * bytes_of_row);
        Value* b_step = ir.CreateMul(b_stride, constant(ir, rows_of_tile));
        const Values ends = emit_for(
            ir, constant(ir, 0), tiles, 1, {in(1), in(3)}, [&](Value*, const Values& at) -> Values {
              multiply(at[0], at[1], b_stride);
              return {bytes_at(ir, at[0], a_step), bytes_at(ir, at[1], b_step)};
            });
        emit_if(ir, ir.CreateIsNotNull(rest),
                [&] { multiply(ends[0], rest, constant(ir, bytes_of_group)); });
        each_of_c("llvm.x86.tilestored64", true);
      });
}

llvm::Function* row_packer(llvm::Module& module, DType dtype, int height) {
  const Types t(module);
  const int width = byte_width(dtype);
  return packer_function(
      module, fmt::format("dot.amx.rows.{}.{}", width, height),
      {t.pointer, t.pointer, t.i64, t.i64, t.i64}, [&](IR& ir, llvm::Function& function) {
        const auto in = [&](unsigned i) -> Value* { return function.getArg(i); };
        llvm::FixedVectorType* type = vector_of(ir, bytes_of_row);
        Value* zeros = llvm::Constant::getNullValue(type);
        Value* bytes = ir.CreateMul(in(4), constant(ir, width));
        Value* whole = ir.CreateAnd(bytes, constant(ir, -bytes_of_row));
        Value* end = ir.CreateAnd(ir.CreateAdd(bytes, constant(ir, bytes_of_row - 1)),
                                  constant(ir, -bytes_of_row));
        const auto target = [&](Value* row, Value* at) {
          return bytes_at(ir, in(0),
                          ir.CreateAdd(ir.CreateMul(row, constant(ir, bytes_of_row)),
                                       ir.CreateMul(at, constant(ir, height))));
        };
        emit_for(ir, constant(ir, 0), in(3), 1, [&](Value* row) {
          Value* source =
              bytes_at(ir, in(1), ir.CreateMul(row, ir.CreateMul(in(2), constant(ir, width))));
          emit_for(ir, constant(ir, 0), whole, bytes_of_row, [&](Value* at) {
            Value* part = ir.CreateAlignedLoad(type, bytes_at(ir, source, at), llvm::Align(1));
            store(ir, part, target(row, at));
          });
          emit_if(ir, ir.CreateICmpNE(whole, end), [&] {
            Value* part =
                load_first(ir, type, bytes_at(ir, source, whole), ir.CreateSub(bytes, whole));
            store(ir, part, target(row, whole));
          });
        });
        emit_for(ir, in(3), constant(ir, height), 1, [&](Value* row) {
          emit_for(ir, constant(ir, 0), end, bytes_of_row,
                   [&](Value* at) { store(ir, zeros, target(row, at)); });
        });
      });
}

llvm::Function* column_packer(llvm::Module& module, DType dtype, int k_group) {
  const Types t(module);
  const int width = byte_width(dtype);
  return packer_function(
      module, fmt::format("dot.amx.columns.{}x{}", width, k_group),
      {t.pointer, t.pointer, t.i64, t.i64, t.i64}, [&](IR& ir, llvm::Function& function) {
        const auto in = [&](unsigned i) -> Value* { return function.getArg(i); };
        Value* k = in(4);
        llvm::FixedVectorType* type = vector_of(ir, 2 * columns_of_tile, width);
        Value* stride = ir.CreateMul(in(2), constant(ir, width));
        Value* whole = ir.CreateAnd(k, constant(ir, -k_group));
        const auto target = [&](Value* first_k) {
          return bytes_at(ir, in(0), ir.CreateMul(first_k, constant(ir, bytes_of_group / k_group)));
        };
        const auto group = [&](Value* first_k, bool all) {
          Values rows;
          for (int i = 0; i < k_group; ++i) {
            Value* at = ir.CreateAdd(first_k, constant(ir, i));
            Value* live =
                all ? in(3) : ir.CreateSelect(ir.CreateICmpSLT(at, k), in(3), constant(ir, 0));
            rows.push_back(
                load_first(ir, type, bytes_at(ir, in(1), ir.CreateMul(at, stride)), live));
          }
          store(ir, interleaved(ir, rows), target(first_k));
        };
        emit_for(ir, constant(ir, 0), whole, k_group, [&](Value* at) { group(at, true); });
        emit_if(ir, ir.CreateICmpNE(whole, k), [&] { group(whole, false); });
        const int chunk = rows_of_tile * k_group;
        Value* filled =
            ir.CreateAnd(ir.CreateAdd(k, constant(ir, k_group - 1)), constant(ir, -k_group));
        Value* end = ir.CreateAnd(ir.CreateAdd(k, constant(ir, chunk - 1)), constant(ir, -chunk));
        emit_for(ir, filled, end, k_group, [&](Value* at) {
          store(ir, llvm::Constant::getNullValue(vector_of(ir, bytes_of_group)), target(at));
        });
      });
}

llvm::Function* rest_packer(llvm::Module& module) {
  const Types t(module);
  return packer_function(
      module, "dot.amx.rest", {t.pointer, t.pointer, t.i64, t.i64},
      [&](IR& ir, llvm::Function& function) {
        const auto in = [&](unsigned i) -> Value* { return function.getArg(i); };
        llvm::FixedVectorType* type = vector_of(ir, bytes_of_group);
        const auto target = [&](Value* group) {
          return bytes_at(ir, in(0), ir.CreateMul(group, constant(ir, bytes_of_group)));
        };
        emit_for(ir, constant(ir, 0), in(3), 1, [&](Value* group) {
          Value* from = bytes_at(ir, in(1), ir.CreateMul(group, in(2)));
          store(ir, ir.CreateAlignedLoad(type, from, llvm::Align(1)), target(group));
        });
        emit_for(ir, in(3), constant(ir, rows_of_tile), 1, [&](Value* group) {
          store(ir, llvm::Constant::getNullValue(type), target(group));
        });
      });
}

}  // namespace tessera::codegen::amx
