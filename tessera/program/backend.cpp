#include "tessera/program/backend.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tessera/codegen/gpu_image.h"
#include "tessera/tile/argument.h"

namespace tessera::program {
namespace {

std::vector<tile::Kernel> kernels_of(const Draft& draft) {
  std::vector<tile::Kernel> kernels;
  for (const auto& kernel : draft.kernels) kernels.push_back(*kernel);
  return kernels;
}

lower::GroupOptions group_options(const CompileOptions& options) {
  return {.exact = options.passes.exact,
          .contraction_dtype = options.contraction_dtype,
          .tf32 = options.tf32};
}

Lowerings cpu_lowerings(const CompileOptions& options) {
  machine::Machine machine = options.machine;
  machine.cores = std::max(1, options.threads);
  return {std::move(machine), group_options(options), options.schedules};
}

Lowerings cuda_lowerings(const CompileOptions& options) {
  lower::GroupOptions how = group_options(options);
  how.accept = [ptx = codegen::ptx_options(options.machine, image_options(options, 0).kernel)](
                   const tile::Kernel& kernel) { return codegen::check_ptx(kernel, ptx); };
  return {options.machine, how, options.schedules};
}

/// One image of machine code.
Expected<std::int64_t> add_cpu_code(const CompileOptions& options, Draft& draft) {
  const std::vector<tile::Kernel> kernels = kernels_of(draft);
  TESSERA_TRY(codegen::Image image, codegen::build_image(kernels, options.machine,
                                                         image_options(options, kernels.size())));
  runtime::Program& program = draft.program;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    program.kernels[k].entry = image.entries[k].offset;
    program.kernels[k].scratch_bytes = image.entries[k].scratch_bytes;
  }
  program.image = std::move(image.code);
  program.architecture = machine::to_string(options.machine.architecture);
  program.features = options.machine.features;
  return image.from_cache;
}

/// Texts of PTX.
Expected<std::int64_t> add_cuda_code(const CompileOptions& options, Draft& draft) {
  const std::vector<tile::Kernel> kernels = kernels_of(draft);
  TESSERA_TRY(codegen::GpuImage image,
              codegen::build_gpu_image(kernels, launch_facts(draft.program, draft.kernels),
                                       options.machine, image_options(options, kernels.size())));
  runtime::Program& program = draft.program;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    image.kernels[k].name = std::move(program.kernels[k].name);
    program.kernels[k] = std::move(image.kernels[k]);
  }
  program.image = std::move(image.text);
  program.architecture = options.machine.gpu->architecture;
  return image.from_cache;
}

constexpr Backend kCpuBackend{.lowerings = cpu_lowerings,
                              .add_code = add_cpu_code,
                              .checks_computed_indices = true,
                              .stores_contraction_dtype = false,
                              .recomputes_maps = false};
constexpr Backend kCudaBackend{.lowerings = cuda_lowerings,
                               .add_code = add_cuda_code,
                               .checks_computed_indices = false,
                               .stores_contraction_dtype = true,
                               .recomputes_maps = true};

}  // namespace

std::vector<codegen::LaunchFacts> launch_facts(
    const runtime::Program& program, std::span<const std::shared_ptr<const tile::Kernel>> kernels) {
  std::vector<codegen::LaunchFacts> facts(kernels.size(), {.alignment = runtime::kAlignment});
  for (const runtime::Step& step : program.steps) {
    const auto* launch = std::get_if<runtime::step::Launch>(&step);
    if (launch == nullptr) continue;
    codegen::LaunchFacts& of = facts[launch->kernel];
    const std::vector<int> positions = tile::word_positions(*kernels[launch->kernel]);
    std::vector<bool> constants(positions.size() - 1, false);
    for (const auto& patch : launch->patches) {
      of.alignment = std::gcd(std::gcd(of.alignment, patch.at.offset), patch.at.per_round);
      const auto found = std::ranges::find(positions, static_cast<int>(patch.word));
      if (found < positions.end() - 1)
        constants[static_cast<std::size_t>(found - positions.begin())] =
            program.values[patch.at.value].home == runtime::Value::Home::Weight;
    }
    if (of.constants.empty()) {
      of.constants = std::move(constants);
      continue;
    }
    for (std::size_t i = 0; i < constants.size(); ++i)
      of.constants[i] = of.constants[i] && constants[i];
  }
  return facts;
}

const Backend& backend_of(const machine::Machine& machine) {
  return machine.is_gpu() ? kCudaBackend : kCpuBackend;
}

codegen::ImageOptions image_options(const CompileOptions& options, std::size_t count) {
  const auto precision =
      options.passes.exact ? codegen::Precision::Exact : codegen::Precision::Fast;
  codegen::ImageOptions how{
      .kernel = {.precision = precision, .tf32 = options.tf32, .cache = options.cache},
      .threads = options.threads,
      .stop = options.stop};
  if (options.progress)
    how.progress = [told = options.progress, count](std::size_t done) { told(done, count); };
  return how;
}

}  // namespace tessera::program
