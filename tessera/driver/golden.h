#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "tessera/support/expected.h"
#include "tessera/support/tensor.h"

namespace tessera {

/// Stored outputs of a model: samples and two sums of each.
struct Golden {
  struct Output {
    std::vector<std::int64_t> shape;
    double mean = 0, l2 = 0;      // of the elements that are finite
    std::int64_t not_finite = 0;  // how many are not
    std::vector<std::int64_t> at;
    std::vector<double> values;
    std::vector<std::string> text = {};  // of a tensor of text: all elements, and nothing else
  };
  std::map<std::string, Output> outputs = {};
  std::map<std::string, std::int64_t> dims = {};  // what the symbolic dimensions were
  std::string producer = {}, inputs = {};         // for people
};

Expected<Golden> read_golden(const std::filesystem::path& path);
Expected<Done> write_golden(const Golden& golden, const std::filesystem::path& path);

/// What is stored of a tensor: up to so many samples, spread over it at random with a fixed seed.
Golden::Output golden_of(const Tensor& tensor,
                         std::int64_t most_samples = std::numeric_limits<std::int64_t>::max());

/// How far an output is from its golden one. With rms = l2 / sqrt(count): `error` is the largest
/// |y - g| / rms over the samples, `mean_error` |mean - golden mean| / rms, `l2_error` the relative
/// difference of the norms. Sums are of finite elements; a NaN or an infinity where another number
/// should be is infinitely far away.
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
