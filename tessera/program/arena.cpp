#include "tessera/program/arena.h"

#include <algorithm>

namespace tessera::program {

using runtime::ValueIndex;
using Home = runtime::Value::Home;

namespace {

/// Calls visit with every index of a value that a step has; those of a Step& may be changed.
template <class Step, class Visit>
void for_each_value_index(Step& step, const Visit& visit) {
  if (auto* launch = std::get_if<runtime::step::Launch>(&step)) {
    for (auto& patch : launch->patches) visit(patch.at.value);
  } else if (auto* copy = std::get_if<runtime::step::Copy>(&step)) {
    visit(copy->from.value);
    visit(copy->to.value);
  } else if (auto* host = std::get_if<runtime::step::Host>(&step)) {
    for (auto& value : host->inputs) visit(value);
    for (auto& value : host->outputs) visit(value);
  } else if (auto* branch = std::get_if<runtime::step::Branch>(&step)) {
    visit(branch->condition);
  } else if (auto* swap = std::get_if<runtime::step::Swap>(&step)) {
    visit(swap->memory.value);
  } else if (auto* check = std::get_if<runtime::step::CheckIndices>(&step)) {
    visit(check->at.value);
  }
}

/// Plans those of the values that have this home.
MemoryPlan plan(Draft& draft, Home home) {
  auto& values = draft.program.values;
  std::vector<Lifetime> of_value = lifetimes_of(draft.program);
  std::vector<Lifetime> lifetimes;
  std::vector<std::size_t> planned;
  for (std::size_t v = 0; v < values.size(); ++v) {
    if (values[v].home != home || of_value[v].first == kNeverUsed) continue;
    lifetimes.push_back(of_value[v]);
    planned.push_back(v);
  }
  MemoryPlan plan = plan_memory(lifetimes);
  for (std::size_t i = 0; i < planned.size(); ++i) values[planned[i]].offset = plan.offsets[i];
  return plan;
}

}  // namespace

std::vector<Lifetime> lifetimes_of(const runtime::Program& program) {
  std::vector<Lifetime> of_value(program.values.size(), {.first = kNeverUsed});
  for (std::size_t v = 0; v < of_value.size(); ++v) of_value[v].bytes = program.values[v].bytes;
  for (std::size_t at = 0; at < program.steps.size(); ++at) {
    for_each_value_index(program.steps[at], [&](ValueIndex value) {
      Lifetime& life = of_value[value];
      if (life.first == kNeverUsed) life.first = static_cast<int>(at);
      life.last = static_cast<int>(at);
    });
  }
  // What is used in a loop and outside of it is needed in every round.
  for (std::size_t at = 0; at < program.steps.size(); ++at) {
    const auto* loop = std::get_if<runtime::step::Loop>(&program.steps[at]);
    if (loop == nullptr) continue;
    const int begin = static_cast<int>(at), end = static_cast<int>(loop->end) - 1;
    for (Lifetime& life : of_value) {
      if (life.first == kNeverUsed || life.last <= begin || life.first > end) continue;
      if (life.first > begin && life.last <= end) continue;
      life.first = std::min(life.first, begin);
      life.last = std::max(life.last, end);
    }
  }
  return of_value;
}

std::vector<ValueIndex> touched(const runtime::Step& step) {
  std::vector<ValueIndex> values;
  for_each_value_index(step, [&](ValueIndex value) {
    if (std::ranges::count(values, value) == 0) values.push_back(value);
  });
  return values;
}

void retarget(runtime::Step& step, ValueIndex from, ValueIndex to) {
  for_each_value_index(step, [&](ValueIndex& value) {
    if (value == from) value = to;
  });
}

void plan_arena(Draft& draft) {
  const MemoryPlan arena = plan(draft, Home::Arena);
  draft.program.arena_bytes = draft.report.arena_bytes = arena.bytes;
  draft.report.arena_lower_bound = arena.lower_bound;
}

std::int64_t plan_file(Draft& draft) {
  return plan(draft, Home::File).bytes;
}

}  // namespace tessera::program
