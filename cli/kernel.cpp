#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/context.h"
#include "cli/json.h"
#include "cli/store_flags.h"
#include "examples/catalog.h"
#include "tessera/codegen/compile.h"
#include "tessera/codegen/gpu_image.h"
#include "tessera/codegen/ptx/gpu_form.h"
#include "tessera/driver/gpu_kernel.h"
#include "tessera/driver/kernel.h"
#include "tessera/driver/target_selection.h"
#include "tessera/driver/tune_kernel.h"
#include "tessera/lower/lower.h"
#include "tessera/lower/short_form.h"
#include "tessera/machine/machine.h"
#include "tessera/support/file.h"
#include "tessera/support/stopwatch.h"
#include "tessera/tile/interp.h"
#include "tessera/tile/schedule.h"
#include "tessera/tile/text.h"

namespace tessera::cli {
namespace {

struct KernelOptions {
  std::string kernel, form = "T", machine = "host", grid, precision = "exact", cache, definition,
                      schedule, target = "cpu";
  std::vector<std::string> arguments;
  std::uint64_t seed = 1;
  double tolerance = -1;
  int threads = 1;
  bool checked = false, tf32 = false;
  StoreFlags store;

  bool is_for_gpu() const { return target != "cpu"; }
};

/// Kernel with its default launch, if it is an example.
struct KernelSource {
  tile::Kernel kernel;
  std::vector<std::string> arguments = {};
  tile::Grid grid = {1, 1, 1};
  std::string schedule = {}, loops = {};  // of a definition
  bool is_tuned = false;                  // has constants that a store has chosen
};

/// Kernel lowered from a definition on the tensors of --arg, by its schedule.
Expected<KernelSource> lowered_kernel(const KernelOptions& options) {
  std::vector<Operand> inputs;
  for (const std::string& text : options.arguments) {
    TESSERA_TRY(Operand input, lower::parse_tensor(text));
    inputs.push_back(std::move(input));
  }
  TESSERA_TRY(const Definition definition, lower::parse_short(options.definition, inputs));
  TESSERA_TRY(tile::Stages stages, tile::then({}, definition, inputs));
  if (stages.size() != 1)
    return Diagnostic{.id = "kernel-definition",
                      .message = fmt::format("the definition has {} results", stages.size()),
                      .note = "a kernel computes one"};
  std::optional<tile::Schedule> schedule;
  if (options.schedule.empty()) {
    TESSERA_TRY(schedule, lower::default_schedule(std::move(stages), machine::host()));
  } else {
    TESSERA_TRY(const std::string text, read_text(options.schedule));
    TESSERA_TRY(const auto steps, tile::parse_schedule(text, options.schedule));
    TESSERA_TRY(const tile::Schedule start, tile::Schedule::of(std::move(stages)));
    TESSERA_TRY(schedule, start.apply(steps));
  }
  TESSERA_TRY(std::vector<lower::Lowered> kernels, lower::lower(*schedule));
  KernelSource source{.kernel = std::move(kernels[0].kernel), .grid = kernels[0].grid};
  // Pointers carry no element count; one that is not viewed has at most one element.
  for (const tile::ValueId param : source.kernel.params())
    if (source.kernel.type(param).is_pointer())
      source.arguments.push_back(fmt::format("{}={}[1]", source.kernel.values[param].name,
                                             to_string(source.kernel.type(param).dtype)));
  source.schedule = tile::to_text(*schedule);
  source.loops = tile::loops_text(*schedule);
  return source;
}

/// Constants of a kernel that a store has tuned for the CPU, or for the GPU of this computer.
Expected<std::vector<tile::Constant>> stored_constants(const KernelOptions& options,
                                                       const KernelText& text,
                                                       const std::filesystem::path& store) {
  if (!options.is_for_gpu())
    return tuned_constants(text, machine::host(),
                           options.threads > 0 ? options.threads : machine::host().cores, store);
  CompileModelOptions selected;
  TESSERA_TRY_DONE(select_target(options.target, "f32", selected));
  return tuned_constants(text, selected.code.machine, 1, store);
}

/// Finds the kernel; its constants are those of the arguments, or of a store that has tuned them.
Expected<KernelSource> find_kernel(const KernelOptions& options,
                                   const std::filesystem::path& store = {}) {
  if (!options.definition.empty()) {
    if (!options.kernel.empty())
      return Diagnostic{.id = "kernel-definition",
                        .message = "both a kernel and a definition are given",
                        .note = "give one of them"};
    if (!options.grid.empty())
      return Diagnostic{.id = "kernel-definition",
                        .message = "the grid of a definition follows from its schedule"};
    return lowered_kernel(options);
  }
  if (!options.schedule.empty() || options.form == "loops")
    return Diagnostic{.id = "kernel-definition",
                      .message = "a schedule belongs to a definition",
                      .help = "give one with --definition 'c[i,j] = sum(k) a[i,k] * b[k,j]'"};
  KernelSource source;
  if (const auto* example = tile::examples::find_example(options.kernel)) {
    TESSERA_TRY(source.kernel, example->make());
    source.arguments = example->arguments;
    source.grid = example->grid;
  } else if (std::filesystem::exists(options.kernel)) {
    TESSERA_TRY(std::vector<tile::Constant> constants, constants_of(options.arguments));
    if (!store.empty() && std::filesystem::path(options.kernel).extension() == ".tile") {
      KernelText text{.arguments = options.arguments, .grid = options.grid};
      TESSERA_TRY(text.text, read_text(options.kernel));
      TESSERA_TRY(const auto tuned, stored_constants(options, text, store));
      source.is_tuned = !tuned.empty();
      constants.insert(constants.end(), tuned.begin(), tuned.end());
    }
    TESSERA_TRY(source.kernel, read_kernel(options.kernel, constants));
  } else {
    return Diagnostic{.id = "kernel-unknown",
                      .message = fmt::format("there is no kernel '{}'", options.kernel),
                      .note = "a kernel is the name of an example or a file of tile text",
                      .help = "list the examples with: tessera kernel list"};
  }
  // Arguments of the command line come last and take precedence.
  source.arguments.insert(source.arguments.end(), options.arguments.begin(),
                          options.arguments.end());
  return source;
}

/// Checks that debug mode is only used for the CPU.
Expected<Done> check_target(const KernelOptions& options) {
  if (!options.is_for_gpu() && options.tf32)
    return Diagnostic{
        .id = "cli-precision", .message = "--tf32 is for GPUs", .help = "say --target cuda too"};
  if (!options.is_for_gpu() || !options.checked) return Done{};
  return Diagnostic{
      .id = "cli-target",
      .message = fmt::format("--checked is not supported with --target {}", options.target),
      .note = "kernel run compares with the interpreter, which checks every access"};
}

/// Kernel with the arguments and the grid of a launch.
struct KernelLaunch {
  KernelSource source;
  KernelData data;
};

Expected<KernelLaunch> find_launch(const KernelOptions& options, const Context& context) {
  TESSERA_TRY_DONE(check_target(options));
  KernelLaunch launch;
  TESSERA_TRY(launch.source, find_kernel(options, existing_store(options.store, context)));
  TESSERA_TRY(launch.data,
              make_kernel_data(launch.source.kernel, {.arguments = launch.source.arguments,
                                                      .seed = options.seed,
                                                      .memory_limit = context.run_memory()}));
  if (!options.grid.empty()) {
    TESSERA_TRY(launch.source.grid, parse_grid(options.grid, launch.source.kernel, launch.data));
  }
  return launch;
}

codegen::Options codegen_options(const KernelOptions& options) {
  codegen::Options result{.checked = options.checked, .cache = options.cache};
  if (options.precision == "fast") result.precision = codegen::Precision::Fast;
  return result;
}

Expected<GpuKernel> on_gpu(const tile::Kernel& kernel, const KernelData& data,
                           const KernelOptions& options) {
  return GpuKernel::compile(
      kernel, data.arguments,
      {.precision = codegen_options(options).precision, .tf32 = options.tf32});
}

void list(const Context& context) {
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& example : tile::examples::catalog()) {
    if (context.json) {
      rows.push_back(
          {{"name", example.name}, {"summary", example.summary}, {"arguments", example.arguments}});
    } else {
      fmt::print("{:<18} {}\n", example.name, example.summary);
    }
  }
  if (context.json) print_json({{"kernels", rows}});
}

Expected<std::string> form_text(const tile::Kernel& kernel, const KernelOptions& options) {
  if (options.form == "T") return tile::to_text(kernel);
  const codegen::Options code = codegen_options(options);
  const bool is_block = options.form == "S" && options.is_for_gpu();
  if (options.form == "gpu" || options.form == "ptx" || is_block) {
    codegen::PtxOptions ptx{.precision = code.precision, .tf32 = options.tf32};
    if (options.is_for_gpu()) {  // as it is launched there
      ptx = codegen::ptx_options(machine::cuda(options.target == "cuda:sm_80" ? "sm_80" : "sm_90a"),
                                 {.precision = code.precision, .tf32 = options.tf32});
    }
    if (options.form == "gpu") return codegen::gpu_form_of(kernel, ptx);
    if (is_block) return codegen::block_form_of(kernel, ptx);
    TESSERA_TRY(codegen::PtxKernel made, codegen::ptx_of(kernel, ptx));
    return std::move(made.text);
  }
  TESSERA_TRY(const machine::Machine machine, machine::named(options.machine));
  const std::map<std::string, codegen::Form> forms = {
      {"S", codegen::Form::S}, {"llvm", codegen::Form::Llvm}, {"asm", codegen::Form::Assembly}};
  return codegen::form_of(kernel, forms.at(options.form), machine, code);
}

void show(const KernelOptions& options, Context& context) {
  const auto source = find_kernel(options);
  if (!source) return context.fail(source.error());
  const auto text = options.form == "loops"
                        ? Expected<std::string>(source->schedule + source->loops)
                        : form_text(source->kernel, options);
  if (!text) return context.fail(text.error());
  if (context.json) {
    fmt::print(
        "{}\n",
        nlohmann::json({{"kernel", source->kernel.name}, {"form", options.form}, {"text", *text}})
            .dump(2));
  } else {
    fmt::print("{}", *text);
  }
}

void run(const KernelOptions& options, Context& context) {
  const auto launch = find_launch(options, context);
  if (!launch) return context.fail(launch.error());
  const KernelSource* source = &launch->source;
  KernelData expected = copy_of(launch->data), found = copy_of(launch->data);
  std::optional<GpuKernel> gpu;
  if (options.is_for_gpu()) {  // without a GPU, nothing is interpreted in vain
    auto compiled = on_gpu(source->kernel, found, options);
    if (!compiled) return context.fail(compiled.error());
    gpu.emplace(*std::move(compiled));
  }
  // Runs the interpreter first: it checks every access, so that code with an access out of bounds
  // never runs.
  const auto interpreted = tile::interpret(source->kernel, expected.arguments, source->grid);
  if (!interpreted) return context.fail(interpreted.error());
  const auto launched = [&]() -> Expected<Done> {
    if (gpu) return gpu->launch(found, source->grid);
    TESSERA_TRY(const auto compiled, codegen::compile(source->kernel, codegen_options(options)));
    return compiled->launch(found.arguments, source->grid, options.threads);
  }();
  if (!launched) return context.fail(launched.error());
  const double tolerance =
      options.tolerance >= 0 ? options.tolerance : default_tolerance(source->kernel);
  const KernelComparison comparison = compare(source->kernel, expected, found, tolerance);
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& row : comparison.rows) {
    if (context.json) {
      rows.push_back({{"argument", row.name},
                      {"type", row.type},
                      {"different", row.different},
                      {"worst", row.worst}});
    } else {
      fmt::print("{:<10} {:<28} {}\n", row.name, row.type,
                 row.different > 0
                     ? fmt::format("{} elements differ, by up to {:.3g}", row.different, row.worst)
                 : row.worst > 0 ? fmt::format("as interpreted, within {:.3g}", row.worst)
                                 : "as interpreted");
    }
  }
  if (context.json) {
    fmt::print("{}\n", nlohmann::json({{"kernel", source->kernel.name},
                                       {"agrees", comparison.agrees},
                                       {"tolerance", tolerance},
                                       {"arguments", rows}})
                           .dump(2));
  } else if (!context.quiet) {
    fmt::print("{}: {}\n", source->kernel.name,
               comparison.agrees ? "PASS: machine code against interpreter"
                                 : "FAIL: machine code against interpreter");
  }
  if (!comparison.agrees) context.exit_code = kNegativeResult;
}

double bytes_of(const KernelData& data) {
  double bytes = 0;
  for (const auto& memory : data.memory) bytes += static_cast<double>(memory.size());
  return bytes;
}

/// Times a kernel on a GPU. Nothing is checked before: an access out of bounds there harms no other
/// process.
void bench_on_gpu(const KernelSource& source, const KernelData& data, const KernelOptions& options,
                  Context& context) {
  const Stopwatch begin;
  const auto kernel = on_gpu(source.kernel, data, options);
  if (!kernel) return context.fail(kernel.error());
  const double compile_seconds = begin.seconds();
  const auto times = kernel->times(data, source.grid, context.stop);
  if (!times) return context.fail(times.error());
  const double best = times->front(), median = (*times)[times->size() / 2];
  const codegen::PtxKernel& ptx = kernel->ptx();
  if (context.json) {
    return print_json({{"kernel", source.kernel.name},
                       {"gpu", kernel->gpu()},
                       {"compile_ms", compile_seconds * 1e3},
                       {"best_us", best * 1e6},
                       {"median_us", median * 1e6},
                       {"argument_bytes", bytes_of(data)},
                       {"threads", ptx.threads},
                       {"registers", kernel->function().registers()},
                       {"local_bytes", kernel->function().local_bytes()},
                       {"shared_bytes", ptx.shared_bytes}});
  }
  fmt::print("{}: compiled in {:.1f} ms for {}\n", source.kernel.name, compile_seconds * 1e3,
             kernel->gpu());
  fmt::print(
      "best {:.2f} us, median {:.2f} us; {:.2f} GB/s of arguments; {} threads in a block, each "
      "with "
      "{} registers and {} bytes of memory; {} bytes of shared memory\n",
      best * 1e6, median * 1e6, bytes_of(data) / best / 1e9, ptx.threads,
      kernel->function().registers(), kernel->function().local_bytes(), ptx.shared_bytes);
}

void bench_kernel(const KernelOptions& options, Context& context) {
  auto launch = find_launch(options, context);
  if (!launch) return context.fail(launch.error());
  const KernelSource* source = &launch->source;
  KernelData* data = &launch->data;
  if (options.is_for_gpu()) return bench_on_gpu(*source, *data, options, context);
  const auto code = codegen_options(options);
  const Stopwatch begin;
  const auto compiled = codegen::compile(source->kernel, code);
  if (!compiled) return context.fail(compiled.error());
  const double compile_seconds = begin.seconds();
  // Runs in debug mode first, on a copy: code with accesses out of bounds is not timed. A kernel
  // that is idempotent is launched repeatedly on the same memory; otherwise every launch gets a
  // fresh copy.
  const KernelData given = copy_of(*data);
  KernelData copy = copy_of(*data);
  const auto checked = codegen::compile(source->kernel, {.checked = true});
  if (!checked) return context.fail(checked.error());
  const auto tried = (*checked)->launch(copy.arguments, source->grid, options.threads);
  if (!tried) return context.fail(tried.error());
  const KernelData once = copy_of(copy);
  const bool restore = !(*checked)->launch(copy.arguments, source->grid, options.threads) ||
                       copy.memory != once.memory;
  const auto launched = (*compiled)->launch(data->arguments, source->grid, options.threads);
  if (!launched) return context.fail(launched.error());
  const auto words = tile::words_of(data->arguments);
  std::vector<double> times;
  const Stopwatch watch;
  while (times.size() < 10 || (watch.seconds() < 0.5 && times.size() < 100000)) {
    for (std::size_t i = 0; restore && i < given.memory.size(); ++i)
      std::ranges::copy(given.memory[i], data->memory[i].begin());
    const Stopwatch before;
    (*compiled)->run(words, source->grid, options.threads);
    times.push_back(before.seconds());
    if (context.stop) break;
  }
  std::sort(times.begin(), times.end());
  const double bytes = bytes_of(*data);
  const double best = times.front(), median = times[times.size() / 2];
  if (context.json) {
    fmt::print("{}\n", nlohmann::json({{"kernel", source->kernel.name},
                                       {"constants", constants_text(source->kernel.constants)},
                                       {"tuned", source->is_tuned},
                                       {"compile_ms", compile_seconds * 1e3},
                                       {"from_cache", (*compiled)->from_cache()},
                                       {"best_us", best * 1e6},
                                       {"median_us", median * 1e6},
                                       {"launches", times.size()},
                                       {"argument_bytes", bytes},
                                       {"scratch_bytes", (*compiled)->scratch_bytes()}})
                           .dump(2));
    return;
  }
  fmt::print("{}: compiled in {:.1f} ms{}\n", source->kernel.name, compile_seconds * 1e3,
             (*compiled)->from_cache() ? ", from the cache" : "");
  if (!source->kernel.constants.empty())
    fmt::print("{}{}\n", constants_text(source->kernel.constants),
               source->is_tuned ? " (tuned)" : "");
  fmt::print(
      "best {:.2f} us, median {:.2f} us of {} launches; {:.2f} GB/s of arguments, {} bytes of "
      "scratch\n",
      best * 1e6, median * 1e6, times.size(), bytes / best / 1e9, (*compiled)->scratch_bytes());
}

void add_launch_flags(CLI::App* sub, KernelOptions* options) {
  sub->add_option(
      "--grid", options->grid,
      "launch grid of up to three axes: 64 or 8,12; counts may use arguments, extents and "
      "constants: ceil_div(out.0, BLOCK)");
  sub->add_option("--seed", options->seed, "seed of the random memory content")
      ->capture_default_str();
  sub->add_option("--threads", options->threads, "number of threads, 0 for one per core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  sub->add_option("--cache", options->cache, "folder of the object code cache");
  add_store_flag(*sub, options->store);
}

}  // namespace

void add_kernel(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("kernel", "compiles and runs tile kernels");
  command->require_subcommand(1);
  command->footer(
      "Examples:\n"
      "  tessera kernel list\n"
      "  tessera kernel show softmax --form asm\n"
      "  tessera kernel run matmul --arg 'a=f32[33,70]' --arg 'b=f32[70,50]' --arg 'c=f32[33,50]' "
      "--grid 1\n"
      "  tessera kernel bench my.tile --arg 'x=f32[4096]' --grid 4");
  auto options = std::make_shared<KernelOptions>();

  const auto add = [&](const char* name, const char* summary, auto action) {
    CLI::App* sub = command->add_subcommand(name, summary);
    add_common(*sub, context);
    sub->callback([&context, options, action] {
      if (const auto started = context.start(); !started) return context.fail(started.error());
      action(*options, context);
    });
    return sub;
  };
  const auto add_source = [&](CLI::App* sub) {
    sub->add_option("kernel", options->kernel, "name of an example, or a file of tile text");
    sub->add_option("--definition", options->definition,
                    "definition in index notation in place of a kernel, on the tensors of --arg");
    sub->add_option("--schedule", options->schedule,
                    "schedule file for --definition; see docs/schedules.md");
    sub->add_option("--arg", options->arguments,
                    "argument: x=f32[128,64] is memory, n=1000 a number or a constant; after the "
                    "extents, by [1,128] "
                    "sets strides, below 7 limits integers to 0 to 6")
        ->type_name("NAME=VALUE");
    sub->add_option("--precision", options->precision, "accuracy of transcendental functions")
        ->check(CLI::IsMember({"exact", "fast"}))
        ->capture_default_str();
    sub->add_flag("--checked", options->checked,
                  "debug mode: check every memory access and assertion");
    sub->add_flag("--tf32", options->tf32, "on a GPU, allow rounding f32 matmul operands to tf32");
  };
  const auto add_target = [&](CLI::App* sub, const std::vector<std::string>& targets) {
    sub->add_option("--target", options->target,
                    "target: cpu, or cuda for the NVIDIA GPU of this computer")
        ->check(CLI::IsMember(targets))
        ->capture_default_str();
  };

  add("list", "lists the example kernels", [](const KernelOptions&, Context& c) { list(c); });

  CLI::App* shown = add("show", "prints a kernel in one of its intermediate forms", show);
  add_source(shown);
  shown
      ->add_option("--form", options->form,
                   "T: tile IR; S: loop nests, or the program of a GPU block; llvm; asm; gpu: "
                   "layouts and other GPU decisions; ptx; loops: "
                   "schedule and loops of a definition")
      ->check(CLI::IsMember({"loops", "T", "S", "llvm", "asm", "gpu", "ptx"}))
      ->capture_default_str();
  shown
      ->add_option("--machine", options->machine,
                   "target machine: host, neoverse-v1, haswell, sapphirerapids, …")
      ->capture_default_str();
  shown->footer(
      "Examples:\n"
      "  tessera kernel show attention --form S\n"
      "  tessera kernel show --definition 'c[i,j] = sum(k) a[i,k] * b[k,j]' --arg 'a=f32[64,32]' "
      "--arg 'b=f32[32,64]' --form loops");

  add_target(shown, {"cpu", "cuda", "cuda:sm_80", "cuda:sm_90a"});

  CLI::App* ran = add("run", "runs a kernel and compares it with the interpreter", run);
  add_source(ran);
  add_launch_flags(ran, options.get());
  add_target(ran, {"cpu", "cuda"});
  ran->add_option("--tolerance", options->tolerance,
                  "largest allowed error of floats, relative above 1 (default: by dtype)");
  ran->footer(
      "Examples:\n  tessera kernel run vector_add --arg n=777\n"
      "  tessera kernel run my.tile --arg 'x=f16[100,64]' --grid 4 --target cuda\n\nExit code 1: "
      "the results differ.");

  CLI::App* timed = add("bench", "times a kernel", bench_kernel);
  add_source(timed);
  add_launch_flags(timed, options.get());
  add_target(timed, {"cpu", "cuda"});
  timed->footer(
      "Examples:\n  tessera kernel bench softmax --threads 2\n"
      "  tessera kernel bench softmax --target cuda");
}

}  // namespace tessera::cli
