#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace tessera::superopt {

/// Pool of workspaces (such as memo tables) for worker threads: grows to the number of concurrent
/// users; a workspace keeps its content for the next user.
template <class T>
class Pool {
 public:
  explicit Pool(std::function<std::unique_ptr<T>()> make) : make_(std::move(make)) {}

  template <class Work>
  auto with(Work work) {
    std::unique_ptr<T> place = taken();
    const Back back{*this, place};
    return work(*place);
  }

 private:
  /// Returns a workspace to the pool on destruction.
  struct Back {
    Pool& pool;
    std::unique_ptr<T>& place;
    ~Back() {
      const std::lock_guard lock(pool.mutex_);
      pool.free_.push_back(std::move(place));
    }
  };
  std::unique_ptr<T> taken() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return make_();
    std::unique_ptr<T> place = std::move(free_.back());
    free_.pop_back();
    return place;
  }

  std::function<std::unique_ptr<T>()> make_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> free_;
};

}  // namespace tessera::superopt
