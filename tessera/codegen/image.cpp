#include "tessera/codegen/image.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "tessera/codegen/kernel_object.h"
#include "tessera/codegen/llvm/link.h"
#include "tessera/tile/verify.h"

namespace tessera::codegen {
namespace {

/// Kernels that have the same object code, by the first of them.
struct Group {
  std::string key;
  std::size_t first = 0;
  std::size_t count = 0;
};

/// Compiles groups, each once, until all are done, one fails, or it is told to stop. Groups are
/// begun in their order and what is begun is ended, so the first failure does not depend on luck.
class Compiler {
 public:
  Compiler(std::span<const tile::Kernel> kernels, const ObjectFor& what, const ObjectCache* cache,
           const ImageOptions& options, std::span<const Group> groups)
      : kernels_(kernels), what_(what), cache_(cache), options_(options), groups_(groups) {}

  Expected<std::vector<KernelObject>> run() {
    std::vector<std::thread> others;
    const auto threads = static_cast<std::size_t>(std::max(options_.threads, 1));
    while (others.size() + 1 < std::min(threads, groups_.size())) {
      others.emplace_back([this] { work(); });
    }
    work();
    for (std::thread& other : others) other.join();
    if (is_stopped()) return Diagnostic{.id = "stopped", .message = "the compilation was stopped"};
    std::vector<KernelObject> objects;
    for (auto& result : results_) {
      TESSERA_TRY(KernelObject object, *std::move(result));
      objects.push_back(std::move(object));
    }
    return objects;
  }

 private:
  bool is_stopped() const { return options_.stop != nullptr && options_.stop->load(); }

  void work() {
    while (!failed_ && !is_stopped()) {
      const std::size_t i = next_++;
      if (i >= groups_.size()) return;
      auto object = object_of(kernels_[groups_[i].first], what_, groups_[i].key, cache_);
      if (!object) failed_ = true;
      const std::lock_guard lock(mutex_);
      done_ += groups_[i].count;
      results_[i] = std::move(object);
      if (options_.progress) options_.progress(done_);
    }
  }

  std::span<const tile::Kernel> kernels_;
  const ObjectFor& what_;
  const ObjectCache* cache_;
  const ImageOptions& options_;
  std::span<const Group> groups_;
  std::vector<std::optional<Expected<KernelObject>>> results_ =
      std::vector<std::optional<Expected<KernelObject>>>(groups_.size());
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::size_t done_ = 0;
};

}  // namespace

Expected<Image> build_image(std::span<const tile::Kernel> kernels, const machine::Machine& machine,
                            const ImageOptions& options) {
  const ObjectFor what{.machine = machine, .options = options.kernel};
  std::optional<ObjectCache> cache;
  if (!options.kernel.cache.empty()) {
    TESSERA_TRY(cache, ObjectCache::open(options.kernel.cache));
  }
  std::vector<Group> groups;
  std::vector<std::size_t> group_of;
  std::map<std::string, std::size_t> known;
  for (const tile::Kernel& kernel : kernels) {
    TESSERA_TRY_DONE(tile::verify(kernel));
    std::string key = object_key(kernel, what);
    const auto [at, is_new] = known.try_emplace(key, groups.size());
    if (is_new) groups.push_back({.key = std::move(key), .first = group_of.size()});
    ++groups[at->second].count;
    group_of.push_back(at->second);
  }

  TESSERA_TRY(auto compiled,
              Compiler(kernels, what, cache ? &*cache : nullptr, options, groups).run());
  std::vector<ObjectBytes> objects;
  for (KernelObject& object : compiled) objects.push_back(std::move(object.bytes));
  TESSERA_TRY(const Image linked, link(objects, machine.architecture));
  Image image{.code = linked.code};
  for (const std::size_t group : group_of) {
    image.entries.push_back(linked.entries[group]);
    image.from_cache += compiled[group].from_cache ? 1 : 0;
  }
  return image;
}

}  // namespace tessera::codegen
