#include "tessera/codegen/gpu_image.h"

#include <fmt/format.h>

#include <optional>

#include "tessera/codegen/kernel_object.h"
#include "tessera/runtime/plan.h"
#include "tessera/support/parallel.h"
#include "tessera/tile/fingerprint.h"
#include "tessera/tile/gpu/schedule.h"

namespace tessera::codegen {
namespace {

/// Cache entry of a kernel and its PTX: a program of nothing else.
std::string packed(const runtime::Program::Kernel& kernel, const std::string& text) {
  runtime::Program program;
  program.kernels = {kernel};
  program.texts = {text};
  return runtime::encode_plan(program);
}

struct Made {
  runtime::Program::Kernel kernel;
  std::string text;
  bool from_cache = false;
};

std::optional<Made> unpacked(std::span<const std::byte> bytes) {
  auto program = runtime::decode_plan(bytes);
  if (!program || program->kernels.size() != 1 || program->texts.size() != 1) return std::nullopt;
  return Made{std::move(program->kernels[0]), std::move(program->texts[0]), true};
}

Expected<Made> made(const tile::Kernel& kernel, const PtxOptions& ptx,
                    const runtime::ObjectCache* cache) {
  const std::string key =
      fmt::format("{}\n{}\n{}", generator_version(), key_of(ptx), tile::fingerprint(kernel));
  if (cache != nullptr)
    if (const auto found = cache->find(key))
      if (std::optional<Made> made = unpacked(*found)) return *std::move(made);
  tile::Kernel named = kernel;
  named.name = "kernel";  // kGpuEntry is derived from it
  TESSERA_TRY(PtxKernel made, ptx_of(named, ptx));
  TESSERA_CHECK(made.entry == runtime::kGpuEntry, "a kernel called {}", made.entry);
  runtime::Program::Kernel launched{.scratch_bytes = made.shared_bytes,
                                    .threads = made.threads,
                                    .programs = made.programs,
                                    .persistent = made.persistent,
                                    .maps = std::move(made.maps),
                                    .is_whole = made.is_whole};
  if (cache != nullptr) {
    const std::string bytes = packed(launched, made.text);
    cache->store(key, std::as_bytes(std::span(bytes)));
  }
  return Made{std::move(launched), std::move(made.text)};
}

}  // namespace

PtxOptions ptx_options(const machine::Machine& gpu, const Options& options) {
  return {.target = gpu.gpu->architecture == "sm_90a" ? PtxTarget::Sm90a : PtxTarget::Sm80,
          .precision = options.precision,
          .tf32 = options.tf32,
          .more_stages = 8,
          .persistent = true,
          .maps = true};
}

Expected<Done> check_ptx(const tile::Kernel& kernel, const PtxOptions& options) {
  TESSERA_TRY_DONE(schedule_for_ptx(kernel, options));
  return Done{};
}

PtxOptions program_ptx_options(PtxOptions options, const LaunchFacts& launches) {
  options.alignment = launches.alignment;
  options.programmatic_launch = options.target == PtxTarget::Sm90a;
  options.constants = launches.constants;
  return options;
}

Expected<GpuImage> build_gpu_image(std::span<const tile::Kernel> kernels,
                                   std::span<const LaunchFacts> launches,
                                   const machine::Machine& gpu, const ImageOptions& options) {
  TESSERA_TRY(const std::optional<runtime::ObjectCache> cache,
              runtime::ObjectCache::open_unless_empty(options.kernel.cache));
  const PtxOptions ptx = ptx_options(gpu, options.kernel);
  std::size_t done = 0;
  TESSERA_TRY(const auto all,
              in_parallel<Made>(
                  kernels.size(),
                  [&](std::size_t i) {
                    return made(kernels[i], program_ptx_options(ptx, launches[i]),
                                cache ? &*cache : nullptr);
                  },
                  {.threads = options.threads, .stop = options.stop, .done = [&](std::size_t) {
                     if (options.progress) options.progress(++done);
                   }}));
  GpuImage image;
  std::string texts;
  for (const Made& one : all) {
    image.kernels.push_back(one.kernel);
    image.kernels.back().entry = static_cast<std::int64_t>(texts.size());
    image.from_cache += one.from_cache ? 1 : 0;
    texts += one.text;
    texts += '\0';
  }
  image.text = Bytes::copy(std::as_bytes(std::span(texts)));
  return image;
}

}  // namespace tessera::codegen
