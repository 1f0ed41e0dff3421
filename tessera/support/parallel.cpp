#include "tessera/support/parallel.h"

#include <exception>
#include <system_error>
#include <thread>

namespace tessera {

void on_threads(std::size_t threads, const std::function<void()>& work) {
  std::mutex mutex;
  std::exception_ptr first;
  const auto guarded = [&] {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    try {
      if (threads > 1) others.reserve(threads - 1);
      while (others.size() + 1 < threads) others.emplace_back(guarded);
    } catch (const std::system_error&) {
    } catch (const std::bad_alloc&) {
    }
    guarded();
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace tessera
