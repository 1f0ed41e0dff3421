#include "tessera/program/draft.h"

namespace tessera::program {

using runtime::ValueIndex;

ValueIndex DraftBuilder::add_value(runtime::Value value) {
  if (value.home != runtime::Value::Home::Boxed)
    value.bytes = element_count(value.shape).value_or(0) * byte_width(value.dtype);
  draft.program.values.push_back(std::move(value));
  return static_cast<ValueIndex>(draft.program.values.size() - 1);
}

ValueIndex DraftBuilder::add_weight(std::uint32_t number, runtime::Value value, WeightUse use,
                                    const std::string& key) {
  const auto it = weights_.find({number, key});
  if (it != weights_.end()) return it->second;
  const ValueIndex index = add_value(std::move(value));
  draft.weights.emplace(index, std::move(use));
  weights_.emplace(std::pair{number, key}, index);
  return index;
}

std::uint32_t DraftBuilder::add_kernel(const std::shared_ptr<const tile::Kernel>& kernel,
                                       const std::string& fingerprint) {
  const auto [it, is_new] =
      kernels_.emplace(fingerprint, static_cast<std::uint32_t>(draft.kernels.size()));
  if (is_new) {
    draft.kernels.push_back(kernel);
    draft.program.kernels.push_back({.name = kernel->name});
  }
  return it->second;
}

void DraftBuilder::add_step(runtime::Step step, CompileReport::Step report, const StepWork& work) {
  draft.program.steps.push_back(std::move(step));
  draft.program.notes.push_back({.what = report.what, .flops = work.flops, .bytes = work.bytes});
  draft.report.steps.push_back(std::move(report));
}

void DraftBuilder::add_copy(const runtime::Address& from, ValueIndex to) {
  add_step(runtime::step::Copy{.from = from, .to = {.value = to}, .bytes = value(to).bytes},
           {"copy", ""});
}

}  // namespace tessera::program
