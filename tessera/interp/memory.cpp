#include "tessera/interp/memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/support/tensor.h"

namespace tessera::interp {
namespace {

/// Bookkeeping overhead of a result: its shape, its owners, heap padding.
constexpr std::int64_t kOverhead = 256;

}  // namespace

Bytes Memory::Block::freeze() && {
  struct Both {
    Bytes bytes;
    std::shared_ptr<void> charge;
  };
  auto both = std::make_shared<Both>(Both{std::move(buffer_).freeze(), std::move(charge_)});
  const std::span<const std::byte> view = both->bytes.view();
  return {std::move(both), view};
}

Expected<Memory::Block> Memory::allocate(std::span<const std::int64_t> shape, std::int64_t width) {
  const auto count = element_count(shape);
  const std::int64_t most = std::max<std::int64_t>(0, left() - kOverhead);
  if (!count || (width > 0 && *count > most / width)) {
    std::string sizes;
    for (const std::int64_t extent : shape)
      sizes += (sizes.empty() ? "" : "x") + std::to_string(extent);
    return Diagnostic{
        .id = "memory-limit",
        .message = fmt::format("a result of shape {} does not fit into memory", sizes),
        .note = fmt::format("{} of {} bytes are in use", used_->load(), limit_),
        .help = "allow more with --memory-limit"};
  }
  const std::int64_t bytes = *count * width;
  return Block(Buffer(static_cast<std::size_t>(bytes)), charge(bytes + kOverhead));
}

std::shared_ptr<void> Memory::charge(std::int64_t bytes) {
  *used_ += bytes;
  return {nullptr, [used = used_, bytes](void*) { *used -= bytes; }};
}

}  // namespace tessera::interp
