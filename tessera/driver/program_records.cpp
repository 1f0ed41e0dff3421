#include <algorithm>

#include "tessera/codegen/compile.h"
#include "tessera/codegen/disassemble.h"
#include "tessera/codegen/gpu_image.h"
#include "tessera/codegen/ptx/gpu_form.h"
#include "tessera/driver/event_records.h"
#include "tessera/driver/schedule_choice.h"
#include "tessera/machine/peak.h"
#include "tessera/program/arena.h"
#include "tessera/program/plan.h"
#include "tessera/tile/text.h"

namespace tessera {
namespace {

using runtime::Program;
using runtime::ValueIndex;

/// Bytes of kernel text in a log; kernels that take longest come first.
constexpr std::size_t kMostText = 1'200'000, kMostTextOfKernel = 150'000;
constexpr std::size_t kMostSpans = 20'000;

std::string_view home_name(runtime::Value::Home home) {
  constexpr std::string_view kNames[] = {"input", "output", "weight", "arena", "file", "boxed"};
  return kNames[static_cast<std::size_t>(home)];
}

std::string_view kind_name(const runtime::Step& step) {
  constexpr std::string_view kNames[] = {"launch", "copy", "host", "branch",
                                         "jump",   "loop", "swap", "check_indices"};
  return kNames[step.index()];
}

/// Value that a step writes, if one is known: kernels have their result last.
std::optional<ValueIndex> written_by(const runtime::Step& step) {
  if (const auto* launch = std::get_if<runtime::step::Launch>(&step))
    return launch->patches.empty() ? std::nullopt : std::optional(launch->patches.back().at.value);
  if (const auto* copy = std::get_if<runtime::step::Copy>(&step)) return copy->to.value;
  if (const auto* host = std::get_if<runtime::step::Host>(&step))
    return host->outputs.empty() ? std::nullopt : std::optional(host->outputs[0]);
  if (const auto* swap = std::get_if<runtime::step::Swap>(&step)) return swap->memory.value;
  if (const auto* check = std::get_if<runtime::step::CheckIndices>(&step)) return check->at.value;
  return std::nullopt;
}

/// Narrowest float type that a step reads or writes.
std::string precision_of(const Program& program, const runtime::Step& step) {
  std::optional<DType> narrowest;
  for (const ValueIndex value : program::touched(step)) {
    const DType dtype = program.values[value].dtype;
    if (is_float(dtype) && (!narrowest || byte_width(dtype) < byte_width(*narrowest)))
      narrowest = dtype;
  }
  return narrowest ? std::string(to_string(*narrowest)) : "";
}

void add_steps(report::EventLog& log, const Program& program, const CompiledModel* compiled) {
  std::vector<std::pair<std::int64_t, std::uint32_t>> loops;  // open ones: step, end
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    while (!loops.empty() && loops.back().second <= i) loops.pop_back();
    const runtime::Step& step = program.steps[i];
    report::Step record{.id = static_cast<std::int64_t>(i),
                        .kind = std::string(kind_name(step)),
                        .what = program.notes[i].what,
                        .strategy = program.notes[i].strategy,
                        .names = program.notes[i].names,
                        .flops = program.notes[i].flops,
                        .bytes = program.notes[i].bytes,
                        .loop = loops.empty() ? -1 : loops.back().first,
                        .precision = precision_of(program, step)};
    if (compiled != nullptr)
      for (const std::size_t node : compiled->report.steps[i].nodes)
        record.nodes.push_back(static_cast<std::int64_t>(node));
    if (const auto written = written_by(step); written && record.names.empty())
      record.names = {program.values[*written].name};
    if (const auto* launch = std::get_if<runtime::step::Launch>(&step)) {
      record.kernel = launch->kernel;
      record.grid = {launch->grid.begin(), launch->grid.end()};
    } else if (const auto* loop = std::get_if<runtime::step::Loop>(&step)) {
      record.iterations = loop->rounds;
      loops.emplace_back(record.id, loop->end);
    }
    log.add(std::move(record));
  }
}

void add_values(report::EventLog& log, const Program& program) {
  const std::vector<program::Lifetime> lifetimes = program::lifetimes_of(program);
  for (std::size_t v = 0; v < program.values.size(); ++v) {
    const runtime::Value& value = program.values[v];
    if (lifetimes[v].first == program::kNeverUsed) continue;
    std::string type = std::string(to_string(value.dtype)) + "[";
    for (std::size_t axis = 0; axis < value.shape.size(); ++axis)
      type += (axis == 0 ? "" : ", ") + std::to_string(value.shape[axis]);
    log.add(report::Value{.id = static_cast<std::int64_t>(v),
                          .name = value.name,
                          .home = std::string(home_name(value.home)),
                          .type = type + "]",
                          .offset = value.offset,
                          .bytes = value.bytes,
                          .first = lifetimes[v].first,
                          .last = lifetimes[v].last});
  }
}

/// Machine code of a kernel: from its entry to the next one; PTX up to its zero.
std::span<const std::byte> code_of(const Program& program, std::size_t kernel) {
  const std::span<const std::byte> image = program.image.view();
  const auto begin = static_cast<std::size_t>(program.kernels[kernel].entry);
  std::size_t end = image.size();
  if (begin > end) return {};
  if (program.is_for_gpu()) {
    const auto zero = std::ranges::find(image.subspan(begin), std::byte{0});
    return image.subspan(begin, static_cast<std::size_t>(zero - image.begin()) - begin);
  }
  for (const Program::Kernel& other : program.kernels)
    if (static_cast<std::size_t>(other.entry) > begin)
      end = std::min(end, static_cast<std::size_t>(other.entry));
  return image.subspan(begin, end - begin);
}

std::string assembly_of(const Program& program, std::size_t kernel) {
  std::span<const std::byte> code = code_of(program, kernel);
  if (program.is_for_gpu()) return {reinterpret_cast<const char*>(code.data()), code.size()};
  constexpr std::size_t kBytesOfText = 24;  // about as many for each instruction of four bytes
  code = code.first(std::min(code.size(), kMostTextOfKernel / kBytesOfText * 4));
  return codegen::disassemble(code, program.architecture, program.features);
}

/// Form of a kernel that shows how it is scheduled: loop nests, or threads and layouts on a GPU.
Expected<std::string> schedule_of(const tile::Kernel& kernel, const machine::Machine& machine) {
  if (machine.is_gpu()) return codegen::gpu_form_of(kernel, codegen::ptx_options(machine, {}));
  return codegen::form_of(kernel, codegen::Form::S, machine);
}

/// Kernels by the time of their steps, the longest first.
std::vector<std::size_t> kernels_by_time(const report::EventLog& log, const Program& program) {
  std::vector<double> ms(program.kernels.size());
  for (const auto* time : log.all<report::StepTime>())
    if (const auto* launch = std::get_if<runtime::step::Launch>(
            &program.steps[static_cast<std::size_t>(time->step)]))
      ms[launch->kernel] += time->ms;
  if (std::ranges::all_of(ms, [](double time) { return time == 0; }))
    for (std::size_t i = 0; i < program.steps.size(); ++i)
      if (const auto* launch = std::get_if<runtime::step::Launch>(&program.steps[i]))
        ms[launch->kernel] += program.notes[i].flops;
  std::vector<std::size_t> order(ms.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t k) { return ms[k]; });
  return order;
}

/// Schedule choices of the kernels of a program: what chose them, and the alternatives.
class KernelChoices {
 public:
  KernelChoices(const Program& program, const CompiledModel& compiled, program::CompileOptions code)
      : lowerings_(lowerings_of(compiled, std::move(code))), groups_(program.kernels.size()) {
    for (std::size_t i = 0; i < program.steps.size(); ++i)
      if (const auto* launch = std::get_if<runtime::step::Launch>(&program.steps[i]))
        groups_[launch->kernel] = compiled.report.steps[i].group;
  }

  void describe(std::size_t kernel, report::Kernel& record) {
    if (groups_[kernel] == nullptr || left_-- <= 0) return;
    ScheduleChoice choice = schedule_choice(*groups_[kernel], lowerings_);
    record.chosen = std::move(choice.schedule);
    record.chosen_by = std::move(choice.by);
    record.candidates = static_cast<std::int64_t>(choice.candidates);
    for (ScheduleChoice::Alternative& other : choice.alternatives)
      record.alternatives.push_back({std::move(other.schedule), other.cost});
  }

 private:
  static program::Lowerings lowerings_of(const CompiledModel& compiled,
                                         program::CompileOptions code) {
    code.contraction_dtype = compiled.contraction_dtype;
    return program::lowerings_for(code);
  }

  program::Lowerings lowerings_;
  std::vector<std::shared_ptr<const program::Lowering>> groups_;
  int left_ = 40;  // a space is enumerated for each
};

void add_kernels(report::EventLog& log, const ProgramRecords& of) {
  const Program& program = of.program;
  const CompiledModel* const compiled = of.compiled;
  const machine::Machine machine =
      of.options == nullptr ? machine::host() : of.options->code.machine;
  std::optional<KernelChoices> choices;
  if (compiled != nullptr && of.options != nullptr)
    choices.emplace(program, *compiled, of.options->code);
  std::size_t text_left = kMostText;
  for (const std::size_t k : kernels_by_time(log, program)) {
    report::Kernel record{.id = static_cast<std::int64_t>(k),
                          .name = program.kernels[k].name,
                          .code_bytes = static_cast<std::int64_t>(code_of(program, k).size()),
                          .scratch_bytes = program.kernels[k].scratch_bytes};
    const auto take = [&](std::string text) {
      if (text.size() > kMostTextOfKernel) {
        text.resize(kMostTextOfKernel);
        text.resize(text.rfind('\n') + 1);
        text += "…\n";
      }
      if (text.size() > text_left) {
        record.left_out = "the log shows the kernels that take longest";
        return std::string();
      }
      text_left -= text.size();
      return text;
    };
    if (compiled != nullptr && k < compiled->kernels.size()) {
      const tile::Kernel& kernel = *compiled->kernels[k];
      record.tile = take(tile::to_text(kernel));
      if (const auto schedule = schedule_of(kernel, machine)) record.schedule = take(*schedule);
    }
    if (choices) choices->describe(k, record);
    if (text_left > 0) record.assembly = take(assembly_of(program, k));
    log.add(std::move(record));
  }
}

}  // namespace

void add_program(report::EventLog& log, const ProgramRecords& of) {
  const Program& program = of.program;
  const CompiledModel* const compiled = of.compiled;
  add_steps(log, program, compiled);
  add_values(log, program);
  report::Memory memory{.arena_bytes = program.arena_bytes,
                        .weight_bytes = static_cast<std::int64_t>(program.weights.size()),
                        .code_bytes = static_cast<std::int64_t>(program.image.size()),
                        .swap_bytes = program.swap_bytes};
  if (compiled != nullptr) {
    memory.lower_bound = compiled->report.arena_lower_bound;
    memory.notes = compiled->report.notes;
  }
  log.add(std::move(memory));
  add_kernels(log, of);
}

Expected<Done> add_model_records(report::EventLog& log, const ModelRecords& of) {
  const bool is_measured = of.profile != nullptr && !of.program.is_for_gpu();
  const double flops = is_measured ? machine::measured_peak() * of.threads : 0;
  const double bytes = is_measured ? machine::measured_bandwidth() * of.threads : 0;
  if (of.compiled != nullptr && of.options != nullptr) {
    TESSERA_TRY_DONE(add_compilation(log, {.model = of.model,
                                           .file = of.file,
                                           .compiled = *of.compiled,
                                           .options = *of.options,
                                           .architecture = of.program.architecture,
                                           .peak_gflops = flops / 1e9,
                                           .bandwidth_gbytes = bytes / 1e9}));
  } else {
    add_model(log, of.model, of.file);
    log.add(report::Target{.architecture = of.program.architecture,
                           .features = of.program.features,
                           .threads = of.threads,
                           .peak_gflops = flops / 1e9,
                           .bandwidth_gbytes = bytes / 1e9});
  }
  if (of.profile != nullptr) add_profile(log, *of.profile);
  add_program(log, {.program = of.program, .compiled = of.compiled, .options = of.options});
  return Done{};
}

void add_profile(report::EventLog& log, const StepProfile& profile) {
  for (const StepTime& row : profile.steps) {
    report::StepTime record{.step = static_cast<std::int64_t>(row.step),
                            .calls = static_cast<std::int64_t>(row.calls),
                            .ms = row.ms,
                            .expected_ms = row.expected_ms};
    if (row.expected_ms) record.expected_from = row.measured ? "store" : "roofline";
    log.add(std::move(record));
  }
  log.add(report::Run{.runs = profile.runs,
                      .ms = profile.ms,
                      .between_ms = profile.between_ms,
                      .least_ms = profile.least_ms,
                      .median_ms = profile.median_ms});
  const std::size_t count = std::min(profile.last_run.size(), kMostSpans);
  for (const StepSpan& span : std::span(profile.last_run).first(count))
    log.add(report::Span{
        .step = static_cast<std::int64_t>(span.step),
        .start_us = static_cast<double>(span.start_ns - profile.last_run[0].start_ns) / 1e3,
        .us = static_cast<double>(span.end_ns - span.start_ns) / 1e3});
}

}  // namespace tessera
