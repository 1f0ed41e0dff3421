#include "tessera/engine/tessera.h"

#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "tessera/engine/engine.h"

using tessera::Bytes;
using tessera::Datum;
using tessera::Diagnostic;
using tessera::Done;
using tessera::DType;
using tessera::Expected;
using tessera::Tensor;
namespace runtime = tessera::runtime;

// NOLINTBEGIN(readability-identifier-naming): the names of the header
struct tessera_program {
  std::shared_ptr<const runtime::LoadedProgram> loaded;
};

struct tessera_session {
  std::shared_ptr<const runtime::LoadedProgram> loaded;
  std::unique_ptr<runtime::Session> session;
  std::vector<Datum> results = {};
  using Memory = std::vector<std::shared_ptr<std::byte>>;
  Memory inputs = {}, outputs = {};  // made when asked for
};
// NOLINTEND(readability-identifier-naming)

namespace {

static_assert(static_cast<int>(DType::F32) == TESSERA_F32 &&
              static_cast<int>(DType::I64) == TESSERA_I64 &&
              static_cast<int>(DType::String) == TESSERA_STRING &&
              static_cast<int>(DType::U2) == TESSERA_U2);

std::string& last_error() {
  thread_local std::string error;
  return error;
}

/// Converts every error and exception to an error code.
template <class Call>
int guarded(Call call) noexcept {
  try {
    last_error().clear();
    const Expected<Done> done = call();
    if (done) return 0;
    last_error() = to_string(done.error());
  } catch (const std::bad_alloc&) {
    last_error() = "out of memory";  // short enough to need none
  } catch (const std::exception& problem) {
    try {
      last_error() = problem.what();
    } catch (...) {
      last_error().clear();
    }
  } catch (...) {
    last_error() = "unknown";
  }
  return 1;
}

Diagnostic misuse(const char* message) {
  return {.id = "program-argument", .message = message};
}

Expected<Done> describe(const tessera_program* program, std::size_t index, bool inputs,
                        tessera_value* value) {
  if (program == nullptr || value == nullptr) return misuse("a null pointer is given");
  const runtime::Program& all = program->loaded->program();
  const auto& list = inputs ? all.inputs : all.outputs;
  if (index >= list.size()) return misuse("there is no value of this number");
  const runtime::Value& found = all.values[list[index]];
  *value = {.name = found.name.c_str(),
            .dtype = static_cast<tessera_dtype>(found.dtype),
            .is_sized = found.home == runtime::Value::Home::Boxed ? 0 : 1,
            .rank = found.shape.size(),
            .shape = found.shape.data(),
            .bytes = static_cast<std::size_t>(found.bytes)};
  return Done{};
}

Expected<Done> give_memory(tessera_session* session, bool inputs, std::size_t index,
                           void** memory) {
  if (session == nullptr || memory == nullptr) return misuse("a null pointer is given");
  const runtime::Program& program = session->loaded->program();
  const auto& list = inputs ? program.inputs : program.outputs;
  if (index >= list.size()) return misuse("there is no value of this number");
  const runtime::Value& value = program.values[list[index]];
  if (value.home == runtime::Value::Home::Boxed)
    return misuse("the size of this value is not known before a run");
  tessera_session::Memory& made = inputs ? session->inputs : session->outputs;
  made.resize(list.size());
  if (!made[index])
    made[index] = session->session->host_memory(static_cast<std::size_t>(value.bytes));
  *memory = made[index].get();
  return Done{};
}

Expected<Datum> datum_of(const tessera_tensor& tensor, bool kept) {
  // Read as an integer: a caller in C may pass a number that the enumeration does not have.
  int dtype = 0;
  static_assert(sizeof tensor.dtype == sizeof dtype);
  std::memcpy(&dtype, &tensor.dtype, sizeof dtype);
  if (dtype < TESSERA_F16 || dtype == TESSERA_STRING || dtype > TESSERA_U2)
    return misuse("an array of this type cannot be given");
  if ((tensor.rank > 0 && tensor.shape == nullptr) || (tensor.bytes > 0 && tensor.data == nullptr))
    return misuse("a null pointer is given");
  Tensor result{static_cast<DType>(dtype), {tensor.shape, tensor.shape + tensor.rank}, {}};
  const auto count = tessera::element_count(result.shape);
  const auto width = static_cast<std::size_t>(byte_width(result.dtype));
  if (!count || static_cast<std::size_t>(*count) > tensor.bytes / width ||
      static_cast<std::size_t>(*count) * width != tensor.bytes)
    return misuse("the bytes of an array are not those of its shape");
  const std::span memory(static_cast<const std::byte*>(tensor.data), tensor.bytes);
  result.bytes = kept ? Bytes::copy(memory) : Bytes(nullptr, memory);
  return Datum(std::move(result));
}

Expected<tessera_tensor> tensor_of(const Datum& datum) {
  if (!datum.is_tensor() || datum.tensor().dtype == DType::String)
    return misuse("a result is no array of numbers");
  const Tensor& tensor = datum.tensor();
  return tessera_tensor{.dtype = static_cast<tessera_dtype>(tensor.dtype),
                        .rank = tensor.shape.size(),
                        .shape = tensor.shape.data(),
                        .data = tensor.bytes.data(),
                        .bytes = tensor.bytes.size()};
}

}  // namespace

const char* tessera_error(void) {
  return last_error().c_str();
}

int tessera_open(const char* file, tessera_program** program) {
  return guarded([&]() -> Expected<Done> {
    if (file == nullptr || program == nullptr) return misuse("a null pointer is given");
    *program = nullptr;
    TESSERA_TRY(auto loaded, tessera::engine::open(file));
    *program = new tessera_program{std::move(loaded)};
    return Done{};
  });
}

void tessera_close(tessera_program* program) {
  delete program;
}

size_t tessera_input_count(const tessera_program* program) {
  return program == nullptr ? 0 : program->loaded->program().inputs.size();
}

size_t tessera_output_count(const tessera_program* program) {
  return program == nullptr ? 0 : program->loaded->program().outputs.size();
}

int tessera_input(const tessera_program* program, size_t index, tessera_value* value) {
  return guarded([&] { return describe(program, index, true, value); });
}

int tessera_output(const tessera_program* program, size_t index, tessera_value* value) {
  return guarded([&] { return describe(program, index, false, value); });
}

int tessera_start(const tessera_program* program, int threads, tessera_session** session) {
  return guarded([&]() -> Expected<Done> {
    if (program == nullptr || session == nullptr) return misuse("a null pointer is given");
    *session = nullptr;
    TESSERA_TRY(auto made, tessera::engine::make_session(program->loaded, {.threads = threads}));
    *session = new tessera_session{program->loaded, std::move(made)};
    return Done{};
  });
}

void tessera_stop(tessera_session* session) {
  delete session;
}

int tessera_input_memory(tessera_session* session, size_t index, void** memory) {
  return guarded([&] { return give_memory(session, true, index, memory); });
}

int tessera_output_memory(tessera_session* session, size_t index, void** memory) {
  return guarded([&] { return give_memory(session, false, index, memory); });
}

int tessera_run(tessera_session* session, const void* const* inputs, size_t input_count,
                void* const* outputs, size_t output_count) {
  return guarded([&]() -> Expected<Done> {
    if (session == nullptr || (inputs == nullptr && input_count > 0) ||
        (outputs == nullptr && output_count > 0))
      return misuse("a null pointer is given");
    return session->session->run(
        std::span(reinterpret_cast<const std::byte* const*>(inputs), input_count),
        std::span(reinterpret_cast<std::byte* const*>(outputs), output_count));
  });
}

int tessera_run_tensors(tessera_session* session, const tessera_tensor* inputs, size_t input_count,
                        tessera_tensor* outputs, size_t output_count) {
  return guarded([&]() -> Expected<Done> {
    if (session == nullptr || (inputs == nullptr && input_count > 0) ||
        (outputs == nullptr && output_count > 0))
      return misuse("a null pointer is given");
    const runtime::Program& program = session->loaded->program();
    if (input_count != program.inputs.size() || output_count != program.outputs.size())
      return misuse("another number of inputs or outputs is given");
    std::vector<Datum> data;
    for (std::size_t i = 0; i < input_count; ++i) {
      // Copies boxed inputs: a result may share their memory and outlive the caller's.
      const bool boxed = program.values[program.inputs[i]].home == runtime::Value::Home::Boxed;
      TESSERA_TRY(data.emplace_back(), datum_of(inputs[i], boxed));
    }
    TESSERA_TRY(session->results, session->session->run(data));
    for (std::size_t i = 0; i < output_count; ++i) {
      TESSERA_TRY(outputs[i], tensor_of(session->results[i]));
    }
    return Done{};
  });
}
