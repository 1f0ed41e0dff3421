#include <llvm/IR/Module.h>

#include <algorithm>
#include <bit>

#include "tessera/codegen/llvm/dot_parts.h"
#include "tessera/codegen/llvm/generate.h"

namespace tessera::codegen {
namespace {

using llvm::Value;

constexpr int kLine = 64;  // bytes of a cache line

/// Whether a function keeps the emitted instruction order, each load just before its first use.
/// LLVM groups loads, which is no worse where operands are in panels; rows and columns of matrices
/// in place then often conflict in one bank of the cache. On x86-64 there is nothing to gain.
bool keeps_order(const MicroKernel& kernel) {
  return kernel.a != MicroKernel::A::Panel || kernel.broadcast_loads;
}

/// Register tile of a micro-kernel that is being emitted: accumulators in the order [split][row of
/// registers][column of registers].
class Tile {
 public:
  Tile(llvm::IRBuilder<>& ir, const MicroKernel& kernel, const MicroOperands& in)
      : ir_(ir), kernel_(kernel), instruction_(kernel.instruction), in_(in) {
    llvm::LLVMContext& context = ir.getContext();
    const bool blocks = instruction_.form == Instruction::Form::Blocks;
    c_type_ = type_of(instruction_.c, context);
    lanes_ = kernel.vector_bytes / byte_width(instruction_.c);
    accumulator_ = llvm::FixedVectorType::get(c_type_, static_cast<unsigned>(lanes_));
    tile_rows_ = blocks ? kernel.rows / 2 : kernel.rows;
    tile_columns_ = blocks ? kernel.columns / 2 : kernel.columns / lanes_;
    // A group of k is moved as one integer where it has more than one element.
    const int group = instruction_.k_group;
    a_group_ = group == 1
                   ? type_of(instruction_.a, context)
                   : ir.getIntNTy(8U * static_cast<unsigned>(group * byte_width(instruction_.a)));
    a_vector_ = operand_type(instruction_.a);
    b_vector_ = operand_type(instruction_.b);
    if (kernel.accumulate) in_.accumulate = ir.getInt1(*kernel.accumulate);
    if (kernel.b_stride != 0) in_.b_stride = constant(kernel.b_stride);
  }

  /// Accumulators as vectors along n, [row][column / lanes].
  Values sums(llvm::ArrayRef<Value*> start = {}) {
    for (int row = 0; row < kernel_.rows && kernel_.a == MicroKernel::A::Rows; ++row)
      a_rows_.push_back(ir_.CreateGEP(a_group_, in_.a, ir_.CreateMul(in_.a_stride, constant(row))));
    for (int i = 0; i <= kMaxUnroll && kernel_.broadcast_loads; ++i) {
      a_strides_.push_back(ir_.CreateMul(in_.a_stride, constant(i)));
      b_strides_.push_back(ir_.CreateMul(in_.b_stride, constant(i)));
    }
    Values state(index(kernel_.splits * tile_rows_ * tile_columns_), zero());
    std::copy(start.begin(), start.end(), state.begin());
    if (instruction_.offset_a) state.append(index(tile_columns_), zero());
    state.push_back(in_.b);
    for (int row = 0; row < kernel_.rows && kernel_.broadcast_loads; row += kRowsByPointer)
      if (row == 0 || kernel_.a == MicroKernel::A::Rows)
        state.push_back(row == 0 ? in_.a : a_rows_[index(row)]);
    if (later_c_ != nullptr) state.push_back(later_c_);

    if (kernel_.next_lines > 0) prefetch_next_rows();
    Value* whole = kernel_.whole_unrolls
                       ? in_.groups
                       : ir_.CreateAnd(in_.groups, constant(-std::int64_t{kernel_.unroll}));
    state = emit_for(
        ir_, constant(0), whole, kernel_.unroll, state,
        [&](Value* k, const Values& in) { return turn(k, in, kernel_.unroll); },
        kernel_.trip_count);
    if (!kernel_.whole_unrolls)
      state = emit_for(ir_, whole, in_.groups, 1, state,
                       [&](Value* k, const Values& in) { return turn(k, in, 1); });
    add_splits(state);
    return finished(state);
  }

  /// c (+)= a·b. The addend is prefetched during the loop over k and added at the end, or else
  /// accumulators start from it; 2 x 2 blocks are assembled only at the end.
  void emit() {
    if (!kernel_.apart) {
      in_.from = in_.c;
      in_.from_stride = in_.c_stride;
    }
    const bool first = !kernel_.far_c && instruction_.form == Instruction::Form::Lanes;
    if (kernel_.far_c) prefetch_c();
    const Values none(index(kernel_.rows * kernel_.columns / lanes_), zero());
    Values totals = sums(first ? plus_old(none) : Values{});
    if (!first) totals = plus_old(totals);
    each_of(in_.c, in_.c_stride, lanes_,
            [&](Value* at, std::size_t i) { ir_.CreateAlignedStore(totals[i], at, c_align()); });
  }

 private:
  /// Rows of a per pointer that advances along k, on CPUs with base + index addressing modes: every
  /// pointer update takes an issue slot of a multiply-add.
  static constexpr int kRowsByPointer = kMaxUnroll;

  /// Updates the pointers into a for one loop iteration.
  void move_a(llvm::MutableArrayRef<Value*> pointers, int unroll) {
    for (Value*& pointer : pointers) {
      Value* distance = kernel_.a == MicroKernel::A::Columns ? a_strides_[index(unroll)]
                        : kernel_.a == MicroKernel::A::Rows  ? constant(unroll)
                                                             : constant(unroll * kernel_.rows);
      pointer = ir_.CreateGEP(a_group_, pointer, distance);
    }
  }

  /// Prefetches a row of the addend; returns the next row, or the last one again.
  Value* ask_for_c(Value* row) {
    const int line = 64 / byte_width(instruction_.c);
    for (int column = 0; column < kernel_.columns; column += line)
      emit_prefetch(ir_, ir_.CreateGEP(c_type_, row, constant(column)), {.writes = !kernel_.apart});
    return ir_.CreateSelect(ir_.CreateICmpEQ(row, last_c_), row,
                            ir_.CreateGEP(c_type_, row, in_.from_stride));
  }

  static std::size_t index(int position) { return static_cast<std::size_t>(position); }
  Value* constant(std::int64_t value) { return ir_.getInt64(static_cast<std::uint64_t>(value)); }

  Value* zero() { return llvm::Constant::getNullValue(accumulator_); }
  llvm::Align c_align() const { return llvm::Align(c_type_->getScalarSizeInBits() / 8); }

  /// Calls for every so many columns of the tile of c, row by row.
  void each_of(Value* row, Value* stride, int step,
               llvm::function_ref<void(Value*, std::size_t)> action) {
    std::size_t i = 0;
    for (int r = 0; r < kernel_.rows; ++r) {
      if (r > 0) row = ir_.CreateGEP(c_type_, row, stride);
      for (int column = 0; column < kernel_.columns; column += step)
        action(ir_.CreateGEP(c_type_, row, constant(column)), i++);
    }
  }
  Value* load_c(Value* at) { return ir_.CreateAlignedLoad(accumulator_, at, c_align()); }
  /// The addend is prefetched row by row during the loop over k, where there are issue slots to
  /// spare: all at once, the requests would stall. Stores need no prefetch.
  void prefetch_c() {
    if (kernel_.broadcast_loads) {
      later_c_ = in_.from;
      last_c_ = ir_.CreateGEP(c_type_, in_.from,
                              ir_.CreateMul(in_.from_stride, constant(kernel_.rows - 1)));
      return;
    }
    const int line = 64 / byte_width(instruction_.c);
    each_of(in_.c, in_.c_stride, line,
            [&](Value* at, std::size_t) { emit_prefetch(ir_, at, {.writes = true}); });
    if (kernel_.apart)
      each_of(in_.from, in_.from_stride, line,
              [&](Value* at, std::size_t) { emit_prefetch(ir_, at); });
  }
  /// The rows of a after these.
  void prefetch_next_rows() {
    const int line = 64 / byte_width(instruction_.a);
    Value* next = ir_.CreateMul(in_.a_stride, constant(kernel_.rows));
    for (Value* row : a_rows_)
      for (int i = 0; i < kernel_.next_lines; ++i)
        emit_prefetch(ir_, ir_.CreateGEP(a_group_, row, ir_.CreateAdd(next, constant(i * line))));
  }
  /// Prefetches b some groups of k ahead, one cache line between multiply-adds, not all at once.
  struct LaterB {
    Value* row = nullptr;
    int products = 0, next_column = 0;
  };
  LaterB begin_later_b(Value* b) {
    if (kernel_.later_b == 0) return {};
    llvm::Type* element = type_of(instruction_.b, ir_.getContext());
    return {ir_.CreateGEP(element, b, ir_.CreateMul(in_.b_stride, constant(kernel_.later_b)))};
  }
  void after_product(LaterB& later) {
    constexpr int every = 5;
    if (later.row == nullptr || ++later.products % every != 0) return;
    if (later.next_column >= kernel_.columns) return;
    llvm::Type* element = type_of(instruction_.b, ir_.getContext());
    emit_prefetch(ir_, ir_.CreateGEP(element, later.row, constant(later.next_column)));
    later.next_column += 64 / byte_width(instruction_.b);
  }

  /// Adds accumulators to a prefetched addend. All of it is loaded before any is stored, because
  /// CPUs may falsely predict that a load depends on a store at certain distances.
  Values plus_old(const Values& sums) {
    llvm::BasicBlock *before = ir_.GetInsertBlock(), *adding = nullptr;
    Values totals;
    emit_if(ir_, in_.accumulate, [&] {
      each_of(in_.from, in_.from_stride, lanes_, [&](Value* at, std::size_t i) {
        totals.push_back(sums[i] == zero() ? load_c(at) : add(load_c(at), sums[i]));
      });
      adding = ir_.GetInsertBlock();
    });
    if (adding == nullptr) return sums;
    for (std::size_t i = 0; i < totals.size() && adding != ir_.GetInsertBlock(); ++i) {
      llvm::PHINode* either = ir_.CreatePHI(accumulator_, 2);
      either->addIncoming(totals[i], adding);
      either->addIncoming(sums[i], before);
      totals[i] = either;
    }
    return totals;
  }

  llvm::FixedVectorType* operand_type(DType dtype) {
    llvm::LLVMContext& context = ir_.getContext();
    return llvm::FixedVectorType::get(
        type_of(dtype, context), static_cast<unsigned>(kernel_.vector_bytes / byte_width(dtype)));
  }

  Value* load(llvm::Type* type, Value* base, llvm::Type* element, std::int64_t offset) {
    const llvm::Align align(element->getScalarSizeInBits() / 8);
    return ir_.CreateAlignedLoad(
        type, offset == 0 ? base : ir_.CreateGEP(element, base, constant(offset)), align);
  }

  /// Groups of a for `unroll` steps of k, from vectors that are loaded once, on first use.
  struct LoadedA {
    llvm::SmallVector<Value*, 16> bases;  // of each run of contiguous groups
    int run = 0;                          // groups in a run
    llvm::SmallVector<std::pair<std::pair<int, int>, Value*>, 16> loaded;
  };

  LoadedA begin_a(Value* k, llvm::ArrayRef<Value*> pointers, int unroll) {
    const bool rows = kernel_.a == MicroKernel::A::Rows;
    const bool columns = kernel_.a == MicroKernel::A::Columns;
    LoadedA a;
    a.run = rows ? unroll : columns ? kernel_.rows : kernel_.rows * unroll;
    const auto base_of = [&](int run) -> Value* {
      if (kernel_.broadcast_loads) {
        const int pointer = rows ? run / kRowsByPointer : 0;
        return ir_.CreateGEP(a_group_, pointers[index(pointer)],
                             a_strides_[index(run - pointer * kRowsByPointer)]);
      }
      if (rows) return ir_.CreateGEP(a_group_, a_rows_[index(run)], k);
      if (run > 0) return ir_.CreateGEP(a_group_, a.bases.back(), in_.a_stride);
      Value* offset = ir_.CreateMul(k, columns ? in_.a_stride : constant(kernel_.rows));
      return ir_.CreateGEP(a_group_, in_.a, offset);
    };
    for (int run = 0; run < (rows ? kernel_.rows : columns ? unroll : 1); ++run)
      a.bases.push_back(base_of(run));
    return a;
  }

  /// The vector of `width` groups at `first` in a run.
  Value* vector_of_a(LoadedA& a, int run, int first, int width) {
    for (auto& [at, value] : a.loaded)
      if (at == std::pair{run, first}) return value;
    llvm::Type* type = width == 1 ? a_group_
                                  : static_cast<llvm::Type*>(llvm::FixedVectorType::get(
                                        a_group_, static_cast<unsigned>(width)));
    Value* value = load(type, a.bases[index(run)], a_group_, first);
    a.loaded.push_back({{run, first}, value});
    return value;
  }

  /// Factor of register row `row` at step `step`.
  Value* factor_a(LoadedA& a, int step, int row) {
    if (instruction_.form == Instruction::Form::Blocks) {
      Value* pair = vector_of_a(a, 0, step * kernel_.rows + 2 * row, 2);
      return ir_.CreateBitCast(pair, a_vector_);
    }
    const auto [run, at] = kernel_.a == MicroKernel::A::Panel
                               ? std::pair{0, step * kernel_.rows + row}
                           : kernel_.a == MicroKernel::A::Rows ? std::pair{row, step}
                                                               : std::pair{step, row};
    // Whole vectors as far as possible; then halves, quarters, ...
    const int lanes =
        kernel_.broadcast_loads ? 1 : 16 / static_cast<int>(a_group_->getScalarSizeInBits() / 8);
    int first = 0, width = lanes;
    while (at >= first + width || first + width > a.run) {
      if (first + width > a.run)
        width /= 2;
      else
        first += width;
    }
    Value* from = vector_of_a(a, run, first, width);
    llvm::FixedVectorType* spread =
        llvm::FixedVectorType::get(a_group_, static_cast<unsigned>(kernel_.vector_bytes * 8) /
                                                 a_group_->getScalarSizeInBits());
    Value* factor =
        width == 1 ? ir_.CreateVectorSplat(spread->getNumElements(), from)
                   : ir_.CreateShuffleVector(
                         from, llvm::SmallVector<int, 64>(spread->getNumElements(), at - first));
    return ir_.CreateBitCast(factor, a_vector_);
  }

  Value* multiply_add(Value* a, Value* b, Value* c) {
    if (instruction_.name == nullptr) {
      if (is_float(instruction_.c))
        return ir_.CreateIntrinsic(accumulator_, llvm::Intrinsic::fma, {a, b, c});
      return ir_.CreateAdd(c, ir_.CreateMul(a, b));
    }
    if (instruction_.swapped) std::swap(a, b);
    std::string name = instruction_.name;
    if (name.back() == '.') name += std::to_string(8 * kernel_.vector_bytes);
    llvm::Function* callee =
        intrinsic_named(*ir_.GetInsertBlock()->getModule(), name, {accumulator_, a_vector_});
    // Intrinsics of x86 take vectors of i32, whatever the element type.
    llvm::FunctionType* type = callee->getFunctionType();
    return ir_.CreateCall(callee, {c, ir_.CreateBitCast(a, type->getParamType(1)),
                                   ir_.CreateBitCast(b, type->getParamType(2))});
  }

  /// Prefetches at `ahead`, spread over the groups of a loop iteration that begins at group k.
  void prefetch(Value* k, int step, int unroll) {
    for (int i = 0; i < kernel_.ahead && unroll == kernel_.unroll; ++i) {
      if (i * unroll / kernel_.ahead != step) continue;
      Value* at = ir_.CreateMul(k, constant(kernel_.ahead * kLine / unroll));
      at = ir_.CreateGEP(ir_.getInt8Ty(), in_.ahead, ir_.CreateAdd(at, constant(i * kLine)));
      emit_prefetch(ir_, at, {.level = 2});
    }
  }

  /// `unroll` groups of k.
  Values turn(Value* k, const Values& in, int unroll) {
    Values out = in;
    llvm::Type* b_element = type_of(instruction_.b, ir_.getContext());
    // Pointers: into b, some into a, into c.
    const std::size_t b_at =
        index((kernel_.splits * tile_rows_ + (instruction_.offset_a ? 1 : 0)) * tile_columns_);
    const auto a_at =
        llvm::MutableArrayRef(out).drop_front(b_at + 1).drop_back(later_c_ != nullptr);
    LoadedA a = begin_a(k, a_at, unroll);
    Values b_rows = {in[b_at]};
    const auto next_row = [&]() -> Value* {
      if (kernel_.broadcast_loads)
        return ir_.CreateGEP(b_element, in[b_at], b_strides_[b_rows.size()]);
      return ir_.CreateGEP(b_element, b_rows.back(), in_.b_stride);
    };
    if (later_c_ != nullptr) out.back() = ask_for_c(in.back());
    if (keeps_order(kernel_))  // addresses are computed before the first multiply-add
      while (b_rows.size() < index(unroll)) b_rows.push_back(next_row());
    const int registers = tile_rows_ * tile_columns_;
    const auto sum = [&](int position) -> Value*& { return out[index(position)]; };
    for (int step = 0; step < unroll; ++step) {
      if (b_rows.size() == index(step)) b_rows.push_back(next_row());
      Value* b = b_rows[index(step)];
      prefetch(k, step, unroll);
      const int split = step % kernel_.splits * registers;
      const auto factor_b = [&](int column) {
        return load(b_vector_, b, b_element, std::int64_t{column} * b_vector_->getNumElements());
      };
      const auto accumulate = [&](int row, int column, Value* x, Value* y) {
        Value*& total = sum(split + row * tile_columns_ + column);
        total = multiply_add(x, y, total);
      };
      const auto add_offset = [&](int column, Value* y) {
        if (!instruction_.offset_a) return;
        Value*& total = sum(kernel_.splits * registers + column);
        total = multiply_add(llvm::ConstantInt::get(a_vector_, 128), y, total);
      };
      // The operand whose registers take part in many multiplications is the inner loop's, so that
      // few registers of the other are live: all groups of a are in lanes of two registers, or each
      // is a register of its own.
      if (kernel_.broadcast_loads) {
        Values columns;
        for (int column = 0; column < tile_columns_; ++column) columns.push_back(factor_b(column));
        LaterB later = begin_later_b(b);
        for (int row = 0; row < tile_rows_; ++row) {
          Value* x = factor_a(a, step, row);
          for (int column = 0; column < tile_columns_; ++column) {
            accumulate(row, column, x, columns[index(column)]);
            after_product(later);
          }
        }
        for (int column = 0; column < tile_columns_; ++column)
          add_offset(column, columns[index(column)]);
      } else {
        LaterB later = begin_later_b(b);
        Values rows;
        for (int row = 0; row < tile_rows_; ++row) rows.push_back(factor_a(a, step, row));
        for (int column = 0; column < tile_columns_; ++column) {
          Value* y = factor_b(column);
          for (int row = 0; row < tile_rows_; ++row) {
            accumulate(row, column, rows[index(row)], y);
            after_product(later);
          }
          add_offset(column, y);
        }
      }
    }
    out[b_at] = next_row();
    move_a(a_at, unroll);
    return out;
  }

  Value* add(Value* x, Value* y) {
    return is_float(instruction_.c) ? ir_.CreateFAdd(x, y) : ir_.CreateAdd(x, y);
  }

  void add_splits(Values& state) {
    const std::size_t registers = index(tile_rows_ * tile_columns_);
    for (int split = kernel_.splits - 1; split > 0; --split)
      for (std::size_t i = 0; i < registers; ++i)
        state[i] = add(state[i], state[index(split) * registers + i]);
    if (!instruction_.offset_a) return;
    const std::size_t sums = index(kernel_.splits) * registers;
    for (std::size_t i = 0; i < registers; ++i)
      state[i] = ir_.CreateSub(state[i], state[sums + i % index(tile_columns_)]);
  }

  Values finished(const Values& state) {
    const int registers = tile_rows_ * tile_columns_;
    if (instruction_.form == Instruction::Form::Lanes)
      return Values(state.begin(), state.begin() + registers);
    Values out(index(registers));
    const int vectors = tile_columns_ / 2;
    for (int row = 0; row < kernel_.rows; ++row) {
      const int low = row % 2 * 2;
      for (int v = 0; v < vectors; ++v) {
        const std::size_t at = index(row / 2 * tile_columns_ + 2 * v);
        out[index(row * vectors + v)] = ir_.CreateShuffleVector(
            state[at], state[at + 1], llvm::ArrayRef<int>{low, low + 1, low + 4, low + 5});
      }
    }
    return out;
  }

  llvm::IRBuilder<>& ir_;
  const MicroKernel& kernel_;
  const Instruction& instruction_;
  MicroOperands in_;
  llvm::Type *c_type_ = nullptr, *a_group_ = nullptr;
  llvm::FixedVectorType *accumulator_ = nullptr, *a_vector_ = nullptr, *b_vector_ = nullptr;
  int lanes_ = 0, tile_rows_ = 0, tile_columns_ = 0;
  llvm::SmallVector<Value*, 16> a_rows_, a_strides_, b_strides_;  // the latter times 0, 1, …
  Value *later_c_ = nullptr, *last_c_ = nullptr;  // addend rows to prefetch: next, last
};

std::string name_of(const MicroKernel& kernel) {
  const Instruction& instruction = kernel.instruction;
  return fmt::format("{}dot.micro.{}.{}{}{}.v{}{}.{}x{}.u{}s{}{}{}n{}.a{}{}.b{}l{}.c{}{}{}",
                     keeps_order(kernel) ? kInOrder : "",
                     instruction.name == nullptr ? "fma" : instruction.name,
                     to_string(instruction.a), to_string(instruction.b), to_string(instruction.c),
                     kernel.vector_bytes, kernel.broadcast_loads ? "b" : "", kernel.rows,
                     kernel.columns, kernel.unroll, kernel.splits, kernel.whole_unrolls ? "w" : "",
                     kernel.trip_count == TripCount::AtLeastOne ? "t" : "", kernel.ahead,
                     "prc"[static_cast<int>(kernel.a)], kernel.next_lines, kernel.b_stride,
                     kernel.later_b, kernel.far_c ? "f" : "", kernel.apart ? "a" : "",
                     kernel.accumulate ? (*kernel.accumulate ? "1" : "0") : "x");
}

}  // namespace

llvm::Function* micro_kernel(llvm::Module& module, const MicroKernel& kernel) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* pointer = llvm::PointerType::get(context, 0);
  llvm::Type* i64 = llvm::Type::getInt64Ty(context);
  llvm::SmallVector<llvm::Type*, 11> types = {
      i64, pointer, i64, pointer, i64, pointer, i64, llvm::Type::getInt1Ty(context), pointer};
  if (kernel.apart) types.append({pointer, i64});
  return shared_function(
      module, name_of(kernel), types, [&](llvm::IRBuilder<>& ir, llvm::Function& function) {
        function.setAlignment(llvm::Align(64));
        const auto in = [&](unsigned i) { return function.getArg(i); };
        MicroOperands operands{in(0), in(1), in(2), in(3), in(4), in(5), in(6), in(7), in(8)};
        if (kernel.apart) {
          operands.from = in(9);
          operands.from_stride = in(10);
        }
        Tile(ir, kernel, operands).emit();
      });
}

Values emit_micro_kernel(llvm::IRBuilder<>& ir, const MicroKernel& kernel,
                         const MicroOperands& operands, llvm::ArrayRef<Value*> start) {
  return Tile(ir, kernel, operands).sums(start);
}

}  // namespace tessera::codegen
