#pragma once

#include <llvm/IR/IRBuilder.h>

#include <cstdint>
#include <initializer_list>
#include <span>

#include "tessera/codegen/llvm/math.h"

namespace tessera::codegen {

/// A vectorized value split into pieces, with arithmetic. Each operation is emitted for all pieces
/// before the next one, so that formulas written in Lanes become interleaved dependence chains.
///
/// Whether + means floats or integers follows from the pieces. Arithmetic on floats carries no
/// fast-math flags: the algorithms here live on exact rounding.
class Lanes {
 public:
  Lanes(llvm::IRBuilderBase& ir, Pieces pieces) : ir_(&ir), pieces_(std::move(pieces)) {}

  llvm::IRBuilderBase& ir() const { return *ir_; }
  const Pieces& pieces() const { return pieces_; }
  llvm::Type* type() const { return pieces_.front()->getType(); }
  llvm::Type* element() const { return type()->getScalarType(); }
  unsigned bits() const { return type()->getScalarSizeInBits(); }
  bool is_float() const { return type()->isFPOrFPVectorTy(); }
  bool is_double() const { return element()->isDoubleTy(); }
  /// Type of a piece with other elements.
  llvm::Type* type_of(llvm::Type* element) const { return type()->getWithNewType(element); }

  /// Constant in every element.
  Lanes constant(double value) const { return same(llvm::ConstantFP::get(type(), value)); }
  Lanes constant(std::uint64_t value) const { return same(llvm::ConstantInt::get(type(), value)); }
  Lanes constant(const llvm::APInt& value) const {
    return same(llvm::ConstantInt::get(type(), value));
  }

  /// Bitcast to integers of the same width, and back to floats of that width.
  Lanes as_integer() const;
  Lanes as_float() const;
  Lanes cast(llvm::Instruction::CastOps op, llvm::Type* element) const;

 private:
  Lanes same(llvm::Value* value) const { return {*ir_, Pieces(pieces_.size(), value)}; }

  llvm::IRBuilderBase* ir_;
  Pieces pieces_;
};

/// Calls emit(piece of each operand…) for each piece in turn.
template <class Emit, class... More>
Lanes each_piece(const Emit& emit, const Lanes& first, const More&... more) {
  Pieces result;
  for (std::size_t i = 0; i < first.pieces().size(); ++i)
    result.push_back(emit(first.pieces()[i], more.pieces()[i]...));
  return {first.ir(), std::move(result)};
}

Lanes operator+(const Lanes& a, const Lanes& b);
Lanes operator-(const Lanes& a, const Lanes& b);
Lanes operator*(const Lanes& a, const Lanes& b);
Lanes operator/(const Lanes& a, const Lanes& b);  // floats
Lanes operator-(const Lanes& a);
Lanes operator&(const Lanes& a, const Lanes& b);
Lanes operator|(const Lanes& a, const Lanes& b);
Lanes operator^(const Lanes& a, const Lanes& b);
Lanes operator~(const Lanes& a);

inline Lanes operator+(const Lanes& a, double b) {
  return a + a.constant(b);
}
inline Lanes operator-(const Lanes& a, double b) {
  return a - a.constant(b);
}
inline Lanes operator*(const Lanes& a, double b) {
  return a * a.constant(b);
}

Lanes shift_left(const Lanes& a, unsigned by);
Lanes shift_right(const Lanes& a, unsigned by);             // zeros come in
Lanes shift_right_arithmetic(const Lanes& a, unsigned by);  // copies of the sign come in

/// a·b + c, rounded once.
Lanes fma(const Lanes& a, const Lanes& b, const Lanes& c);
inline Lanes fma(const Lanes& a, double b, const Lanes& c) {
  return fma(a, a.constant(b), c);
}
inline Lanes fma(const Lanes& a, const Lanes& b, double c) {
  return fma(a, b, a.constant(c));
}
inline Lanes fma(const Lanes& a, double b, double c) {
  return fma(a, a.constant(b), a.constant(c));
}

Lanes compare(llvm::CmpInst::Predicate predicate, const Lanes& a, const Lanes& b);
inline Lanes compare(llvm::CmpInst::Predicate predicate, const Lanes& a, double b) {
  return compare(predicate, a, a.constant(b));
}
Lanes select(const Lanes& condition, const Lanes& yes, const Lanes& no);

/// LLVM intrinsic that is overloaded by the type of its operands only.
Lanes intrinsic(llvm::Intrinsic::ID id, const Lanes& a);
Lanes intrinsic(llvm::Intrinsic::ID id, const Lanes& a, const Lanes& b);

Lanes abs(const Lanes& a);  // floats
/// Propagates NaN.
Lanes clamp_below(const Lanes& a, double most);
Lanes clamp_above(const Lanes& a, double least);
Lanes copysign(const Lanes& magnitude, const Lanes& sign);

/// Polynomial c[0] + c[1] x + c[2] x² …, evaluated in independent parts: Estrin's scheme for short
/// dependence chains, joined by Horner's scheme for few operations.
Lanes polynomial(const Lanes& x, std::span<const double> c);

/// Whether the target has one of these features, by the "target-features" of the function that is
/// being emitted.
bool target_has(const Lanes& x, std::initializer_list<llvm::StringRef> features);

/// Polynomial coefficients, for f32 and for f64.
struct Coefficients {
  std::span<const double> f32, f64;
};
inline Lanes polynomial(const Lanes& x, const Coefficients& c) {
  return polynomial(x, x.is_double() ? c.f64 : c.f32);
}

}  // namespace tessera::codegen
