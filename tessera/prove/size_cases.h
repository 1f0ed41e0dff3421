#pragma once

#include <atomic>

#include "tessera/prove/align.h"

namespace tessera::prove {

/// The models with sizes for which every broadcasting of two symbolic sizes is decided: both are
/// equal, or one is 1. All sizes are covered that both models accept; where that is more than one
/// of them asks for, an assumption of the case says so. As it is where no such sizes meet.
std::vector<Aligned> size_cases(const Aligned& aligned, const std::atomic<bool>* stop);

}  // namespace tessera::prove
