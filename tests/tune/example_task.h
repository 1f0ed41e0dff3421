#pragma once

#include "tessera/lower/schedule_features.h"
#include "tessera/tune/group_task.h"
#include "tests/lower/run_group.h"

namespace tessera::tune {

/// Task of a matmul out[m, n] = sum(k) a[m, k] * w[k, n] on a machine, with its whole space.
inline GroupTask matmul_task_for(const machine::Machine& machine, DType dtype, std::int64_t m,
                                 std::int64_t n, std::int64_t k) {
  const std::string definition = fmt::format(
      "define(a: {3}[{0}, {2}], w: {3}[{2}, {1}]) {{ out: {3}[i: {0}, j: {1}] = sum(k: {2}) {{ "
      "a[i, k] * w[k, j] }} }}",
      m, n, k, to_string(dtype));
  GroupTask task;
  task.key = digest(definition);
  task.what = "matmul";
  task.group = {
      lower::staged({{"a", dtype, {Dim(m), Dim(k)}}, {"w", dtype, {Dim(k), Dim(n)}}}, {definition}),
      {"out"},
      {"w"}};
  const auto code = lower::lower_group(task.group, machine);
  EXPECT_TRUE(code && code->schedule);
  task.set_space(lower::schedule_space(task.group, machine, {}), *code->schedule);
  return task;
}

/// Task of a matmul with packed weights, on one core.
inline GroupTask matmul_task(std::int64_t m = 96, std::int64_t n = 192, std::int64_t k = 80) {
  machine::Machine machine = machine::host();
  machine.cores = 1;
  return matmul_task_for(machine, DType::F32, m, n, k);
}

/// Task of a matmul of f16 for a GPU.
inline GroupTask gpu_task(std::int64_t m = 96, std::int64_t n = 192, std::int64_t k = 320) {
  return matmul_task_for(machine::cuda(), DType::F16, m, n, k);
}

}  // namespace tessera::tune
