#include "tessera/driver/target_selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

namespace tessera {
namespace {

std::optional<machine::Machine> machine_of(std::string_view target, const FindGpu& find_gpu) {
  if (target == "cpu") return machine::host();
  if (target == "cuda:sm_80" || target == "cuda:sm_90a")
    return machine::cuda(std::string(target.substr(target.find(':') + 1)));
  if (target != "cuda") return std::nullopt;
  const auto found = find_gpu();
  if (!found) return machine::cuda();
  machine::Machine gpu = machine::cuda(found->architecture);
  gpu.cores = gpu.gpu->multiprocessors = found->multiprocessors;
  return gpu;
}

}  // namespace

Expected<Done> select_target(std::string_view target, std::string_view precision,
                             CompileModelOptions& options, const FindGpu& find_gpu) {
  struct Named {
    std::string_view name;
    Precision precision;
  };
  static constexpr std::array<Named, 5> kPrecisions = {{{"f32", Precision::F32},
                                                        {"tf32", Precision::F32},
                                                        {"f16", Precision::F16},
                                                        {"bf16", Precision::Bf16},
                                                        {"auto", Precision::Auto}}};
  auto machine = machine_of(target, find_gpu);
  if (!machine)
    return Diagnostic{.id = "compile-target",
                      .message = fmt::format("'{}' is not a target", target),
                      .note = "targets are cpu, cuda, cuda:sm_80 and cuda:sm_90a"};
  const auto* const named = std::ranges::find(kPrecisions, precision, &Named::name);
  if (named == kPrecisions.end())
    return Diagnostic{.id = "compile-precision",
                      .message = fmt::format("'{}' is not a precision", precision),
                      .note = "precisions are f32, tf32, f16, bf16 and auto"};
  if ((precision == "f16" || precision == "tf32") && target == "cpu")
    return Diagnostic{.id = "cli-precision",
                      .message = fmt::format("--precision {} is for GPUs", precision),
                      .help = "say bf16, or --target cuda"};
  options.code.machine = *std::move(machine);
  options.code.tf32 = precision == "tf32";
  options.precision = named->precision;
  return Done{};
}

}  // namespace tessera
