#pragma once

#include <cstddef>
#include <cstdint>

/// A libcuda.so.1 without a GPU, for tests of what the host does: device memory is memory of the
/// computer, and nothing can be launched but copies and graphs of them. A process that is linked
/// with it has one GPU. Copies are executed as a GPU might: as late as it can, when somebody waits.
extern "C" {

/// State of the fake driver that tests inspect and change.
struct FakeCuda {
  int refuses_to_lock = 0;  // no page can be locked
  int is_eager = 0;         // copies are executed when they are submitted
  /// Counts.
  std::int64_t sent = 0, fetched = 0;  // transfers to the device, and from it
  std::int64_t sent_pageable = 0;      // of them, those that the driver has to stage
  std::int64_t fetched_pageable = 0;
  std::int64_t locked_bytes = 0;              // now
  std::int64_t device_bytes = 0;              // now
  std::int64_t locks = 0;                     // calls that locked pages
  std::int64_t unlocked_in_flight = 0;        // pages that a copy still needed: an error
  std::int64_t loaded = 0;                    // modules
  std::int64_t loaded_with_reallocation = 0;  // of them, those with setmaxnreg
  std::int64_t fails_after = -1;              // number of transfers until one fails; negative: none
};
FakeCuda* fake_cuda();
/// Locks pages as other code of the process would.
bool fake_cuda_lock(void* memory, std::size_t bytes);
void fake_cuda_unlock(void* memory);
}
