#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace tessera::superopt {

/// Places to work at, as many as there are threads that need one at a time. What one remembers is
/// there for whoever takes it next.
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
  /// Puts a place back when the work is done.
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
