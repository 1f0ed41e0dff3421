#include "tessera/codegen/image.h"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "tessera/codegen/kernel_object.h"
#include "tessera/codegen/llvm/link.h"
#include "tessera/support/parallel.h"
#include "tessera/tile/verify.h"

namespace tessera::codegen {
namespace {

/// Kernels with the same object code, by the first of them.
struct Group {
  std::string key;
  std::size_t first = 0;
  std::size_t count = 0;
};

}  // namespace

Expected<Image> build_image(std::span<const tile::Kernel> kernels, const machine::Machine& machine,
                            const ImageOptions& options) {
  const ObjectTarget target{.machine = machine, .options = options.kernel};
  TESSERA_TRY(const std::optional<runtime::ObjectCache> cache,
              runtime::ObjectCache::open_unless_empty(options.kernel.cache));
  std::vector<Group> groups;
  std::vector<std::size_t> group_of;
  std::map<std::string, std::size_t> known;
  for (const tile::Kernel& kernel : kernels) {
    TESSERA_TRY_DONE(tile::verify(kernel));
    std::string key = object_key(kernel, target);
    const auto [at, is_new] = known.try_emplace(key, groups.size());
    if (is_new) groups.push_back({.key = std::move(key), .first = group_of.size()});
    ++groups[at->second].count;
    group_of.push_back(at->second);
  }

  std::size_t done = 0;
  TESSERA_TRY(auto compiled,
              in_parallel<KernelObject>(
                  groups.size(),
                  [&](std::size_t i) {
                    return object_of(kernels[groups[i].first], target, groups[i].key,
                                     cache ? &*cache : nullptr);
                  },
                  {.threads = options.threads, .stop = options.stop, .done = [&](std::size_t i) {
                     done += groups[i].count;
                     if (options.progress) options.progress(done);
                   }}));
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
