#pragma once

#include "tessera/lower/schedule_features.h"
#include "tessera/tune/group_task.h"
#include "tests/lower/run_group.h"

namespace tessera::tune {

/// Task of a matmul with packed weights, on one core.
inline GroupTask matmul_task(std::int64_t m = 96, std::int64_t n = 192, std::int64_t k = 80) {
  const std::string definition = fmt::format(
      "define(a: f32[{0}, {2}], w: f32[{2}, {1}]) {{ out: f32[i: {0}, j: {1}] = sum(k: {2}) {{ "
      "a[i, k] * w[k, j] }} }}",
      m, n, k);
  machine::Machine machine = machine::host();
  machine.cores = 1;
  GroupTask task;
  task.key = digest(definition);
  task.what = "matmul";
  task.group = {lower::staged({lower::f32("a", {m, k}), lower::f32("w", {k, n})}, {definition}),
                {"out"},
                {"w"}};
  const auto code = lower::lower_group(task.group, machine);
  EXPECT_TRUE(code && code->schedule);
  task.set_space(lower::schedule_space(task.group, machine, {}), *code->schedule);
  return task;
}

/// Task of a matmul of f16 for a GPU.
inline GroupTask gpu_task(std::int64_t m = 96, std::int64_t n = 192, std::int64_t k = 320) {
  const std::string definition = fmt::format(
      "define(a: f16[{0}, {2}], w: f16[{2}, {1}]) {{ out: f16[i: {0}, j: {1}] = sum(k: {2}) {{ "
      "a[i, k] * w[k, j] }} }}",
      m, n, k);
  const machine::Machine machine = machine::cuda();
  GroupTask task;
  task.key = digest(definition);
  task.what = "matmul";
  task.group = {
      lower::staged({{"a", DType::F16, {Dim(m), Dim(k)}}, {"w", DType::F16, {Dim(k), Dim(n)}}},
                    {definition}),
      {"out"},
      {"w"}};
  const auto code = lower::lower_group(task.group, machine);
  EXPECT_TRUE(code && code->schedule);
  task.set_space(lower::schedule_space(task.group, machine, {}), *code->schedule);
  return task;
}

}  // namespace tessera::tune
