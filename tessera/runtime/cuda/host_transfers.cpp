#include "tessera/runtime/cuda/host_transfers.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>

#include "tessera/runtime/threads.h"

namespace tessera::runtime::cuda {
namespace {

/// Alignment of chunks in the ring.
constexpr std::size_t kApart = 256;
/// Half of the ring: long enough that threads meet rarely, short enough to stay in caches.
constexpr std::size_t kHalfBytes = std::size_t{4} << 20;
/// Bytes of a chunk: a transfer has a fixed cost, and the last chunk is copied by one thread.
constexpr std::size_t kLeastChunk = std::size_t{128} << 10, kMostChunk = std::size_t{512} << 10;
/// Bytes that a thread copies at once from a chunk that has arrived.
constexpr std::size_t kPiece = std::size_t{128} << 10;
/// More threads do not copy faster.
constexpr int kMostThreads = 8;

std::size_t rounded_up(std::size_t bytes) {
  return (bytes + kApart - 1) / kApart * kApart;
}

std::size_t total_of(std::span<const Transfer> transfers) {
  std::size_t total = 0;
  for (const Transfer& transfer : transfers) total += rounded_up(transfer.bytes);
  return total;
}

std::size_t chunk_bytes(std::size_t total) {
  return std::clamp(rounded_up(total / kMostThreads), kLeastChunk, kMostChunk);
}

/// Calls work(i) for all i below `count`, on several threads; a diagnostic ends the loop.
template <class Work>
Expected<Done> on_threads(std::size_t count, int threads, const Work& work) {
  struct Loop {
    const Work& work;
    std::mutex mutex = {};
    std::optional<Diagnostic> problem = {};
  };
  Loop loop{work};
  const Threads::Work body{
      .run =
          [](const void* context, std::int64_t first, std::int64_t last, std::byte*) {
            auto& shared = *const_cast<Loop*>(static_cast<const Loop*>(context));
            for (std::int64_t i = first; i < last; ++i) {
              const Expected<Done> done = shared.work(static_cast<std::size_t>(i));
              if (done) continue;
              const std::lock_guard lock(shared.mutex);
              shared.problem = done.error();
              return 1;
            }
            return 0;
          },
      .context = &loop,
      .count = static_cast<std::int64_t>(count)};
  const int failed = threads <= 1 ? body.run(body.context, 0, body.count, nullptr)
                                  : process_threads().run(body, threads);
  if (failed == 0) return Done{};
  return *std::move(loop.problem);
}

}  // namespace

std::vector<Wave> waves_of(std::span<const Transfer> transfers, std::size_t chunk_bytes,
                           std::size_t half_bytes) {
  std::vector<Wave> waves;
  std::size_t used = half_bytes;  // of the current half
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    for (std::size_t offset = 0; offset < transfers[i].bytes;) {
      if (used >= half_bytes) {
        waves.emplace_back();
        used = 0;
      }
      const std::size_t bytes =
          std::min({chunk_bytes, transfers[i].bytes - offset, half_bytes - used});
      const std::size_t half = (waves.size() - 1) % 2;
      waves.back().push_back(
          {.transfer = i, .offset = offset, .bytes = bytes, .at = half * half_bytes + used});
      offset += bytes;
      used += rounded_up(bytes);
    }
  }
  return waves;
}

bool HostTransfers::is_pinned(const Transfer& transfer) const {
  return pool_.contains(transfer.host, transfer.bytes) ||
         device_.knows(transfer.host, transfer.bytes);
}

HostTransfers::Sorted HostTransfers::sorted(std::span<const Transfer> transfers) const {
  Sorted sorted;
  for (const Transfer& transfer : transfers) {
    if (transfer.bytes <= kSmall)
      sorted.small.push_back(transfer);
    else
      (is_pinned(transfer) ? sorted.direct : sorted.staged).push_back(transfer);
  }
  return sorted;
}

Expected<Done> HostTransfers::send(const Stream& stream, std::span<const Transfer> inputs) {
  Sorted sorted = this->sorted(inputs);
  TESSERA_TRY_DONE(make_ring(stream, sorted));
  for (const Transfer& input : sorted.direct)
    TESSERA_TRY_DONE(stream.send(input.device, {input.host, input.bytes}));
  for (const Transfer& input : sorted.small)
    if (input.bytes > 0)
      std::memcpy(in_.memory.get() + (input.device - in_.address), input.host, input.bytes);
  TESSERA_TRY_DONE(stream.send(in_.address, {in_.memory.get(), in_.bytes}));
  return send_staged(stream, sorted.staged);
}

Expected<Done> HostTransfers::send_staged(const Stream& stream, std::span<const Transfer> inputs) {
  if (inputs.empty()) return Done{};
  const std::vector<Wave> waves = waves_of(inputs, chunk_bytes(total_of(inputs)), kHalfBytes);
  std::optional<Threads::Burst> burst;
  if (threads_ > 1) burst.emplace(process_threads());
  for (std::size_t i = 0; i < waves.size(); ++i) {
    Event& sent = ring_.sent[i % 2];
    if (i >= 2) TESSERA_TRY_DONE(sent.wait());
    TESSERA_TRY_DONE(on_threads(waves[i].size(), threads_, [&](std::size_t n) -> Expected<Done> {
      const Chunk& chunk = waves[i][n];
      const Transfer& input = inputs[chunk.transfer];
      std::byte* const pinned = ring_.memory.get() + chunk.at;
      std::memcpy(pinned, input.host + chunk.offset, chunk.bytes);
      TESSERA_TRY_DONE(device_.use());
      return stream.send(input.device + chunk.offset, {pinned, chunk.bytes});
    }));
    TESSERA_TRY_DONE(sent.record(stream.get()));
  }
  return Done{};
}

Expected<Done> HostTransfers::fetch(const Stream& stream, std::span<const Transfer> outputs) {
  Sorted sorted = this->sorted(outputs);
  TESSERA_TRY_DONE(make_ring(stream, sorted));
  TESSERA_TRY_DONE(stream.fetch({out_.memory.get(), out_.bytes}, out_.address));
  for (const Transfer& output : sorted.direct)
    TESSERA_TRY_DONE(stream.fetch({output.host, output.bytes}, output.device));
  TESSERA_TRY_DONE(fetch_staged(stream, sorted.staged));
  TESSERA_TRY_DONE(stream.wait());
  for (const Transfer& output : sorted.small)
    if (output.bytes > 0)
      std::memcpy(output.host, out_.memory.get() + (output.device - out_.address), output.bytes);
  return Done{};
}

Expected<Done> HostTransfers::fetch_staged(const Stream& stream,
                                           std::span<const Transfer> outputs) {
  if (outputs.empty()) return Done{};
  const std::vector<Wave> waves = waves_of(outputs, chunk_bytes(total_of(outputs)), kHalfBytes);
  std::optional<Threads::Burst> burst;
  if (threads_ > 1) burst.emplace(process_threads());
  for (std::size_t i = 0; i < std::min<std::size_t>(waves.size(), 2); ++i)
    TESSERA_TRY_DONE(fetch_wave(stream, outputs, waves[i], i));
  for (std::size_t i = 0; i < waves.size(); ++i) {
    TESSERA_TRY_DONE(copy_out(outputs, waves[i], i % 2));
    if (i + 2 < waves.size()) TESSERA_TRY_DONE(fetch_wave(stream, outputs, waves[i + 2], i % 2));
  }
  return Done{};
}

Expected<Done> HostTransfers::fetch_wave(const Stream& stream, std::span<const Transfer> outputs,
                                         const Wave& wave, std::size_t half) {
  std::vector<Event>& fetched = ring_.fetched[half];
  for (std::size_t i = 0; i < wave.size(); ++i) {
    const Chunk& chunk = wave[i];
    TESSERA_TRY_DONE(stream.fetch({ring_.memory.get() + chunk.at, chunk.bytes},
                                  outputs[chunk.transfer].device + chunk.offset));
    if (i == fetched.size()) {
      TESSERA_TRY(Event event, device_.event(/*is_timed=*/false));
      fetched.push_back(std::move(event));
    }
    TESSERA_TRY_DONE(fetched[i].record(stream.get()));
  }
  return Done{};
}

Expected<Done> HostTransfers::copy_out(std::span<const Transfer> outputs, const Wave& wave,
                                       std::size_t half) const {
  constexpr std::size_t kPieces = kMostChunk / kPiece;  // of a chunk
  return on_threads(wave.size() * kPieces, threads_, [&](std::size_t n) -> Expected<Done> {
    const Chunk& chunk = wave[n / kPieces];
    const std::size_t first = n % kPieces * kPiece;
    if (first >= chunk.bytes) return Done{};
    TESSERA_TRY_DONE(device_.use());
    TESSERA_TRY_DONE(ring_.fetched[half][n / kPieces].wait());
    std::memcpy(outputs[chunk.transfer].host + chunk.offset + first,
                ring_.memory.get() + chunk.at + first, std::min(kPiece, chunk.bytes - first));
    return Done{};
  });
}

Expected<Done> HostTransfers::make_ring(const Stream& stream, Sorted& sorted) {
  if (sorted.staged.empty()) return Done{};
  const std::size_t total = total_of(sorted.staged);
  const std::size_t bytes = total <= kHalfBytes ? total : 2 * kHalfBytes;
  if (ring_.bytes < bytes) {
    if (ring_.memory) TESSERA_TRY_DONE(stream.wait());  // inputs may still be read from it
    ring_.memory = pool_.allocate(bytes);
    ring_.bytes = bytes;
    for (Event& event : ring_.sent) {
      TESSERA_TRY(event, device_.event(/*is_timed=*/false));
    }
  }
  if (pool_.contains(ring_.memory.get(), bytes)) return Done{};
  // The driver copies what cannot be staged.
  sorted.direct.insert(sorted.direct.end(), sorted.staged.begin(), sorted.staged.end());
  sorted.staged.clear();
  return Done{};
}

HostTransfers::HostTransfers(const Device& device, PinnedPool& pool, int threads,
                             const DeviceRange& in, const DeviceRange& out)
    : device_(device),
      pool_(pool),
      threads_(std::min(threads == 0 ? process_threads().count() : threads, kMostThreads)),
      in_(box_at(in)),
      out_(box_at(out)) {}

HostTransfers::Box HostTransfers::box_at(const DeviceRange& range) const {
  // The pool locks no less.
  return {.address = range.address,
          .bytes = range.bytes,
          .memory = range.bytes == 0 ? nullptr : pool_.allocate(std::max(range.bytes, kSmall))};
}

}  // namespace tessera::runtime::cuda
