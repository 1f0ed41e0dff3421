#include "tessera/tune/gpu_query.h"

#include <fmt/format.h>

#include <sstream>

#include "tessera/tune/worker.h"

namespace tessera::tune {

Expected<runtime::cuda::ThisGpu> gpu_in_worker() {
  const auto ask = [] {
    const auto found = runtime::cuda::this_gpu();
    return found ? fmt::format("{} {}", found->architecture, found->multiprocessors)
                 : std::string();
  };
  std::istringstream in(run_in_worker(ask, {}).text);
  runtime::cuda::ThisGpu gpu;
  if (in >> gpu.architecture >> gpu.multiprocessors) return gpu;
  return Diagnostic{.id = "cuda-missing",
                    .message = "schedules for a GPU are measured on it, and there is none",
                    .help =
                        "tune on the computer that has the GPU; compile uses the store of "
                        "measurements (--store) anywhere"};
}

}  // namespace tessera::tune
