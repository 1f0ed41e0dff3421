#include "tessera/tile/gpu/shared_stack.h"

#include <algorithm>

#include "tessera/support/check.h"
#include "tessera/tile/gpu/panels.h"

namespace tessera::tile::gpu {
namespace {

std::int64_t in_lines(std::int64_t bytes) {
  constexpr std::int64_t kLine = 128;
  return (bytes + kLine - 1) / kLine * kLine;
}

}  // namespace

std::int64_t SharedStack::reserve(std::int64_t bytes) {
  TESSERA_CHECK(bytes % kSharedAlignment == 0, "{} bytes of shared memory", bytes);
  const std::int64_t offset = top_;
  top_ += bytes;
  peak_ = std::max(peak_, top_);
  return offset;
}

SharedStack::Scratch SharedStack::scratch(std::int64_t bytes) {
  const Scratch scratch{.offset = top_, .needs_barrier = is_scratch_used_};
  if (is_scratch_used_) barrier();
  is_scratch_used_ = true;
  peak_ = std::max(peak_, top_ + in_lines(bytes));
  return scratch;
}

std::int64_t SharedStack::fresh(std::int64_t bytes) {
  is_scratch_used_ = true;
  const std::int64_t offset = std::max(top_ + fresh_, peak_);
  fresh_ = offset + in_lines(bytes) - top_;
  peak_ = top_ + fresh_;
  return offset;
}

std::int64_t SharedStack::scratch_bytes() const {
  return shared_room(peak_ - top_);
}

}  // namespace tessera::tile::gpu
