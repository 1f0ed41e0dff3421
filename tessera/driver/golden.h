#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tessera/support/expected.h"
#include "tessera/support/tensor.h"

namespace tessera {

/// Stored answers of another runtime: samples and two sums of each output.
struct Golden {
  struct Output {
    std::vector<std::int64_t> shape;
    double mean = 0, l2 = 0;
    std::vector<std::int64_t> at;
    std::vector<double> values;
  };
  std::map<std::string, Output> outputs;
  std::map<std::string, std::int64_t> dims;  // what the symbolic dimensions were
};

Expected<Golden> read_golden(const std::filesystem::path& path);

/// How far an output is from its golden one. With rms = l2 / sqrt(count): `error` is the largest
/// |y - g| / rms over the samples, `mean_error` |mean - golden mean| / rms, `l2_error` the relative
/// difference of the norms. A NaN where a number should be is infinitely far away.
struct Distance {
  double error = 0, mean_error = 0, l2_error = 0;
  std::string problem = {};  // shapes that differ, a missing output
  bool within(double tolerance) const {
    return problem.empty() && error <= tolerance && mean_error <= tolerance &&
           l2_error <= tolerance;
  }
};
Distance distance(const Tensor& output, const Golden::Output& golden);
/// The same with every element as a sample.
Distance distance(const Tensor& output, const Tensor& expected);

}  // namespace tessera
