#pragma once

#include <gtest/gtest.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <cmath>
#include <cstring>
#include <optional>

#include "tessera/codegen/llvm/dot.h"
#include "tessera/codegen/llvm/object.h"
#include "tessera/support/half.h"
#include "tessera/support/rng.h"
#include "x86_emulator.h"

// Dots of any shape, run and compared element by element with a plain loop.

namespace tessera::codegen {

enum class Layout { Rows, PaddedRows, Columns, Scattered, Panels };

inline std::string_view name_of(Layout layout) {
  constexpr std::string_view names[] = {"rows", "padded rows", "columns", "scattered", "panels"};
  return names[static_cast<int>(layout)];
}

struct Extents {
  std::int64_t m = 0, n = 0, k = 0;
};

struct Case {
  DotShape shape;
  Layout a = Layout::Rows, b = Layout::Rows;
  bool accumulate = false;
  bool constant_extents = false;
  std::optional<Extents> blocks = std::nullopt;  // instead of the plan's
  bool in_place = false;                         // where the layout allows
  std::vector<std::string> without = {};         // features that the machine shall not have
  std::string machine = {};                      // of x86-64, emulated; none: this computer
  bool finish = false;                           // what can be is negated before it is stored
};

inline std::string text(const Case& c) {
  return fmt::format("{} x {} -> {}, {}x{}x{}, a by {}, b by {}{}{}{}{}{}", to_string(c.shape.a),
                     to_string(c.shape.b), to_string(c.shape.c), c.shape.m, c.shape.n, c.shape.k,
                     name_of(c.a), name_of(c.b), c.accumulate ? ", added" : "",
                     c.constant_extents ? ", constant" : "", c.blocks ? ", small blocks" : "",
                     c.in_place ? ", in place" : "", c.finish ? ", finished" : "");
}

inline double element(const std::byte* at, DType dtype) {
  const auto as = [&]<typename T>(T) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::F16: return to_float(as(Half{}));
    case DType::BF16: return to_float(as(BFloat16{}));
    case DType::F32: return as(float{});
    case DType::F64: return as(double{});
    case DType::I8: return as(std::int8_t{});
    case DType::U8: return as(std::uint8_t{});
    case DType::I16: return as(std::int16_t{});
    case DType::U16: return as(std::uint16_t{});
    case DType::I32: return as(std::int32_t{});
    case DType::U32: return as(std::uint32_t{});
    case DType::I64: return static_cast<double>(as(std::int64_t{}));
    default: return static_cast<double>(as(std::uint64_t{}));
  }
}

inline void set_element(std::byte* at, DType dtype, double value) {
  const auto put = [&](auto number) { std::memcpy(at, &number, sizeof number); };
  switch (dtype) {
    case DType::F16: return put(to_half(value));
    case DType::BF16: return put(to_bfloat16(value));
    case DType::F32: return put(static_cast<float>(value));
    case DType::F64: return put(value);
    default: break;
  }
  const auto integer = static_cast<std::int64_t>(value);
  std::memcpy(at, &integer, static_cast<std::size_t>(byte_width(dtype)));
}

/// Numbers of which sums are exact in every type: any difference is a mistake.
inline double small_number(Rng& rng, DType dtype) {
  const bool is_unsigned =
      dtype == DType::U8 || dtype == DType::U16 || dtype == DType::U32 || dtype == DType::U64;
  const auto value = static_cast<double>(rng.below(is_float(dtype) ? 9 : 200));
  return is_unsigned ? value : is_float(dtype) ? value - 4 : value - 100;
}

/// A matrix for the largest extents of a case, in one of the layouts. What lies outside of it is
/// NaN (or large), so that reading it shows.
struct Matrix {
  DType dtype;
  std::int64_t rows, columns, row_stride, column_stride, panel = 0, panel_stride = 0, group = 1;
  std::vector<std::byte> bytes;

  Matrix(DType type, std::int64_t height, std::int64_t width, Layout layout,
         std::int64_t panel_width = 0, std::int64_t k_group = 1)
      : dtype(type), rows(height), columns(width), group(k_group) {
    row_stride = width;
    column_stride = 1;
    if (layout == Layout::PaddedRows) row_stride = width + 5;
    if (layout == Layout::Columns) row_stride = 1, column_stride = height;
    if (layout == Layout::Scattered) column_stride = 2, row_stride = 2 * width + 3;
    std::int64_t size = rows * row_stride + columns * column_stride + 1;
    if (layout == Layout::Columns) size = rows * columns;
    if (layout == Layout::Rows) size = rows * columns;
    if (layout == Layout::Panels) {
      panel = panel_width;
      panel_stride = (rows + group - 1) / group * group * panel;
      size = (columns + panel - 1) / panel * panel_stride;
    }
    bytes.resize(static_cast<std::size_t>(size * byte_width(type)));
    if (layout != Layout::Panels && is_float(type))
      std::fill(bytes.begin(), bytes.end(), std::byte{0xff});
  }

  std::byte* at(std::int64_t row, std::int64_t column) {
    std::int64_t offset = row * row_stride + column * column_stride;
    if (panel != 0)
      offset = column / panel * panel_stride + (row / group * panel + column % panel) * group +
               row % group;
    return bytes.data() + offset * byte_width(dtype);
  }
};

/// Stores the negated sums.
class Negated final : public DotEpilogue {
 public:
  Negated(llvm::IRBuilder<>& ir, const DotCall& call) : ir_(ir), call_(call) {}
  std::vector<llvm::Value*> start(const DotPart&) override { return {}; }
  void finish(const DotPart& part, llvm::ArrayRef<llvm::Value*> sums, bool) override {
    for (int row = 0; row < part.rows; ++row)
      for (int v = 0; v < part.vectors; ++v) {
        llvm::Value* sum = sums[static_cast<std::size_t>(row * part.vectors + v)];
        auto* type = llvm::cast<llvm::FixedVectorType>(sum->getType());
        const auto number = [&](int i) { return ir_.getInt64(static_cast<std::uint64_t>(i)); };
        llvm::Value* offset = ir_.CreateAdd(
            ir_.CreateMul(ir_.CreateAdd(part.row, number(row)), call_.c_row_stride),
            ir_.CreateAdd(part.column, number(v * static_cast<int>(type->getNumElements()))));
        sum =
            type->getElementType()->isFloatingPointTy() ? ir_.CreateFNeg(sum) : ir_.CreateNeg(sum);
        ir_.CreateAlignedStore(sum, ir_.CreateGEP(type->getElementType(), call_.c, offset),
                               llvm::Align(4));
      }
  }

 private:
  llvm::IRBuilder<>& ir_;
  const DotCall& call_;
};

/// A module with a function f of a pointer, which is being written.
struct OpenFunction {
  llvm::LLVMContext context;
  llvm::Module module{"test", context};
  llvm::IRBuilder<> ir{context};
  llvm::Function* function =
      llvm::Function::Create(llvm::FunctionType::get(ir.getVoidTy(), {ir.getPtrTy()}, false),
                             llvm::GlobalValue::ExternalLinkage, "f", module);

  OpenFunction() { ir.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function)); }

  /// Of matrices that lie by rows, all at the function's argument.
  DotCall dense(const DotShape& shape, const machine::Machine& machine) {
    const auto number = [&](std::int64_t value) {
      return ir.getInt64(static_cast<std::uint64_t>(value));
    };
    llvm::Value* memory = function->getArg(0);
    DotCall call{.shape = shape, .plan = plan_dot(shape, machine)};
    call.extents = {number(shape.m), number(shape.n), number(shape.k)};
    call.a = {.base = memory, .row_stride = number(shape.k), .column_stride = number(1)};
    call.b = {.base = memory, .row_stride = number(shape.n), .column_stride = number(1)};
    call.c = call.scratch = memory;
    call.c_row_stride = number(shape.n);
    return call;
  }
};

class Compiled {
 public:
  explicit Compiled(const Case& c)
      : case_(c), machine_(c.machine.empty() ? machine::host() : *machine::named(c.machine)) {
    for (const std::string& feature : c.without) std::erase(machine_.features, feature);
    OpenFunction open;
    auto& [context, module, ir, function] = open;
    int next = 0;
    const auto word = [&](llvm::Type* as) -> llvm::Value* {
      llvm::Value* slot = ir.CreateConstGEP1_64(ir.getInt64Ty(), function->getArg(0), next++);
      return ir.CreateLoad(as, slot);
    };
    const auto number = [&](bool constant, std::int64_t value) -> llvm::Value* {
      llvm::Value* loaded = word(ir.getInt64Ty());
      return constant ? ir.getInt64(static_cast<std::uint64_t>(value)) : loaded;
    };
    const DotShape& shape = c.shape;
    panel_ = c.b == Layout::Panels ? panel_columns(shape, machine_) : 0;
    plan_ = plan_dot(shape, machine_, panel_);
    if (c.blocks) {
      plan_.mc = std::min(plan_.mc, c.blocks->m * plan_.mr);
      plan_.nc = std::min(plan_.nc, c.blocks->n * plan_.nr);
      plan_.kc = std::min(plan_.kc, c.blocks->k * plan_.k_group);
    }
    if (c.in_place) plan_.pack_a = plan_.pack_b = false;
    DotCall call{.shape = shape, .plan = plan_};
    call.extents.m = number(c.constant_extents, shape.m);
    call.extents.n = number(c.constant_extents, shape.n);
    call.extents.k = number(c.constant_extents, shape.k);
    const auto strides = [&](DotOperand& operand, Layout layout) {
      operand.base = word(ir.getPtrTy());
      operand.row_stride = number(layout == Layout::Columns, 1);
      operand.column_stride = number(layout == Layout::Rows || layout == Layout::PaddedRows, 1);
    };
    strides(call.a, c.a);
    strides(call.b, c.b);
    call.b.panel = panel_;
    call.b.panel_stride = number(false, 0);
    call.c = word(ir.getPtrTy());
    call.c_row_stride = number(false, 0);
    call.scratch = word(ir.getPtrTy());
    call.accumulate = c.accumulate;
    Negated negated(ir, call);
    if (c.finish) call.epilogue = &negated;
    finished_ = emit_dot(ir, call, machine_);
    ir.CreateRetVoid();
    if (!c.machine.empty()) emulate_x86(module);
    auto object = object_of(module, c.machine.empty() ? machine_ : machine::host());
    EXPECT_TRUE(object.has_value());
    auto image = LoadedObject::load(*object);
    EXPECT_TRUE(image.has_value());
    image_ = *image;
  }

  /// Runs with those extents and compares every element of c, and of what lies around it.
  void check(const Extents& extents, Rng& rng) const {
    const DotShape& shape = case_.shape;
    Matrix a(shape.a, shape.m, shape.k, case_.a);
    const DType b_type = case_.b == Layout::Panels ? panel_dtype(shape, machine_) : shape.b;
    Matrix b(b_type, shape.k, shape.n, case_.b, panel_, plan_.k_group);
    Matrix c(shape.c, shape.m, shape.n, Layout::PaddedRows);
    const auto fill = [&](Matrix& matrix, DType type, std::int64_t rows, std::int64_t columns) {
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j)
          set_element(matrix.at(i, j), matrix.dtype, small_number(rng, type));
    };
    fill(a, shape.a, extents.m, extents.k);
    fill(b, shape.b, extents.k, extents.n);
    if (case_.accumulate) fill(c, shape.c, extents.m, extents.n);
    Matrix expected = c;
    for (std::int64_t i = 0; i < extents.m; ++i) {
      for (std::int64_t j = 0; j < extents.n; ++j) {
        double sum = case_.accumulate ? element(c.at(i, j), shape.c) : 0;
        for (std::int64_t k = 0; k < extents.k; ++k)
          sum += element(a.at(i, k), shape.a) * element(b.at(k, j), b_type);
        set_element(expected.at(i, j), shape.c, j < finished_ ? -sum : sum);
      }
    }
    std::vector<std::byte> scratch(static_cast<std::size_t>(plan_.scratch_bytes) + 256,
                                   std::byte{0x7b});
    auto* aligned = reinterpret_cast<std::byte*>(
        (reinterpret_cast<std::uintptr_t>(scratch.data()) + 127) / 128 * 128);
    std::byte* end = aligned + plan_.scratch_bytes;
    const auto address = [](std::byte* p) { return reinterpret_cast<std::int64_t>(p); };
    const std::int64_t words[] = {extents.m,
                                  extents.n,
                                  extents.k,
                                  address(a.bytes.data()),
                                  a.row_stride,
                                  a.column_stride,
                                  address(b.bytes.data()),
                                  b.row_stride,
                                  b.column_stride,
                                  b.panel_stride,
                                  address(c.bytes.data()),
                                  c.row_stride,
                                  address(aligned)};
    reinterpret_cast<void (*)(const std::int64_t*)>(image_->address("f"))(words);
    for (std::int64_t i = 0; i < extents.m; ++i)
      for (std::int64_t j = 0; j < extents.n; ++j)
        ASSERT_EQ(element(c.at(i, j), shape.c), element(expected.at(i, j), shape.c))
            << text(case_) << ": " << extents.m << "x" << extents.n << "x" << extents.k << " at ("
            << i << ", " << j << ")";
    ASSERT_TRUE(c.bytes == expected.bytes) << text(case_) << " wrote outside of c";
    ASSERT_EQ(*end, std::byte{0x7b}) << text(case_) << " wrote behind its scratch";
  }

 private:
  Case case_;
  machine::Machine machine_;
  std::int64_t panel_ = 0;
  DotPlan plan_;
  std::int64_t finished_ = 0;  // columns
  std::shared_ptr<const LoadedObject> image_;
};

struct Types {
  DType a, b, c;
};
constexpr Types all_types[] = {
    {DType::F32, DType::F32, DType::F32},   {DType::F64, DType::F64, DType::F64},
    {DType::BF16, DType::BF16, DType::F32}, {DType::F16, DType::F16, DType::F32},
    {DType::I8, DType::I8, DType::I32},     {DType::U8, DType::U8, DType::I32},
    {DType::U8, DType::I8, DType::I32},     {DType::I8, DType::U8, DType::I32},
    {DType::I32, DType::I32, DType::I32},   {DType::I16, DType::I16, DType::I32},
    {DType::I64, DType::I64, DType::I64},   {DType::F32, DType::BF16, DType::F32},
    {DType::I8, DType::I8, DType::I8},      {DType::U16, DType::U16, DType::U64},
};
constexpr Layout layouts[] = {Layout::Rows, Layout::PaddedRows, Layout::Columns, Layout::Scattered,
                              Layout::Panels};
constexpr std::int64_t odd_sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 15, 16, 17, 31, 33, 37};

template <typename T, std::size_t n>
const T& pick(const T (&list)[n], Rng& rng) {
  return list[rng.below(n)];
}

/// Of those types, any shape, layouts and blocks.
template <std::size_t n>
Case any_case(const Types (&list)[n], Rng& rng) {
  const auto size = [&] {
    return pick(odd_sizes, rng) * (1 + static_cast<std::int64_t>(rng.below(3)));
  };
  const Types& types = pick(list, rng);
  Case c{.shape = {types.a, types.b, types.c, size(), size(), size()}};
  c.a = layouts[rng.below(4)];
  c.b = pick(layouts, rng);
  c.accumulate = rng.below(2) == 0;
  c.constant_extents = rng.below(3) == 0;
  if (rng.below(2) == 0) c.blocks = Extents{2, 1, 16};
  return c;
}

inline void expect_right(const Case& c, int runs, Rng& rng) {
  const Compiled compiled(c);
  const DotShape& shape = c.shape;
  compiled.check({shape.m, shape.n, shape.k}, rng);
  if (c.constant_extents) return;
  const auto size = [&](std::int64_t most) { return std::min(most, pick(odd_sizes, rng)); };
  for (int run = 0; run < runs && !::testing::Test::HasFatalFailure(); ++run)
    compiled.check({size(shape.m), size(shape.n), size(shape.k)}, rng);
}

}  // namespace tessera::codegen
