#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "tessera/driver/compile_model.h"
#include "tessera/runtime/cuda/session.h"

namespace tessera {

/// Sets the target machine and the precision of a compilation by their names: `cpu` is this
/// computer, `cuda` its GPU or, without one, the default architecture, `cuda:sm_80` and
/// `cuda:sm_90a` any GPU of the kind; f32, tf32, f16, bf16 or auto. Other names, and precisions
/// that the target does not have, are diagnostics. `find_gpu` returns the GPU of this computer.
using FindGpu = std::function<std::optional<runtime::cuda::ThisGpu>()>;
Expected<Done> select_target(std::string_view target, std::string_view precision,
                             CompileModelOptions& options,
                             const FindGpu& find_gpu = runtime::cuda::this_gpu);

}  // namespace tessera
