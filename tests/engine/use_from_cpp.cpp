// What a user of the C++ interface writes: runs a program on zeros and prints the results.
#include <cstdio>

#include "tessera/engine/engine.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto fail = [](const tessera::Diagnostic& why) {
    std::fprintf(stderr, "%s\n", to_string(why).c_str());
    return 1;
  };
  const auto program = tessera::engine::open(argv[1]);
  if (!program) return fail(program.error());
  auto session = tessera::engine::make_session(*program);
  if (!session) return fail(session.error());
  std::vector<tessera::Datum> inputs;
  for (const auto index : (*program)->program().inputs) {
    const auto& value = (*program)->program().values[index];
    tessera::Buffer zeros(static_cast<std::size_t>(value.bytes));
    inputs.emplace_back(tessera::Tensor{value.dtype, value.shape, std::move(zeros).freeze()});
  }
  const auto outputs = (*session)->run(inputs);
  if (!outputs) return fail(outputs.error());
  for (const tessera::Datum& output : *outputs) {
    std::printf("result");
    for (std::int64_t i = 0; i < output.tensor().count(); ++i)
      std::printf(" %g", number_at(output.tensor(), i));
    std::printf("\n");
  }
}
