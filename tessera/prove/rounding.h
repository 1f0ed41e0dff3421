#pragma once

#include "tessera/certify/certificate.h"

namespace tessera::prove {

/// Whether a claim that holds over the reals holds bit for bit too (but for the sign of zero and
/// what is not finite), as its definitions show: every element is the correctly rounded real
/// number, on both sides. That is so where at most one operation of each path from an input rounds.
///
/// - Inputs, small integers and what is chosen among them by place are exact.
/// - A sum, difference, product, quotient or square root of exact numbers is rounded correctly by
///   IEEE arithmetic.
/// - The maximum, minimum, negative and absolute value of correctly rounded numbers is correctly
///   rounded, since rounding is monotone and odd.
///
///     relu(concat(x, y)) = concat(relu(x), relu(y))  nothing rounds
///     x - (-y) = x + y                               one sum
///     (x + y) + z = x + (y + z)                      no: two sums in sequence
///
/// False says nothing: `inexactness` looks further.
bool rounds_correctly(const certify::Claim& claim);

}  // namespace tessera::prove
