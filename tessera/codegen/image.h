#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <vector>

#include "tessera/codegen/compile.h"
#include "tessera/support/bytes.h"

namespace tessera::codegen {

/// Kernels as one piece of machine code: position-independent, without imports, to be mapped
/// wherever there is room, read and execute; its start aligned to a page.
struct Image {
  struct Entry {
    std::int64_t offset = 0;
    std::int64_t scratch_bytes = 0;
  };
  Bytes code = {};
  std::vector<Entry> entries = {};  // one per kernel
  std::int64_t from_cache = 0;      // kernels whose object code was there already
};

struct ImageOptions {
  Options kernel = {};
  int threads = 1;
  std::function<void(std::size_t done)> progress = {};
  const std::atomic<bool>* stop = nullptr;
};

/// Compiles all kernels for a machine (which need not be this one) and links them.
Expected<Image> build_image(std::span<const tile::Kernel> kernels, const machine::Machine& machine,
                            const ImageOptions& options = {});

}  // namespace tessera::codegen
