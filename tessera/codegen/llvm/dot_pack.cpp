#include <llvm/IR/Module.h>

#include <bit>

#include "tessera/codegen/llvm/dot_parts.h"

namespace tessera::codegen {
namespace {

using llvm::Value;

class Packing {
 public:
  Packing(llvm::IRBuilder<>& ir, llvm::Function& function, const Packer& pack)
      : ir_(ir), pack_(pack) {
    Value** const arguments[] = {&panel_, &source_, &line_stride_, &k_stride_, &lines_, &k_};
    for (llvm::Argument& argument : function.args()) *arguments[argument.getArgNo()] = &argument;
    from_ = type_of(pack.from, ir.getContext());
    to_ = type_of(pack.to, ir.getContext());
    if (pack.all_lines) lines_ = constant(pack.lines);
    if (pack.unit == Packer::Unit::Lines) line_stride_ = constant(1);
    if (pack.unit == Packer::Unit::K) k_stride_ = constant(1);
  }

  void emit() {
    // All lines are there, except in the last panel of a matrix, which may take its time.
    Value* full = pack_.all_lines ? ir_.getTrue()
                                  : ir_.CreateICmpEQ(lines_, constant(pack_.lines));
    Value* k_whole = pack_.whole_k ? k_ : ir_.CreateAnd(k_, constant(-k_step()));
    Value* k_fast = ir_.CreateSelect(full, k_whole, constant(0));
    int fast_lines = 0;
    if (pack_.unit == Packer::Unit::Lines) {
      fast_lines = pack_.lines;
      emit_for(ir_, constant(0), k_fast, k_step(), [&](Value* k) { interleave_rows(k); });
    } else if (pack_.unit == Packer::Unit::K) {
      fast_lines = pack_.lines / block() * block();
      emit_for(ir_, constant(0), k_fast, k_step(), [&](Value* k) {
        for (int line = 0; line < fast_lines; line += block()) transpose(line, k);
      });
    }
    Value* rest = ir_.CreateSelect(full, constant(fast_lines), constant(0));
    if (fast_lines < pack_.lines) copy({rest, lines_}, {constant(0), k_fast});
    if (!pack_.all_lines || !pack_.whole_k) copy({constant(0), lines_}, {k_fast, k_});

    Value* k_end = pack_.whole_k ? k_ : round_up(k_, pack_.k_multiple);
    fill({lines_, constant(pack_.lines)}, {constant(0), k_end});
    fill({constant(0), lines_}, {k_, k_end});
  }

 private:
  struct Range {
    Value *first, *last;
  };

  Value* constant(std::int64_t value) { return ir_.getInt64(static_cast<std::uint64_t>(value)); }

  Value* round_up(Value* value, int multiple) {
    return ir_.CreateAnd(ir_.CreateAdd(value, constant(multiple - 1)), constant(-multiple));
  }

  /// Groups in a block of 16 bytes: what is transposed in registers.
  int block() const { return std::max(1, 16 / (byte_width(pack_.to) * pack_.k_group)); }

  std::int64_t k_step() const {
    return pack_.unit == Packer::Unit::K ? block() * pack_.k_group : pack_.k_group;
  }

  Value* source(Value* line, Value* k) {
    Value* offset =
        ir_.CreateAdd(ir_.CreateMul(line, line_stride_), ir_.CreateMul(k, k_stride_));
    return ir_.CreateGEP(from_, source_, offset);
  }

  /// k's group begins at a multiple of k_group, except for single elements.
  Value* target(Value* line, Value* k) {
    Value* group = ir_.CreateAnd(k, constant(-pack_.k_group));
    Value* offset = ir_.CreateAdd(
        ir_.CreateMul(group, constant(pack_.lines)),
        ir_.CreateAdd(ir_.CreateMul(line, constant(pack_.k_group)), ir_.CreateSub(k, group)));
    return ir_.CreateGEP(to_, panel_, offset);
  }

  Value* load(Value* at, int elements) {
    llvm::Type* type = from_;
    llvm::Type* result = to_;
    if (elements > 1) {
      type = llvm::FixedVectorType::get(from_, static_cast<unsigned>(elements));
      result = llvm::FixedVectorType::get(to_, static_cast<unsigned>(elements));
    }
    Value* value = ir_.CreateAlignedLoad(
        type, at, llvm::Align(static_cast<std::uint64_t>(byte_width(pack_.from))));
    const bool is_signed = pack_.from == DType::I8 || pack_.from == DType::I16 ||
                           pack_.from == DType::I32 || pack_.from == DType::I64;
    if (pack_.from != pack_.to && type != result) {
      if (!is_float(pack_.to)) {
        value = ir_.CreateIntCast(value, result, is_signed);
      } else if (is_float(pack_.from)) {
        value = ir_.CreateFPCast(value, result);
      } else {
        value = is_signed ? ir_.CreateSIToFP(value, result) : ir_.CreateUIToFP(value, result);
      }
    }
    return pack_.offset ? ir_.CreateXor(value, llvm::ConstantInt::get(result, 128)) : value;
  }

  void store(Value* value, Value* at) {
    ir_.CreateAlignedStore(value, at,
                           llvm::Align(static_cast<std::uint64_t>(byte_width(pack_.to))));
  }

  void each(Range lines, Range k, llvm::function_ref<void(Value*, Value*)> body) {
    if (lines.first == lines.last || k.first == k.last) return;
    emit_for(ir_, k.first, k.last, 1, [&](Value* at_k) {
      emit_for(ir_, lines.first, lines.last, 1, [&](Value* line) { body(line, at_k); });
    });
  }

  void copy(Range lines, Range k) {
    each(lines, k, [&](Value* line, Value* at_k) {
      store(load(source(line, at_k), 1), target(line, at_k));
    });
  }

  void fill(Range lines, Range k) {
    each(lines, k, [&](Value* line, Value* at_k) {
      store(llvm::Constant::getNullValue(to_), target(line, at_k));
    });
  }

  /// zip of the low (0) or high (1) halves of two vectors.
  Value* zip(Value* x, Value* y, int half) {
    const int count = static_cast<int>(
        llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements());
    llvm::SmallVector<int, 64> mask;
    for (int i = half * count / 2; i < (half + 1) * count / 2; ++i) {
      mask.push_back(i);
      mask.push_back(count + i);
    }
    return ir_.CreateShuffleVector(x, y, mask);
  }

  /// Vectors x0, x1, … whose elements are to alternate: x0[0] x1[0] … x0[1] x1[1] …, as vectors of
  /// the same length. Rounds of the perfect shuffle (H. S. Stone, 1971); with as many vectors as
  /// elements that is the transpose.
  Values alternate(Values vectors) {
    const std::size_t half = vectors.size() / 2;
    for (std::size_t round = 1; round < vectors.size(); round *= 2) {
      Values next;
      for (std::size_t i = 0; i < half; ++i) {
        next.push_back(zip(vectors[i], vectors[i + half], 0));
        next.push_back(zip(vectors[i], vectors[i + half], 1));
      }
      vectors = std::move(next);
    }
    return vectors;
  }

  /// One group of k, where lines lie side by side.
  void interleave_rows(Value* k) {
    const int widest = pack_.vector_bytes / byte_width(pack_.to);
    for (int line = 0; line < pack_.lines;) {
      const int width = std::min(widest, static_cast<int>(std::bit_floor(
                                             static_cast<unsigned>(pack_.lines - line))));
      Values rows;
      for (int g = 0; g < pack_.k_group; ++g)
        rows.push_back(load(source(constant(line), ir_.CreateAdd(k, constant(g))), width));
      if (width == 1) {
        for (int g = 0; g < pack_.k_group; ++g)
          store(rows[static_cast<std::size_t>(g)],
                target(constant(line), ir_.CreateAdd(k, constant(g))));
      } else {
        Value* at = target(constant(line), k);
        for (Value* row : alternate(rows)) {
          store(row, at);
          at = ir_.CreateGEP(to_, at, constant(width));
        }
      }
      line += width;
    }
  }

  /// A block of lines by groups of k, where k's lie side by side.
  void transpose(int line, Value* k) {
    const int size = block();
    llvm::Type* group = ir_.getIntNTy(static_cast<unsigned>(8 * 16 / size));
    Values rows;
    for (int i = 0; i < size; ++i) {
      Value* row = load(source(constant(line + i), k), size * pack_.k_group);
      rows.push_back(
          ir_.CreateBitCast(row, llvm::FixedVectorType::get(group, static_cast<unsigned>(size))));
    }
    rows = alternate(rows);
    for (int i = 0; i < size; ++i)
      store(rows[static_cast<std::size_t>(i)],
            target(constant(line), ir_.CreateAdd(k, constant(i * pack_.k_group))));
  }

  llvm::IRBuilder<>& ir_;
  const Packer& pack_;
  Value *panel_, *source_, *line_stride_, *k_stride_, *lines_, *k_;
  llvm::Type *from_ = nullptr, *to_ = nullptr;
};

}  // namespace

llvm::Function* packer(llvm::Module& module, const Packer& pack) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* pointer = llvm::PointerType::get(context, 0);
  llvm::Type* i64 = llvm::Type::getInt64Ty(context);
  const std::string name = fmt::format(
      "dot.pack.{}{}.{}x{}p{}.{}{}{}{}.v{}", to_string(pack.from), to_string(pack.to), pack.lines,
      pack.k_group, pack.k_multiple, "lkn"[static_cast<int>(pack.unit)], pack.offset ? "o" : "",
      pack.all_lines ? "a" : "", pack.whole_k ? "w" : "", pack.vector_bytes);
  return shared_function(module, name, {pointer, pointer, i64, i64, i64, i64},
                         [&](llvm::IRBuilder<>& ir, llvm::Function& function) {
                           for (unsigned i : {0U, 1U})
                             function.addParamAttr(i, llvm::Attribute::NoAlias);
                           Packing(ir, function, pack).emit();
                         });
}

llvm::Function* tile_merger(llvm::Module& module, DType dtype, int tile_columns) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* pointer = llvm::PointerType::get(context, 0);
  llvm::Type* i64 = llvm::Type::getInt64Ty(context);
  llvm::Type* i1 = llvm::Type::getInt1Ty(context);
  const std::string name = fmt::format("dot.merge.{}.{}", to_string(dtype), tile_columns);
  return shared_function(
      module, name, {pointer, i64, pointer, i64, i64, i1},
      [&](llvm::IRBuilder<>& ir, llvm::Function& function) {
        llvm::Type* element = type_of(dtype, context);
        const auto argument = [&](unsigned i) { return function.getArg(i); };
        const llvm::Align align(static_cast<std::uint64_t>(byte_width(dtype)));
        emit_for(ir, ir.getInt64(0), argument(3), 1, [&](Value* row) {
          Value* c_row = ir.CreateGEP(element, argument(0), ir.CreateMul(row, argument(1)));
          Value* tile_row = ir.CreateGEP(
              element, argument(2),
              ir.CreateMul(row, ir.getInt64(static_cast<std::uint64_t>(tile_columns))));
          emit_for(ir, ir.getInt64(0), argument(4), 1, [&](Value* column) {
            Value* at = ir.CreateGEP(element, c_row, column);
            Value* sum =
                ir.CreateAlignedLoad(element, ir.CreateGEP(element, tile_row, column), align);
            Value* old = ir.CreateAlignedLoad(element, at, align);
            Value* both = is_float(dtype) ? ir.CreateFAdd(old, sum) : ir.CreateAdd(old, sum);
            ir.CreateAlignedStore(ir.CreateSelect(argument(5), both, sum), at, align);
          });
        });
      });
}

}  // namespace tessera::codegen
