/*
 * Runs saved programs (.tsr) from C, without a compiler. A program is code: open only what you
 * trust.
 *
 *   tessera_program* program;
 *   tessera_session* session;
 *   if (tessera_open("model.tsr", &program) || tessera_start(program, 1, &session))
 *     puts(tessera_error());
 *   const void* inputs[] = {x};
 *   void* outputs[] = {y};
 *   if (tessera_run(session, inputs, 1, outputs, 1)) puts(tessera_error());
 *   tessera_stop(session);
 *   tessera_close(program);
 *
 * Functions that return int return 0 where they succeed; tessera_error() says why they did not.
 * Nothing here throws or ends the process. A program may be used by several threads, a session by
 * one at a time.
 */
#ifndef TESSERA_ENGINE_TESSERA_H
#define TESSERA_ENGINE_TESSERA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
/* NOLINTBEGIN(modernize-use-using,readability-identifier-naming): C has these names alone */

typedef struct tessera_program tessera_program;
typedef struct tessera_session tessera_session;

typedef enum tessera_dtype {
  TESSERA_F16,
  TESSERA_BF16,
  TESSERA_F32,
  TESSERA_F64,
  TESSERA_I8,
  TESSERA_I16,
  TESSERA_I32,
  TESSERA_I64,
  TESSERA_U8,
  TESSERA_U16,
  TESSERA_U32,
  TESSERA_U64,
  TESSERA_BOOL,
  TESSERA_STRING, /* not passed through this interface */
  /* One element to a byte, whatever its width: integers by value, floats by their bits. */
  TESSERA_F8E4M3FN,
  TESSERA_F8E4M3FNUZ,
  TESSERA_F8E5M2,
  TESSERA_F8E5M2FNUZ,
  TESSERA_F8E8M0,
  TESSERA_F4E2M1,
  TESSERA_I4,
  TESSERA_U4,
  TESSERA_I2,
  TESSERA_U2
} tessera_dtype;

/* What a program takes or gives. */
typedef struct tessera_value {
  const char* name; /* lives as long as the program */
  tessera_dtype dtype;
  int is_sized; /* 0: the sizes depend on data; tessera_run_tensors takes and gives such values */
  size_t rank;
  const int64_t* shape;
  size_t bytes;
} tessera_value;

/* A dense row-major array. */
typedef struct tessera_tensor {
  tessera_dtype dtype;
  size_t rank;
  const int64_t* shape;
  const void* data;
  size_t bytes;
} tessera_tensor;

/* Why the last call of this thread failed; never null, and empty if none did. */
const char* tessera_error(void);

/* Reads and checks a file; the weights stay mapped in it. */
int tessera_open(const char* file, tessera_program** program);
/* Sessions of it may live on. Null is fine. */
void tessera_close(tessera_program* program);

size_t tessera_input_count(const tessera_program* program);
size_t tessera_output_count(const tessera_program* program);
int tessera_input(const tessera_program* program, size_t index, tessera_value* value);
int tessera_output(const tessera_program* program, size_t index, tessera_value* value);

/* Memory of one caller to run the program with; on so many threads, or 0: one per core. */
int tessera_start(const tessera_program* program, int threads, tessera_session** session);
void tessera_stop(tessera_session* session);

/* Memory for an input or an output, of its size, the same in each call; it lives as long as the
   session. A program for a GPU copies it without the CPU: it is page-locked as far as the system
   allows. */
int tessera_input_memory(tessera_session* session, size_t index, void** memory);
int tessera_output_memory(tessera_session* session, size_t index, void** memory);

/* Runs on memory of the caller: aligned to 64 bytes, as large as tessera_value says, no two parts
   of it the same. Nothing is copied, but to and from a GPU. */
int tessera_run(tessera_session* session, const void* const* inputs, size_t input_count,
                void* const* outputs, size_t output_count);

/* Runs on arrays of any alignment and gives those that the session keeps until its next run:
   `outputs` is filled with output_count of them. */
int tessera_run_tensors(tessera_session* session, const tessera_tensor* inputs, size_t input_count,
                        tessera_tensor* outputs, size_t output_count);

/* NOLINTEND(modernize-use-using,readability-identifier-naming) */
#ifdef __cplusplus
}
#endif

#endif
