#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "tessera/runtime/cuda/device.h"
#include "tessera/runtime/cuda/pinned_pool.h"

namespace tessera::runtime::cuda {

/// Host memory of an argument, and the device memory that it is copied to or from.
struct Transfer {
  Address device = 0;
  std::byte* host = nullptr;  // only read where it is sent
  std::size_t bytes = 0;
};

/// A piece of a transfer, in a ring of pinned memory.
struct Chunk {
  std::size_t transfer = 0;  // its number
  std::size_t offset = 0, bytes = 0;
  std::size_t at = 0;  // in the ring
};
using Wave = std::vector<Chunk>;  // chunks that are in the ring at once

/// Cuts transfers into chunks, and chunks into waves that lie in alternate halves of a ring.
std::vector<Wave> waves_of(std::span<const Transfer> transfers, std::size_t chunk_bytes,
                           std::size_t half_bytes);

/// Contiguous device memory.
struct DeviceRange {
  Address address = 0;
  std::size_t bytes = 0;
};

/// Copies between host memory and a GPU, for one session.
///
/// The GPU reads and writes pinned memory by itself. Pageable memory goes through a ring of pinned
/// memory: several threads copy its chunks, while earlier chunks are on the bus. Small arguments
/// are gathered in one transfer each way. Where no memory can be pinned, the driver copies pageable
/// memory, at the speed of one core.
class HostTransfers {
 public:
  /// Arguments of at most this size are small: a transfer of their own takes longer than a copy.
  static constexpr std::size_t kSmall = PinnedPool::kLeastBytes;

  /// `in` and `out` contain the small inputs and the small outputs. Device and pool must live on.
  /// Throws std::bad_alloc.
  HostTransfers(const Device& device, PinnedPool& pool, int threads, const DeviceRange& in,
                const DeviceRange& out);

  /// Submits the inputs to a stream, and returns when pageable memory has been read. Pinned memory
  /// must stay valid until the stream has passed.
  Expected<Done> send(const Stream& stream, std::span<const Transfer> inputs);
  /// Fetches the outputs when the stream comes to them, and waits for that. After a diagnostic, of
  /// `send` too, copies may be in flight.
  Expected<Done> fetch(const Stream& stream, std::span<const Transfer> outputs);

 private:
  /// Small arguments on the device, and their pinned copy.
  struct Box {
    Address address = 0;
    std::size_t bytes = 0;
    std::shared_ptr<std::byte> memory = {};
  };
  /// Pinned memory of two halves; events that a half has been sent, and that its chunks have
  /// arrived.
  struct Ring {
    std::shared_ptr<std::byte> memory = {};
    std::size_t bytes = 0;
    std::array<Event, 2> sent = {};
    std::array<std::vector<Event>, 2> fetched = {};
  };
  /// Transfers by how they are made.
  struct Sorted {
    std::vector<Transfer> small = {}, direct = {}, staged = {};
  };

  Box box_at(const DeviceRange& range) const;
  bool is_pinned(const Transfer& transfer) const;
  Sorted sorted(std::span<const Transfer> transfers) const;
  /// Memory for what is staged; without, it becomes direct.
  Expected<Done> make_ring(const Stream& stream, Sorted& sorted);
  Expected<Done> send_staged(const Stream& stream, std::span<const Transfer> inputs);
  Expected<Done> fetch_staged(const Stream& stream, std::span<const Transfer> outputs);
  Expected<Done> fetch_wave(const Stream& stream, std::span<const Transfer> outputs,
                            const Wave& wave, std::size_t half);
  Expected<Done> copy_out(std::span<const Transfer> outputs, const Wave& wave,
                          std::size_t half) const;

  const Device& device_;
  PinnedPool& pool_;
  int threads_ = 1;
  Box in_, out_;
  Ring ring_;
};

}  // namespace tessera::runtime::cuda
