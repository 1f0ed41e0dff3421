#include "tessera/program/group_draft.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "tessera/lower/range.h"
#include "tessera/program/backend.h"
#include "tessera/program/launches.h"
#include "tessera/program/weights.h"
#include "tessera/support/rng.h"
#include "tessera/tile/fingerprint.h"

namespace tessera::program {
namespace {

using Home = runtime::Value::Home;

runtime::Value value_in(Home home, const Operand& operand) {
  runtime::Value value{.name = operand.name, .dtype = operand.dtype};
  for (const Dim& dim : operand.shape) value.shape.push_back(dim.constant().value_or(0));
  value.home = home;
  return value;
}

std::int64_t padded(std::int64_t bytes) {
  return lower::ceil_div(bytes, runtime::kAlignment) * runtime::kAlignment;
}

/// Gives the values of a group's draft memory: inputs, outputs and weights by the names of the
/// group's tensors, temporaries in the arena.
void place_values(const lower::Group& group, const lower::GroupCode& code, Draft& draft) {
  runtime::Program& program = draft.program;
  std::set<runtime::ValueIndex> used;
  for (const runtime::Step& step : program.steps)
    for (const auto& patch : std::get<runtime::step::Launch>(step).patches)
      used.insert(patch.at.value);
  std::map<std::string, Tensor> constants;
  for (runtime::ValueIndex i = 0; i < program.values.size(); ++i) {
    runtime::Value& value = program.values[i];
    const auto packing = std::ranges::find_if(code.packings, [&](const lower::Packing& one) {
      return one.definition.outputs[0].name == value.name;
    });
    if (value.home == Home::Weight && packing != code.packings.end()) {
      draft.weights.emplace(i, WeightUse{constants.at(packing->weight),
                                         std::make_shared<const Definition>(packing->definition)});
    } else if (value.home == Home::Weight) {
      const Tensor constant = random_tensor(value.dtype, value.shape);
      constants.emplace(value.name, constant);
      if (used.contains(i)) {
        draft.weights.emplace(i, WeightUse{constant});
      } else {  // it is read packed
        value.home = Home::Arena;
        program.arena_bytes = std::max(program.arena_bytes, value.bytes);
      }
    } else if (std::ranges::find(group.results, value.name) != group.results.end()) {
      value.home = Home::Output;
      value.offset = static_cast<std::int64_t>(program.outputs.size());
      program.outputs.push_back(i);
    } else if (const bool is_made = std::ranges::find(group.stages, value.name,
                                                      &tile::Stage::name) != group.stages.end() ||
                                    std::ranges::find(code.temporaries, value.name,
                                                      &Operand::name) != code.temporaries.end();
               is_made) {
      value.offset = program.arena_bytes;
      program.arena_bytes += padded(value.bytes);
    } else {
      value.home = Home::Input;
      value.offset = static_cast<std::int64_t>(program.inputs.size());
      program.inputs.push_back(i);
    }
  }
}

/// Repeats the steps; each repetition has the next copy of the weights.
void repeat_steps(const RepeatOptions& options, runtime::Program& program) {
  const auto bytes = static_cast<std::int64_t>(program.weights.size());
  const std::int64_t copies =
      bytes == 0 ? 1
                 : std::clamp<std::int64_t>(lower::ceil_div(options.weight_bytes, bytes), 1,
                                            options.repeats);
  Buffer weights(static_cast<std::size_t>(bytes * copies));
  const auto count = static_cast<runtime::ValueIndex>(program.values.size());
  for (std::int64_t copy = 0; copy < copies; ++copy) {
    if (bytes > 0)
      std::memcpy(weights.data() + copy * bytes, program.weights.data(),
                  static_cast<std::size_t>(bytes));
    for (runtime::ValueIndex i = 0; copy > 0 && i < count; ++i) {
      runtime::Value value = program.values[i];
      if (value.home == Home::Weight) value.offset += copy * bytes;
      program.values.push_back(std::move(value));
    }
  }
  program.weights = std::move(weights).freeze();
  const std::vector<runtime::Step> steps = program.steps;
  const std::vector<runtime::Program::Note> notes = program.notes;
  for (std::int64_t r = 1; r < options.repeats; ++r)
    for (std::size_t s = 0; s < steps.size(); ++s) {
      runtime::Step step = steps[s];
      for (auto& patch : std::get<runtime::step::Launch>(step).patches)
        if (program.values[patch.at.value].home == Home::Weight)
          patch.at.value += static_cast<runtime::ValueIndex>(r % copies) * count;
      program.steps.push_back(std::move(step));
      program.notes.push_back(notes[s]);
    }
}

}  // namespace

Tensor random_tensor(DType dtype, const std::vector<std::int64_t>& shape) {
  constexpr std::int64_t kPeriod = 65521;  // a prime, so that no rows are equal
  const std::int64_t count = element_count(shape).value_or(0), width = byte_width(dtype);
  Buffer buffer(static_cast<std::size_t>(count * width));
  if (is_float(dtype)) {
    Rng rng(1);
    const std::int64_t first = std::min(count, kPeriod);
    for (std::int64_t i = 0; i < first; ++i) {
      const double number = 0.03 + 0.03 * rng.uniform();
      store_number(dtype, buffer.data(), i, rng.below(2) == 0 ? number : -number);
    }
    for (std::int64_t at = first; at < count; at += kPeriod)
      std::memcpy(buffer.data() + at * width, buffer.data(),
                  static_cast<std::size_t>(std::min(kPeriod, count - at) * width));
  }
  return Tensor{dtype, shape, std::move(buffer).freeze()};
}

Expected<runtime::Program> repeated_program(const lower::Group& group,
                                            const std::shared_ptr<const lower::GroupCode>& code,
                                            const RepeatOptions& options) {
  TESSERA_TRY(GroupDraft made, group_draft(group, std::span(&code, 1)));
  place_values(group, *code, made.draft);
  TESSERA_TRY_DONE(backend_of(options.code.machine).add_code(options.code, made.draft));
  TESSERA_TRY_DONE(lay_out_weights(options.code, made.draft));
  repeat_steps(options, made.draft.program);
  return std::move(made.draft.program);
}

Expected<GroupDraft> group_draft(const lower::Group& group,
                                 std::span<const std::shared_ptr<const lower::GroupCode>> codes) {
  GroupDraft result;
  DraftBuilder out;
  Addresses shared;
  TESSERA_TRY(const std::vector<Operand> tensors, lower::tensors_of(group.stages));
  for (const Operand& tensor : tensors)
    shared.emplace(tensor.name,
                   runtime::Address{out.add_value(value_in(
                       group.weights.contains(tensor.name) ? Home::Weight : Home::Arena, tensor))});
  for (const std::shared_ptr<const lower::GroupCode>& code : codes) {
    Addresses own = shared;
    for (const lower::Packing& packing : code->packings) {
      const Output& output = packing.definition.outputs[0];
      own.insert_or_assign(
          output.name, runtime::Address{out.add_value(
                           value_in(Home::Weight, {output.name, output.dtype, output.shape()}))});
    }
    for (const Operand& temporary : code->temporaries)
      own.insert_or_assign(temporary.name,
                           runtime::Address{out.add_value(value_in(Home::Arena, temporary))});
    GroupDraft::Range range{.first = out.draft.program.steps.size()};
    for (const lower::Lowered& lowered : code->kernels) {
      if (std::ranges::count(lowered.grid, 0) > 0) continue;
      const std::shared_ptr<const tile::Kernel> kernel(code, &lowered.kernel);
      out.add_step(
          launch_of(
              lowered, out.add_kernel(kernel, tile::fingerprint(lowered.kernel)),
              [&](const std::string& name) -> const runtime::Address& { return own.at(name); },
              out),
          {.what = group.results.front(), .strategy = code->strategy});
      ++range.count;
    }
    result.steps.push_back(range);
  }
  result.draft = std::move(out.draft);
  return result;
}

}  // namespace tessera::program
