#include "tessera/lower/target_traits.h"

#include <limits>

namespace tessera::lower {
namespace {

constexpr TargetTraits kCpu{
    .contractions = TargetTraits::ContractionTiling::Panels,
    .has_int8_dot = true,
    .uses_winograd = true,
    .uses_direct_conv = true,
    .has_thread_blocks = false,
    .longest_row = 1 << 18,
    .most_programs_across = std::numeric_limits<std::int64_t>::max(),
};

constexpr TargetTraits kCuda{
    .contractions = TargetTraits::ContractionTiling::ThreadBlocks,
    .has_int8_dot = false,
    .uses_winograd = false,
    .uses_direct_conv = false,
    .has_thread_blocks = true,
    .longest_row = 1 << 17,  // what exceeds the registers of a block goes through shared memory
    .most_programs_across = 65535,
};

}  // namespace

const TargetTraits& traits_of(const machine::Machine& machine) {
  return machine.is_gpu() ? kCuda : kCpu;
}

}  // namespace tessera::lower
