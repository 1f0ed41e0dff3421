#pragma once

#include "tessera/certify/certificate.h"

namespace tessera::certify {

/// Witness that a claim is not vacuous: sizes for which all facts hold and no input is empty. None:
/// not found.
std::optional<SizeValues> witness_of(const Claim& claim);

/// Whether these are such sizes, of all symbols and no others.
Expected<Done> check_witness(const Claim& claim, const SizeValues& sizes);

}  // namespace tessera::certify
