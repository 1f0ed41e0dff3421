#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <vector>

#include "tessera/codegen/compile.h"
#include "tessera/support/bytes.h"

namespace tessera::codegen {

/// Machine code of all kernels of a program, in one piece: position-independent, without imports,
/// to be mapped read and execute at any page-aligned address.
struct Image {
  struct Entry {
    std::int64_t offset = 0;
    std::int64_t scratch_bytes = 0;
  };
  Bytes code = {};
  std::vector<Entry> entries = {};  // one per kernel
  std::int64_t from_cache = 0;      // number of kernels whose object code was found in the cache
};

/// Options of an image build: kernel options, number of compilation threads, progress and
/// cancellation.
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
