#include <sys/random.h>

#include <cstdint>

/// arc4random, by which LLVM names temporary files, exists from glibc 2.36 on. With our own, wheels
/// run from glibc 2.34 on. Hidden, so that no other library meets it.
extern "C" __attribute__((visibility("hidden"))) std::uint32_t arc4random() noexcept {
  std::uint32_t number = 0;
  if (::getentropy(&number, sizeof number) != 0) number = 0;  // names that exist are tried again
  return number;
}
