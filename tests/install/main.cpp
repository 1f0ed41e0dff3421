// What a user of the installed library writes: find_package(tessera), then this.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "tessera/support/tensor.h"

int main() {
  const std::vector<float> elements = {1, 2, 3, 4, 5, 6};
  const auto tensor = tessera::Tensor::of<float>(tessera::DType::F32, {2, 3}, elements);
  const std::int64_t last = tensor.count() - 1;
  std::printf("%lld elements, the last one is %g\n", static_cast<long long>(tensor.count()),
              tessera::number_at(tensor, last));
  return tessera::number_at(tensor, last) == 6 ? 0 : 1;
}
