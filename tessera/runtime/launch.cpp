#include "tessera/runtime/launch.h"

#include <algorithm>

#include "tessera/runtime/threads.h"

namespace tessera::runtime {
namespace {

/// Work below which waking other threads costs more than it gains.
constexpr double kWorthThreads = 20e3;

}  // namespace

int run_kernel(const KernelCall& call, int threads) {
  if (call.programs == 0) return 0;
  if (threads == 1 || call.programs == 1 || call.work < kWorthThreads)
    return call.entry(call.launch, 0, call.programs, Threads::scratch(call.scratch_bytes));
  Threads& pool = process_threads();
  if (threads == 0) threads = pool.count();
  // Chunks: enough to balance the load, few enough that scheduling costs nothing.
  const std::int64_t chunk = std::max<std::int64_t>(1, call.programs / (threads * 8));
  return pool.run({.run = call.entry,
                   .context = call.launch,
                   .count = call.programs,
                   .chunk = chunk,
                   .scratch_bytes = call.scratch_bytes},
                  threads);
}

}  // namespace tessera::runtime
