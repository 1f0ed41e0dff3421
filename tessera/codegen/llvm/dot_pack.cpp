#include <fmt/format.h>
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
    if (pack.unit == Packer::Unit::K && pack.all_lines && pack.k_group == 1)
      blocks_ = std::max(1, std::min(pack.vector_bytes, 32) / 16);
  }

  void emit() {
    const int step = pack_.unit == Packer::Unit::Neither ? 1 : k_step();
    Value* k_fast = pack_.whole_k ? k_ : ir_.CreateAnd(k_, constant(-step));
    // Lines that do not fill a block: their excess stores are overwritten later.
    const int rest = pack_.unit == Packer::Unit::K && pack_.all_lines && pack_.k_group == 1 &&
                             step % pack_.k_multiple == 0
                         ? pack_.lines % block()
                         : 0;
    if (rest == 0) fill(ir_.CreateAnd(k_, constant(-pack_.k_multiple)));
    // Packs as many lines at a time as a register holds; straight-line code where all exist.
    const int widest =
        pack_.unit == Packer::Unit::K
            ? block()
            : std::min(copied_bytes() / byte_width(pack_.to),
                       static_cast<int>(std::bit_floor(static_cast<unsigned>(pack_.lines))));
    Value* fast_lines = constant(0);
    if (pack_.unit != Packer::Unit::Neither && !pack_.all_lines) {
      fast_lines = ir_.CreateAnd(lines_, constant(-widest));
      emit_for(ir_, constant(0), k_fast, step, [&](Value* k) {
        emit_for(ir_, constant(0), fast_lines, widest,
                 [&](Value* line) { pack_chunk(line, widest, k); });
      });
    } else if (pack_.unit != Packer::Unit::Neither) {
      emit_for(ir_, constant(0), k_fast, step, [&](Value* k) {
        int line = 0;
        if (pack_.unit == Packer::Unit::K) {
          if (rest > 0) transpose(constant(pack_.lines - rest), k, rest);
          line = pack_.lines / widest * widest;
          const auto block_of = [&](Value* at) { transpose(at, k, widest); };
          if (blocks_ > 1) {  // bound by memory: short code suffices
            emit_for(ir_, constant(0), constant(line), widest, block_of);
          } else {
            for (int at = 0; at < line; at += widest) block_of(constant(at));
          }
          line += rest;
        } else {
          for (int width = widest; width >= 2; width /= 2)
            for (; line + width <= pack_.lines; line += width) interleave(constant(line), width, k);
        }
        fast_lines = constant(line);
      });
    }
    if (rest > 0) fill(k_fast);
    copy({fast_lines, lines_}, {constant(0), k_fast});
    copy({constant(0), lines_}, {k_fast, k_});
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

  /// Lines per step, where lines are contiguous: where some may be missing, narrow vectors leave
  /// fewer of them to be copied one by one.
  int copied_bytes() const {
    return pack_.all_lines && pack_.k_group == 1 ? pack_.vector_bytes : 16;
  }

  int k_step() const {
    return pack_.unit == Packer::Unit::K ? blocks_ * block() * pack_.k_group : pack_.k_group;
  }

  Value* source(Value* line, Value* k) {
    Value* offset = ir_.CreateAdd(ir_.CreateMul(line, line_stride_), ir_.CreateMul(k, k_stride_));
    return ir_.CreateGEP(from_, source_, offset);
  }

  /// Groups of k start at multiples of k_group, except for single elements.
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
    const bool with_sign = is_signed(pack_.from);
    if (pack_.from != pack_.to && type != result) {
      if (!is_float(pack_.to)) {
        value = ir_.CreateIntCast(value, result, with_sign);
      } else if (is_float(pack_.from)) {
        value = ir_.CreateFPCast(value, result);
      } else {
        value = with_sign ? ir_.CreateSIToFP(value, result) : ir_.CreateUIToFP(value, result);
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
    each(lines, k,
         [&](Value* line, Value* at_k) { store(load(source(line, at_k), 1), target(line, at_k)); });
  }

  /// Zeros where copying leaves holes: everywhere if lines are missing, else from `k_last` on, a
  /// multiple of the padding of k.
  void fill(Value* k_last) {
    if (pack_.all_lines && pack_.whole_k) return;
    Value* k_end = pack_.whole_k ? k_ : round_up(k_, pack_.k_multiple);
    Value* first = k_last;
    if (!pack_.all_lines)
      first =
          ir_.CreateSelect(ir_.CreateICmpEQ(lines_, constant(pack_.lines)), k_last, constant(0));
    const unsigned unit = static_cast<unsigned>(pack_.lines * pack_.k_multiple);
    const unsigned width =
        std::min(16U / static_cast<unsigned>(byte_width(pack_.to)), unit & (~unit + 1));
    Value* zeros = llvm::Constant::getNullValue(llvm::FixedVectorType::get(to_, width));
    emit_for(ir_, ir_.CreateMul(first, constant(pack_.lines)),
             ir_.CreateMul(k_end, constant(pack_.lines)), width,
             [&](Value* i) { store(zeros, ir_.CreateGEP(to_, panel_, i)); });
  }

  /// zip of the low (0) or high (1) halves of two vectors, or of each of some parts of them.
  Value* zip(Value* x, Value* y, int half, int parts) {
    const int count =
        static_cast<int>(llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements());
    const int part = count / parts;
    llvm::SmallVector<int, 64> mask;
    for (int first = half * part / 2; first < count; first += part) {
      for (int i = first; i < first + part / 2; ++i) {
        mask.push_back(i);
        mask.push_back(count + i);
      }
    }
    return ir_.CreateShuffleVector(x, y, mask);
  }

  /// Interleaves vectors x0, x1, …: x0[0] x1[0] … x0[1] x1[1] …, as vectors of the same length.
  /// Stages of the perfect shuffle (H. S. Stone, 1971); with as many vectors as elements that is
  /// the transpose.
  Values alternate(Values vectors, int parts = 1) {
    const std::size_t half = vectors.size() / 2;
    for (std::size_t round = 1; round < vectors.size(); round *= 2) {
      Values next;
      for (std::size_t i = 0; i < half; ++i) {
        next.push_back(zip(vectors[i], vectors[i + half], 0, parts));
        next.push_back(zip(vectors[i], vectors[i + half], 1, parts));
      }
      vectors = std::move(next);
    }
    return vectors;
  }

  void pack_chunk(Value* line, int chunk, Value* k) {
    if (pack_.unit == Packer::Unit::K) {
      transpose(line, k, chunk);
    } else {
      interleave(line, chunk, k);
    }
  }

  /// Packs one group of k, where lines are contiguous.
  void interleave(Value* line, int chunk, Value* k) {
    // Rows that are pages apart are not covered by the hardware prefetcher.
    constexpr int cache_line = 64, distance = 8;
    if (chunk * byte_width(pack_.from) == cache_line)
      emit_prefetch(ir_, source(line, ir_.CreateAdd(k, constant(distance))));
    Values rows;
    for (int g = 0; g < pack_.k_group; ++g)
      rows.push_back(load(source(line, ir_.CreateAdd(k, constant(g))), chunk));
    Value* at = target(line, k);
    for (Value* row : alternate(rows)) {
      store(row, at);
      at = ir_.CreateGEP(to_, at, constant(chunk));
    }
  }

  /// Blocks of lines by groups of k, side by side, where k is contiguous. There may be fewer lines.
  void transpose(Value* line, Value* k, int lines) {
    const int size = block();
    auto* groups = llvm::FixedVectorType::get(ir_.getIntNTy(static_cast<unsigned>(8 * 16 / size)),
                                              static_cast<unsigned>(blocks_ * size));
    Values rows;
    Value* at = source(line, k);
    for (int i = 0; i < lines; ++i) {
      if (i > 0) at = ir_.CreateGEP(from_, at, line_stride_);
      rows.push_back(ir_.CreateBitCast(load(at, blocks_ * size * pack_.k_group), groups));
    }
    rows.resize(static_cast<std::size_t>(size), rows.back());
    rows = alternate(rows, blocks_);
    Value* first = target(line, k);
    for (int part = 0; part < blocks_; ++part) {
      llvm::SmallVector<int, 16> mask;
      for (int i = 0; i < size; ++i) mask.push_back(part * size + i);
      for (int i = 0; i < size; ++i) {
        Value* row = rows[static_cast<std::size_t>(i)];
        const int behind = (part * size + i) * pack_.k_group * pack_.lines;
        store(blocks_ == 1 ? row : ir_.CreateShuffleVector(row, mask),
              ir_.CreateGEP(to_, first, constant(behind)));
      }
    }
  }

  llvm::IRBuilder<>& ir_;
  const Packer& pack_;
  Value *panel_, *source_, *line_stride_, *k_stride_, *lines_, *k_;
  int blocks_ = 1;  // blocks transposed at a time
  llvm::Type *from_ = nullptr, *to_ = nullptr;
};

}  // namespace

std::optional<std::int64_t> known(Value* value) {
  auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value);
  return constant == nullptr ? std::nullopt : std::optional(constant->getSExtValue());
}

llvm::Function* packer(llvm::Module& module, const Packer& pack) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* pointer = llvm::PointerType::get(context, 0);
  llvm::Type* i64 = llvm::Type::getInt64Ty(context);
  const std::string name = fmt::format(
      "dot.pack.{}{}.{}x{}p{}v{}.{}{}{}{}", to_string(pack.from), to_string(pack.to), pack.lines,
      pack.k_group, pack.k_multiple, pack.vector_bytes, "lkn"[static_cast<int>(pack.unit)],
      pack.offset ? "o" : "", pack.all_lines ? "a" : "", pack.whole_k ? "w" : "");
  return shared_function(module, name, {pointer, pointer, i64, i64, i64, i64},
                         [&](llvm::IRBuilder<>& ir, llvm::Function& function) {
                           for (unsigned i : {0U, 1U})
                             function.addParamAttr(i, llvm::Attribute::NoAlias);
                           Packing(ir, function, pack).emit();
                         });
}

Packer::Unit packed_unit(Value* line_stride, Value* k_stride) {
  if (known(k_stride) == 1) return Packer::Unit::K;
  return known(line_stride) == 1 ? Packer::Unit::Lines : Packer::Unit::Neither;
}

llvm::Function* tile_merger(llvm::Module& module, DType dtype, int tile_columns) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* pointer = llvm::PointerType::get(context, 0);
  llvm::Type* i64 = llvm::Type::getInt64Ty(context);
  llvm::Type* i1 = llvm::Type::getInt1Ty(context);
  const std::string name = fmt::format("dot.merge.{}.{}", to_string(dtype), tile_columns);
  return shared_function(
      module, name, {pointer, i64, pointer, i64, i64, i1, pointer, i64},
      [&](llvm::IRBuilder<>& ir, llvm::Function& function) {
        llvm::Type* element = type_of(dtype, context);
        const auto argument = [&](unsigned i) { return function.getArg(i); };
        const llvm::Align align(static_cast<std::uint64_t>(byte_width(dtype)));
        const unsigned lanes = 16U / static_cast<unsigned>(byte_width(dtype));
        const auto merge = [&](llvm::Type* type, Value* at, Value* products, Value* from) {
          Value* sum = ir.CreateAlignedLoad(type, products, align);
          Value* old = ir.CreateAlignedLoad(type, from, align);
          Value* both = is_float(dtype) ? ir.CreateFAdd(old, sum) : ir.CreateAdd(old, sum);
          ir.CreateAlignedStore(ir.CreateSelect(argument(5), both, sum), at, align);
        };
        emit_for(ir, ir.getInt64(0), argument(3), 1, [&](Value* row) {
          Value* c_row = ir.CreateGEP(element, argument(0), ir.CreateMul(row, argument(1)));
          Value* from_row = ir.CreateGEP(element, argument(6), ir.CreateMul(row, argument(7)));
          Value* tile_row = ir.CreateGEP(
              element, argument(2),
              ir.CreateMul(row, ir.getInt64(static_cast<std::uint64_t>(tile_columns))));
          Value* whole = ir.CreateAnd(argument(4), ir.getInt64(~std::uint64_t{lanes - 1}));
          const auto columns = [&](llvm::Type* type, Value* first, Value* last, unsigned step) {
            emit_for(ir, first, last, step, [&](Value* column) {
              merge(type, ir.CreateGEP(element, c_row, column),
                    ir.CreateGEP(element, tile_row, column),
                    ir.CreateGEP(element, from_row, column));
            });
          };
          columns(llvm::FixedVectorType::get(element, lanes), ir.getInt64(0), whole, lanes);
          columns(element, whole, argument(4), 1);
        });
      });
}

}  // namespace tessera::codegen
