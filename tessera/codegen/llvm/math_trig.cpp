#include <llvm/IR/Module.h>

#include <array>
#include <cmath>

#include "tessera/codegen/llvm/functions.h"

// sin and cos at any finite number. x is q quarter turns and a rest r of at most an eighth; which
// quarter, and whether sin(r) or cos(r), follows from q modulo 4. For huge x the integer part of
// x · 2/π would fill any format, but bits of 2/π whose product with x is a multiple of 4 do not
// count: a table gives 2/π without its first 0, g, 2g … bits (Payne and Hanek, "Radian reduction
// for trigonometric functions", 1983).

namespace tessera::codegen {
namespace {

// 2/π, after the binary point.
constexpr std::array<std::uint64_t, 19> kTwoOverPi = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
    0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
    0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab};
constexpr double kHalfPi = 0x1.921fb54442d18p+0, kHalfPiLow = 0x1.1a62633145c07p-54;

/// For numbers of `precision` bits and exponents up to `most`: bits are left out in groups of
/// 2^log2_group, and what remains is given in `parts` doubles of 53 bits. The parts must hold the
/// bits of a number, of a group, of the longest cancellation and of the result.
struct Reduction {
  const char* name;
  int precision, most, log2_group, parts;

  int first() const { return precision + 1; }  // exponent from which bits can be left out
  int entries() const { return ((most - first()) >> log2_group) + 1; }
};
constexpr Reduction kReduction32 = {"tessera.two_over_pi.f32", 24, 127, 4, 2};
constexpr Reduction kReduction64 = {"tessera.two_over_pi.f64", 53, 1023, 5, 4};

/// 53 bits of 2/π from bit `at`, scaled to lie below 1.
double bits_of_two_over_pi(int at) {
  std::uint64_t bits = 0;
  for (int i = at; i < at + 53; ++i) bits = bits << 1 | (kTwoOverPi[i / 64] >> (63 - i % 64) & 1);
  return std::ldexp(static_cast<double>(bits), -53);
}

llvm::GlobalVariable* table_of(const Reduction& reduction, llvm::IRBuilderBase& ir) {
  llvm::Module& module = *ir.GetInsertBlock()->getModule();
  if (llvm::GlobalVariable* const known = module.getNamedGlobal(reduction.name)) return known;
  std::vector<double> table;
  for (int entry = 0; entry < reduction.entries(); ++entry)
    for (int part = 0; part < reduction.parts; ++part)
      table.push_back(
          std::ldexp(bits_of_two_over_pi((entry << reduction.log2_group) + 53 * part), -53 * part));
  llvm::Constant* const values = llvm::ConstantDataArray::get(module.getContext(), table);
  return new llvm::GlobalVariable(module, values->getType(), true,
                                  llvm::GlobalValue::InternalLinkage, values, reduction.name);
}

/// Gathers table[index[i] · stride + part] for each element.
Lanes look_up(llvm::GlobalVariable* table, const Lanes& index, int stride, int part) {
  llvm::IRBuilderBase& ir = index.ir();
  llvm::Type* const number = ir.getDoubleTy();
  const auto one = [&](llvm::Value* i) -> llvm::Value* {
    llvm::Value* const at = ir.CreateAdd(ir.CreateMul(i, ir.getInt64(stride)), ir.getInt64(part));
    return ir.CreateLoad(number, ir.CreateInBoundsGEP(number, table, at));
  };
  return each_piece(
      [&](llvm::Value* piece) {
        const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(piece->getType());
        if (vector == nullptr) return one(piece);
        llvm::Value* all = llvm::PoisonValue::get(index.type_of(number));
        for (unsigned i = 0; i < vector->getNumElements(); ++i)
          all = ir.CreateInsertElement(all, one(ir.CreateExtractElement(piece, i)), i);
        return all;
      },
      index);
}

/// x divided by the power of two of the skipped bits, and the parts of 2/π to multiply it by.
struct Factors {
  Lanes x;
  std::vector<Lanes> parts;
};
Factors factors_of(const Lanes& x, const Reduction& reduction) {
  const Lanes bits = x.as_integer();
  const Lanes exponent = shift_right(shift_left(bits, 1), 53);
  const auto integer = [&](int value) { return bits.constant(static_cast<std::uint64_t>(value)); };
  const Lanes beyond =
      intrinsic(llvm::Intrinsic::usub_sat, exponent, integer(1023 + reduction.first()));
  const Lanes entry = intrinsic(llvm::Intrinsic::umin, shift_right(beyond, reduction.log2_group),
                                integer(reduction.entries() - 1));
  const Lanes scaled = (bits - shift_left(entry, 52 + reduction.log2_group)).as_float();
  Factors result = {scaled + (x - x), {}};  // NaN where x is not finite
  llvm::GlobalVariable* const table = table_of(reduction, x.ir());
  for (int part = 0; part < reduction.parts; ++part)
    result.parts.push_back(look_up(table, entry, reduction.parts, part));
  return result;
}

/// Quarter turns modulo 4 in the low bits, and the rest in radians as high + low.
struct Turned {
  Lanes quarters, high, low;
};

struct Rounded {
  Lanes bits, whole;
};
Rounded round_quarters(const Lanes& turns) {
  const double shift = 0x1.8p+52;  // adding it rounds to an integer and leaves that in the low bits
  const Lanes shifted = turns + shift;
  return {shifted.as_integer(), shifted - shift};
}

Turned turned32(const Lanes& x) {
  const auto [near, parts] = factors_of(x, kReduction32);
  const Lanes product = near * parts[0];
  const Lanes tail = fma(near, parts[1], fma(near, parts[0], -product));
  const auto [bits, whole] = round_quarters(product);
  const Lanes rest = ((product - whole) + tail) * kHalfPi;
  return {bits, rest, rest.constant(0.0)};
}

/// a + b exactly (Knuth).
std::pair<Lanes, Lanes> exact_sum(const Lanes& a, const Lanes& b) {
  const Lanes sum = a + b;
  const Lanes of_b = sum - a;
  return {sum, (a - (sum - of_b)) + (b - of_b)};
}

Turned turned64(const Lanes& x) {
  const auto [near, parts] = factors_of(x, kReduction64);
  std::vector<Lanes> terms;  // of the product, by decreasing size; each exact but the last
  for (const Lanes& part : parts) {
    const Lanes product = near * part;
    terms.push_back(product);
    terms.push_back(fma(near, part, -product));
  }
  const auto modulo_4 = [](const Lanes& a) {
    return fma(intrinsic(llvm::Intrinsic::roundeven, a * 0.25), -4, a);
  };
  const auto [first, first_error] = exact_sum(modulo_4(terms[0]), modulo_4(terms[1]));
  const auto [second, second_error] = exact_sum(first, modulo_4(terms[2]));
  const auto [bits, whole] = round_quarters(second);

  Lanes high = second - whole;
  Lanes low = terms[5] + terms[6];
  for (const Lanes& term : {first_error, second_error, terms[3], terms[4]}) {
    const auto [sum, error] = exact_sum(high, term);
    high = sum;
    low = low + error;
  }
  const Lanes radians = high * kHalfPi;
  return {bits, radians, fma(low, kHalfPi, fma(high, kHalfPiLow, fma(high, kHalfPi, -radians)))};
}

// (sin(r) - r) / r³ and (cos(r) - 1 + r²/2) / r⁴ in r², minimax
constexpr double kSin32[] = {-0x1.555546p-3, 0x1.11073ap-7, -0x1.994384p-13};
constexpr double kCos32[] = {0x1.55554ap-5, -0x1.6c0c32p-10, 0x1.99eb4ap-16};
constexpr double kSin64[] = {-0x1.5555555555548p-3, 0x1.111111110f7d0p-7,   -0x1.a01a019bfdca5p-13,
                             0x1.71de3567925dfp-19, -0x1.ae5e5a470568ep-26, 0x1.5d8fb60f33bf3p-33};
constexpr double kCos64[] = {0x1.555555555554bp-5,  -0x1.6c16c16c14f8dp-10,
                             0x1.a01a019c83cbep-16, -0x1.27e4f7ea5452ap-22,
                             0x1.1ee9d75f2c61bp-29, -0x1.8fa469c9e47c9p-37};
constexpr Coefficients kSin = {kSin32, kSin64}, kCos = {kCos32, kCos64};

Lanes sin_of_rest(const Lanes& r, const Lanes& low) {
  const Lanes square = r * r;
  const Lanes cubic = r * square * polynomial(square, kSin);
  return r + fma(low, fma(square, -0.5, 1.0), cubic);
}

Lanes cos_of_rest(const Lanes& r, const Lanes& low) {
  const Lanes square = r * r;
  const Lanes half = square * 0.5;
  const Lanes near = half.constant(1.0) - half;
  const Lanes lost = (half.constant(1.0) - near) - half;
  const Lanes quartic = square * square * polynomial(square, kCos);
  return near + (lost + (quartic - r * low));
}

/// sin(x + ahead · π/2)
Lanes sin_ahead(const Lanes& x, std::uint64_t ahead) {
  const bool wide = x.is_double();
  Turned turned =
      wide ? turned64(x) : turned32(x.cast(llvm::Instruction::FPExt, x.ir().getDoubleTy()));
  if (!wide) {
    turned.high = turned.high.cast(llvm::Instruction::FPTrunc, x.element());
    turned.low = x.constant(0.0);
    turned.quarters = turned.quarters.cast(llvm::Instruction::Trunc, x.ir().getInt32Ty());
  }
  const Lanes quarters = turned.quarters + turned.quarters.constant(ahead);
  const Lanes zero = quarters.constant(std::uint64_t{0});
  const Lanes odd =
      compare(llvm::CmpInst::ICMP_NE, quarters & quarters.constant(std::uint64_t{1}), zero);
  const Lanes value =
      select(odd, cos_of_rest(turned.high, turned.low), sin_of_rest(turned.high, turned.low));
  const Lanes sign = shift_left(shift_right(quarters, 1), x.bits() - 1);
  return (value.as_integer() ^ sign).as_float();
}

}  // namespace

Lanes sin(const Lanes& x) {
  // Below, the product with 2/π would lose bits of subnormal numbers and the sign of zero.
  const Lanes tiny = compare(llvm::CmpInst::FCMP_OLT, abs(x), x.is_double() ? 0x1p-27 : 0x1p-13);
  return select(tiny, x, sin_ahead(x, 0));
}

Lanes cos(const Lanes& x) {
  return sin_ahead(x, 1);
}

}  // namespace tessera::codegen
