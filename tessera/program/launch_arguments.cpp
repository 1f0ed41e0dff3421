#include "tessera/program/launch_arguments.h"

#include <algorithm>

namespace tessera::program {

std::vector<tile::Argument> launch_arguments(const tile::Kernel& kernel,
                                             const runtime::step::Launch& launch,
                                             std::span<const std::uint64_t> words) {
  std::vector<tile::Argument> arguments;
  for (const tile::ValueId param : kernel.params()) {
    const tile::Type& type = kernel.type(param);
    const auto at = static_cast<std::uint32_t>(tile::words_of(arguments).size());
    auto* const data = reinterpret_cast<void*>(words[at]);
    const auto patch = std::ranges::find(launch.patches, at, &runtime::step::Launch::Patch::word);
    arguments.push_back(type.is_view()
                            ? tile::Argument::view(type.dtype, data, type.shape, type.strides)
                            : tile::Argument::pointer(type.dtype, data, patch->bytes));
  }
  return arguments;
}

}  // namespace tessera::program
