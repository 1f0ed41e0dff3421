// What a user of the installed library writes: find_package(tessera), then this.
#include <cstdio>
#include <vector>

#include "tessera/interp/interp.h"
#include "tessera/ir/builder.h"

int main() {
  using namespace tessera;  // NOLINT(google-build-using-namespace): a small program

  GraphBuilder g;
  const Val x = g.input("x", DType::F32, {Dim::symbol("n"), 2});
  const std::vector<float> weights = {1, 2, 3, 4, 5, 6};
  const Val w = g.constant(Tensor::of<float>(DType::F32, {2, 3}, weights), "w");
  const Val y = g.op("relu", {g.op("matmul", {x, w}) - 9.0});
  const Expected<Graph> graph = g.finish({{"y", y}});
  if (!graph) {
    std::fprintf(stderr, "%s\n", to_string(graph.error()).c_str());
    return 1;
  }

  const std::vector<float> input = {1, 2};
  const std::vector<Datum> inputs = {Tensor::of<float>(DType::F32, {1, 2}, input)};
  const auto outputs = interp::run(*graph, inputs, {});
  if (!outputs) {
    std::fprintf(stderr, "%s\n", to_string(outputs.error()).c_str());
    return 1;
  }
  const Tensor& out = outputs->front().tensor();
  std::printf("y = %g %g %g\n", number_at(out, 0), number_at(out, 1), number_at(out, 2));
  return number_at(out, 0) == 0 && number_at(out, 1) == 3 && number_at(out, 2) == 6 ? 0 : 1;
}
