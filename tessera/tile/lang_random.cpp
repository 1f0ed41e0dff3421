#include "tessera/tile/lang_random.h"

#include <numbers>

#include "tessera/tile/lang_fit.h"

namespace tessera::tile {
namespace {

/// Float from 32 random bits. The scale is the largest one that keeps the result below 1.
Val uniform(const Val& bits) {
  const Val x = bits.bitcast(DType::I32);
  return where(x < 0, -x - 1, x) * 4.6566127342e-10;
}

}  // namespace

std::array<Val, 4> philox4x32(const Operand& seed, const std::array<Operand, 4>& c, int rounds) {
  const Trace::Line line(seed.where());
  constexpr std::uint32_t kRound[] = {0xD2511F53, 0xCD9E8D57}, kKey[] = {0x9E3779B9, 0xBB67AE85};
  const Val wide = cast(seed, DType::U64);
  Val k0 = wide.to(DType::U32), k1 = (wide >> 32).to(DType::U32);
  std::array<Val, 4> x = {cast(c[0], DType::U32), cast(c[1], DType::U32), cast(c[2], DType::U32),
                          cast(c[3], DType::U32)};
  for (int round = 0; round < rounds; ++round) {
    const Val x0 = x[0], x2 = x[2];
    x[0] = umulhi(x2, kRound[1]) ^ x[1] ^ k0;
    x[2] = umulhi(x0, kRound[0]) ^ x[3] ^ k1;
    x[1] = x2 * kRound[1];
    x[3] = x0 * kRound[0];
    k0 += kKey[0];
    k1 += kKey[1];
  }
  return x;
}

std::array<Val, 4> randint4x(const Operand& seed, const Operand& offset, int rounds) {
  const Trace::Line line(seed.where());
  const bool wide = byte_width(type_of(offset).dtype) == 8;
  const Val low = cast(offset, DType::U32), zero = zeros_like(low);
  const Val high = wide ? (offset >> 32).to(DType::U32) : zero;
  return philox4x32(seed, {low, high, zero, zero}, rounds);
}

Val randint(const Operand& seed, const Operand& offset, int rounds) {
  return randint4x(seed, offset, rounds)[0];
}

Val rand(const Operand& seed, const Operand& offset, int rounds) {
  const Trace::Line line(seed.where());
  return uniform(randint(seed, offset, rounds));
}

Val randn(const Operand& seed, const Operand& offset, int rounds) {
  const Trace::Line line(seed.where());
  const std::array<Val, 4> bits = randint4x(seed, offset, rounds);
  const Val radius = sqrt(-2.0 * log(maximum(uniform(bits[0]), 1.0e-7)));
  return radius * cos(2 * std::numbers::pi * uniform(bits[1]));
}

}  // namespace tessera::tile
