#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace tessera::superopt {

/// Pool of workspaces (such as memo tables) for worker threads: grows to the number of concurrent
/// users; a workspace keeps its content for the next user.
template <class T>
class WorkspacePool {
 public:
  explicit WorkspacePool(std::function<std::unique_ptr<T>()> make) : make_(std::move(make)) {}

  template <class Work>
  auto with(Work work) {
    std::unique_ptr<T> workspace = acquire();
    const ReturnGuard guard{*this, workspace};
    return work(*workspace);
  }

 private:
  /// Returns a workspace to the pool on destruction.
  struct ReturnGuard {
    WorkspacePool& pool;
    std::unique_ptr<T>& workspace;
    ~ReturnGuard() {
      const std::lock_guard lock(pool.mutex_);
      pool.free_.push_back(std::move(workspace));
    }
  };
  std::unique_ptr<T> acquire() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return make_();
    std::unique_ptr<T> workspace = std::move(free_.back());
    free_.pop_back();
    return workspace;
  }

  std::function<std::unique_ptr<T>()> make_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> free_;
};

}  // namespace tessera::superopt
