#include "tessera/codegen/gpu_image.h"

#include <fmt/format.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <array>
#include <cstring>
#include <optional>

#include "tessera/codegen/kernel_object.h"
#include "tessera/runtime/program.h"
#include "tessera/support/parallel.h"
#include "tessera/tile/fingerprint.h"

namespace tessera::codegen {
namespace {

/// The text after the numbers that it is launched by, as the cache keeps them.
using Numbers = std::array<std::int32_t, 3>;

std::vector<std::byte> packed(const PtxKernel& ptx) {
  const Numbers numbers = {ptx.threads, ptx.shared_bytes, ptx.programs};
  std::vector<std::byte> bytes(sizeof numbers + ptx.text.size());
  std::memcpy(bytes.data(), numbers.data(), sizeof numbers);
  std::memcpy(bytes.data() + sizeof numbers, ptx.text.data(), ptx.text.size());
  return bytes;
}

PtxKernel unpacked(std::span<const std::byte> bytes) {
  Numbers numbers = {};
  std::memcpy(numbers.data(), bytes.data(), sizeof numbers);
  const auto text = bytes.subspan(sizeof numbers);
  return {.text = std::string(reinterpret_cast<const char*>(text.data()), text.size()),
          .entry = {},
          .threads = numbers[0],
          .words = 0,
          .shared_bytes = numbers[1],
          .programs = numbers[2]};
}

struct Made {
  PtxKernel ptx;
  bool from_cache = false;
};

Expected<Made> made(const tile::Kernel& kernel, const PtxOptions& ptx,
                    const runtime::ObjectCache* cache) {
  TESSERA_CHECK(!ptx.loops && !ptx.maps, "an image has a block for each program");
  const std::string key = fmt::format(
      "{}\nptx {} precision {} tf32 {} stages {} to {} bytes {}\n{}", generator_version(),
      static_cast<int>(ptx.target), static_cast<int>(ptx.precision), ptx.tf32, ptx.stages,
      ptx.more_stages, ptx.bytes_per_thread, tile::fingerprint(kernel));
  if (cache != nullptr)
    if (const auto found = cache->find(key); found && found->size() > sizeof(Numbers))
      return Made{unpacked(*found), true};
  tile::Kernel named = kernel;
  named.name = "kernel";  // kGpuEntry is made of it
  TESSERA_TRY(PtxKernel text, ptx_of(named, ptx));
  TESSERA_CHECK(text.entry == runtime::kGpuEntry, "a kernel called {}", text.entry);
  if (cache != nullptr) cache->store(key, packed(text));
  return Made{std::move(text), false};
}

}  // namespace

PtxOptions ptx_options(const machine::Machine& gpu, Precision precision) {
  return {.target = gpu.has("sm_90a") ? PtxTarget::Sm90a : PtxTarget::Sm80,
          .precision = precision,
          .tf32 = gpu.has("tf32"),
          .more_stages = 8};
}

Expected<Done> check_ptx(const tile::Kernel& kernel, const PtxOptions& options) {
  llvm::LLVMContext context;
  TESSERA_TRY_DONE(ptx_module_of(kernel, context, options));
  return Done{};
}

Expected<GpuImage> build_gpu_image(std::span<const tile::Kernel> kernels,
                                   const machine::Machine& gpu, const ImageOptions& options) {
  TESSERA_TRY(const std::optional<runtime::ObjectCache> cache,
              runtime::ObjectCache::open_unless_empty(options.kernel.cache));
  const PtxOptions ptx = ptx_options(gpu, options.kernel.precision);
  std::size_t done = 0;
  TESSERA_TRY(const auto all,
              in_parallel<Made>(
                  kernels.size(),
                  [&](std::size_t i) { return made(kernels[i], ptx, cache ? &*cache : nullptr); },
                  {.threads = options.threads, .stop = options.stop, .done = [&](std::size_t) {
                     if (options.progress) options.progress(++done);
                   }}));
  GpuImage image;
  std::string texts;
  for (const Made& one : all) {
    image.entries.push_back({.offset = static_cast<std::int64_t>(texts.size()),
                             .threads = one.ptx.threads,
                             .shared_bytes = one.ptx.shared_bytes,
                             .programs = one.ptx.programs});
    image.from_cache += one.from_cache ? 1 : 0;
    texts += one.ptx.text;
    texts += '\0';
  }
  image.text = Bytes::copy(std::as_bytes(std::span(texts)));
  return image;
}

}  // namespace tessera::codegen
