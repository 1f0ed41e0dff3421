#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tessera/codegen/ptx/ptx.h"
#include "tessera/runtime/cuda/device.h"
#include "tessera/support/stopwatch.h"
#include "tessera/tile/argument.h"

namespace tessera {

/// A kernel on a GPU.
struct Loaded {
  codegen::PtxKernel ptx;
  runtime::cuda::Function function;
  double ptx_ms = 0, compile_ms = 0;  // to write PTX; with what the driver makes of it
};

/// The name that machine code has in a folder of it: by what it was made of.
inline std::string cubin_name(const std::string& ptx) {
  return fmt::format("{:016x}.cubin", std::hash<std::string>{}(ptx));
}

/// Options of code as models get it: persistent blocks, and TMA tensor maps.
inline codegen::PtxOptions launched(codegen::PtxOptions options) {
  options.persistent = options.maps = true;
  return options;
}

/// Of the plainest code for the same: a block for each program, all threads alike, little ahead,
/// and functions as exact as they can be.
inline codegen::PtxOptions plain(const codegen::PtxOptions& options) {
  return {.target = options.target,
          .tf32 = options.tf32,
          .stages = 2,
          .warp_specialization = false,
          .prefetched_rows = 0,
          .coarsening = 1};
}

/// `cubins`: a folder with machine code of some kernels, which need not be assembled.
inline Expected<Loaded> load(const runtime::cuda::Device& device, const tile::Kernel& kernel,
                             const codegen::PtxOptions& options, const std::string& cubins = {}) {
  const Stopwatch watch;
  Loaded loaded;
  TESSERA_TRY(loaded.ptx, codegen::ptx_of(kernel, options));
  loaded.ptx_ms = watch.seconds() * 1e3;
  const codegen::PtxKernel& ptx = loaded.ptx;
  std::string code = ptx.text;
  if (std::ifstream file(cubins + "/" + cubin_name(code)); !cubins.empty() && file)
    code.assign(std::istreambuf_iterator<char>(file), {});
  TESSERA_TRY(loaded.function, device.load({code, ptx.entry, ptx.threads, ptx.shared_bytes,
                                            ptx.programs, ptx.persistent, ptx.maps}));
  loaded.compile_ms = watch.seconds() * 1e3;
  return loaded;
}

/// Arguments in its memory.
struct There {
  std::vector<runtime::cuda::Memory> memory;
  std::vector<std::uint64_t> words;
};

inline Expected<There> put(const runtime::cuda::Device& device,
                           std::vector<tile::Argument> arguments, bool upload) {
  There there;
  for (tile::Argument& argument : arguments) {
    if (argument.type.is_number()) continue;
    TESSERA_TRY(runtime::cuda::Memory memory, device.allocate(argument.bytes));
    if (upload)
      TESSERA_TRY_DONE(memory.write({argument.data, static_cast<std::size_t>(argument.bytes)}));
    argument.data = reinterpret_cast<std::byte*>(memory.address());
    there.memory.push_back(std::move(memory));
  }
  there.words = tile::words_of(arguments);
  return there;
}

}  // namespace tessera
