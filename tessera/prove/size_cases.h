#pragma once

#include <array>
#include <atomic>
#include <optional>
#include <string_view>

#include "tessera/prove/align.h"
#include "tessera/prove/prepared.h"

namespace tessera::prove {

/// How the text of an assumption ends that sizes which meet by broadcasting are equal.
inline constexpr std::string_view kMeetByBroadcasting = ", which meet by broadcasting";

/// The models with sizes for which every broadcasting of two symbolic sizes is decided: both are
/// equal, or one is 1. All sizes are covered that both models accept; where that is more than one
/// of them asks for, an assumption of the case says so. As it is where no such sizes meet.
struct SizeCase {
  Aligned aligned = {};
  std::optional<std::array<Prepared, 2>> prepared = {};  // where this was needed to find the case
};
std::vector<SizeCase> size_cases(const Aligned& aligned, const std::atomic<bool>* stop);

/// Source and target made ready to be compared.
Expected<std::array<Prepared, 2>> prepared_pair(const Aligned& aligned,
                                                const std::atomic<bool>* stop,
                                                ScaleReading scales = ScaleReading::Rounded);

}  // namespace tessera::prove
