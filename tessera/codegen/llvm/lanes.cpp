#include "tessera/codegen/llvm/lanes.h"

namespace tessera::codegen {
namespace {

Lanes binary(llvm::Instruction::BinaryOps floats, llvm::Instruction::BinaryOps integers,
             const Lanes& a, const Lanes& b) {
  const auto op = a.is_float() ? floats : integers;
  return each_piece([&](auto* x, auto* y) { return a.ir().CreateBinOp(op, x, y); }, a, b);
}

Lanes bitwise(llvm::Instruction::BinaryOps op, const Lanes& a, const Lanes& b) {
  return binary(op, op, a, b);
}

/// Estrin pairs: c0 + c1 x, c2 + c3 x, …
std::vector<Lanes> in_pairs(const Lanes& x, const std::vector<Lanes>& c) {
  std::vector<Lanes> pairs;
  for (std::size_t i = 0; i + 1 < c.size(); i += 2) pairs.push_back(fma(c[i + 1], x, c[i]));
  if (c.size() % 2 != 0) pairs.push_back(c.back());
  return pairs;
}

}  // namespace

Lanes Lanes::cast(llvm::Instruction::CastOps op, llvm::Type* element) const {
  llvm::Type* const to = type_of(element);
  return each_piece([&](auto* x) { return ir_->CreateCast(op, x, to); }, *this);
}

Lanes Lanes::as_integer() const {
  return cast(llvm::Instruction::BitCast, ir_->getIntNTy(bits()));
}

Lanes Lanes::as_float() const {
  return cast(llvm::Instruction::BitCast, bits() == 64 ? ir_->getDoubleTy() : ir_->getFloatTy());
}

Lanes operator+(const Lanes& a, const Lanes& b) {
  return binary(llvm::Instruction::FAdd, llvm::Instruction::Add, a, b);
}
Lanes operator-(const Lanes& a, const Lanes& b) {
  return binary(llvm::Instruction::FSub, llvm::Instruction::Sub, a, b);
}
Lanes operator*(const Lanes& a, const Lanes& b) {
  return binary(llvm::Instruction::FMul, llvm::Instruction::Mul, a, b);
}
Lanes operator/(const Lanes& a, const Lanes& b) {
  return bitwise(llvm::Instruction::FDiv, a, b);
}
Lanes operator-(const Lanes& a) {
  return each_piece(
      [&](auto* x) { return a.is_float() ? a.ir().CreateFNeg(x) : a.ir().CreateNeg(x); }, a);
}
Lanes operator&(const Lanes& a, const Lanes& b) {
  return bitwise(llvm::Instruction::And, a, b);
}
Lanes operator|(const Lanes& a, const Lanes& b) {
  return bitwise(llvm::Instruction::Or, a, b);
}
Lanes operator^(const Lanes& a, const Lanes& b) {
  return bitwise(llvm::Instruction::Xor, a, b);
}
Lanes operator~(const Lanes& a) {
  return each_piece([&](auto* x) { return a.ir().CreateNot(x); }, a);
}

Lanes shift_left(const Lanes& a, unsigned by) {
  return bitwise(llvm::Instruction::Shl, a, a.constant(std::uint64_t{by}));
}
Lanes shift_right(const Lanes& a, unsigned by) {
  return bitwise(llvm::Instruction::LShr, a, a.constant(std::uint64_t{by}));
}
Lanes shift_right_arithmetic(const Lanes& a, unsigned by) {
  return bitwise(llvm::Instruction::AShr, a, a.constant(std::uint64_t{by}));
}

Lanes fma(const Lanes& a, const Lanes& b, const Lanes& c) {
  return each_piece(
      [&](auto* x, auto* y, auto* z) {
        return a.ir().CreateIntrinsic(llvm::Intrinsic::fma, {a.type()}, {x, y, z});
      },
      a, b, c);
}

Lanes compare(llvm::CmpInst::Predicate predicate, const Lanes& a, const Lanes& b) {
  return each_piece([&](auto* x, auto* y) { return a.ir().CreateCmp(predicate, x, y); }, a, b);
}

Lanes select(const Lanes& condition, const Lanes& yes, const Lanes& no) {
  return each_piece([&](auto* c, auto* x, auto* y) { return yes.ir().CreateSelect(c, x, y); },
                    condition, yes, no);
}

Lanes intrinsic(llvm::Intrinsic::ID id, const Lanes& a) {
  return each_piece([&](auto* x) { return a.ir().CreateIntrinsic(id, {a.type()}, {x}); }, a);
}
Lanes intrinsic(llvm::Intrinsic::ID id, const Lanes& a, const Lanes& b) {
  // Which zero a minimum or maximum gives is not fixed (docs/tile.md); x86-64 takes several
  // instructions to tell them apart.
  const bool is_extremum = id == llvm::Intrinsic::minimum || id == llvm::Intrinsic::maximum;
  return each_piece(
      [&](auto* x, auto* y) {
        llvm::CallInst* call = a.ir().CreateIntrinsic(id, {a.type()}, {x, y});
        if (is_extremum) call->setHasNoSignedZeros(true);
        return call;
      },
      a, b);
}

Lanes abs(const Lanes& a) {
  return intrinsic(llvm::Intrinsic::fabs, a);
}
Lanes clamp_below(const Lanes& a, double most) {
  return intrinsic(llvm::Intrinsic::minimum, a, a.constant(most));
}
Lanes clamp_above(const Lanes& a, double least) {
  return intrinsic(llvm::Intrinsic::maximum, a, a.constant(least));
}
Lanes copysign(const Lanes& magnitude, const Lanes& sign) {
  return intrinsic(llvm::Intrinsic::copysign, magnitude, sign);
}

Lanes polynomial(const Lanes& x, std::span<const double> c) {
  std::vector<Lanes> terms;
  for (const double coefficient : c) terms.push_back(x.constant(coefficient));
  Lanes power = x;
  for (const std::size_t few : {std::size_t{2}, std::size_t{8}}) {
    if (c.size() <= few) break;
    terms = in_pairs(power, terms);
    power = power * power;
  }
  Lanes sum = terms.back();
  for (std::size_t i = terms.size() - 1; i-- > 0;) sum = fma(sum, power, terms[i]);
  return sum;
}

bool target_has(const Lanes& x, std::initializer_list<llvm::StringRef> features) {
  const llvm::Function& function = *x.ir().GetInsertBlock()->getParent();
  llvm::SmallVector<llvm::StringRef> known;
  function.getFnAttribute("target-features").getValueAsString().split(known, ',');
  return llvm::any_of(features, [&](llvm::StringRef feature) {
    return llvm::any_of(
        known, [&](llvm::StringRef each) { return each.consume_front("+") && each == feature; });
  });
}

}  // namespace tessera::codegen
