/* What a user of the C interface writes. Runs a program on inputs 0, -1, 2, -3, … and prints all.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tessera/engine/tessera.h"

enum { kMost = 16 };

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, tessera_error());
  return 1;
}

static void* aligned(size_t bytes) {
  return aligned_alloc(64, (bytes + 64) / 64 * 64);
}

static long long element(tessera_dtype dtype, const void* data, size_t i) {
  if (dtype == TESSERA_I64) return ((const int64_t*)data)[i];
  if (dtype == TESSERA_I32) return ((const int32_t*)data)[i];
  return ((const uint8_t*)data)[i];
}

static void fill(const tessera_value* value, void* data) {
  size_t i;
  if (value->dtype == TESSERA_BOOL) memset(data, 1, value->bytes);
  if (value->dtype == TESSERA_I32)
    for (i = 0; i < value->bytes / 4; ++i) ((int32_t*)data)[i] = (int32_t)(i % 2 ? -i : i);
}

static void describe(const char* what, const tessera_value* value) {
  size_t i;
  printf("%s %s", what, value->name);
  for (i = 0; i < value->rank && value->is_sized; ++i) printf(" %lld", (long long)value->shape[i]);
  printf(value->is_sized ? "\n" : " ?\n");
}

static void print(const tessera_tensor* tensor) {
  size_t i, count = 1;
  for (i = 0; i < tensor->rank; ++i) count *= (size_t)tensor->shape[i];
  printf("result");
  for (i = 0; i < count; ++i) printf(" %lld", element(tensor->dtype, tensor->data, i));
  printf("\n");
}

int main(int argc, char** argv) {
  tessera_program* program = NULL;
  tessera_session* session = NULL;
  tessera_value values[kMost];
  tessera_tensor given[kMost], results[kMost];
  const void* from[kMost];
  void* to[kMost];
  const void* own_from[kMost];
  void *own_to[kMost], *beyond;
  size_t i, inputs, outputs;
  int all_sized = 1;

  if (argc != 2) return 2;
  if (tessera_open(argv[1], &program)) return fail("open");
  inputs = tessera_input_count(program);
  outputs = tessera_output_count(program);
  if (inputs > kMost || outputs > kMost) return 2;
  for (i = 0; i < inputs; ++i) {
    void* data;
    if (tessera_input(program, i, &values[i])) return fail("input");
    describe("input", &values[i]);
    data = aligned(values[i].bytes);
    fill(&values[i], data);
    from[i] = data;
    given[i].dtype = values[i].dtype;
    given[i].rank = values[i].rank;
    given[i].shape = values[i].shape;
    given[i].data = data;
    given[i].bytes = values[i].bytes;
  }
  for (i = 0; i < outputs; ++i) {
    tessera_value value;
    if (tessera_output(program, i, &value)) return fail("output");
    describe("output", &value);
    all_sized = all_sized && value.is_sized;
    to[i] = aligned(value.bytes);
  }
  if (tessera_start(program, 2, &session)) return fail("start");
  tessera_close(program);
  if (tessera_run_tensors(session, given, inputs, results, outputs)) return fail("run");
  for (i = 0; i < outputs; ++i) print(&results[i]);
  if (tessera_run(session, from, inputs, to, outputs)) {
    if (all_sized) return fail("run");
    printf("%s\n", tessera_error());
  } else {
    for (i = 0; i < outputs; ++i)
      if (memcmp(to[i], results[i].data, results[i].bytes) != 0) return 1;
    printf("the same in place\n");
  }
  /* In memory of the session, which is the same in each call. */
  for (i = 0; i < inputs && all_sized; ++i) {
    void *memory, *again;
    if (tessera_input_memory(session, i, &memory)) return fail("input memory");
    if (tessera_input_memory(session, i, &again) || memory != again) return fail("input memory");
    memcpy(memory, from[i], values[i].bytes);
    own_from[i] = memory;
  }
  for (i = 0; i < outputs && all_sized; ++i)
    if (tessera_output_memory(session, i, &own_to[i])) return fail("output memory");
  if (!tessera_input_memory(session, inputs, &beyond)) return 1;
  if (all_sized && tessera_run(session, own_from, inputs, own_to, outputs)) return fail("run");
  for (i = 0; i < outputs && all_sized; ++i)
    if (memcmp(own_to[i], to[i], results[i].bytes) != 0) return 1;
  for (i = 0; i < inputs; ++i) free((void*)from[i]);
  for (i = 0; i < outputs; ++i) free(to[i]);
  tessera_stop(session);
  return 0;
}
