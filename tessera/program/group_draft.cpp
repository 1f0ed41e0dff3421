#include "tessera/program/group_draft.h"

#include <algorithm>

#include "tessera/program/launches.h"
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

}  // namespace

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
