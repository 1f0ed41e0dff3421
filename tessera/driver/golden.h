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

/// Golden outputs of a model: samples, mean and norm of each output.
struct Golden {
  struct Output {
    std::vector<std::int64_t> shape;
    double mean = 0, l2 = 0;      // over the finite elements
    std::int64_t not_finite = 0;  // number of NaN and infinite elements
    std::vector<std::int64_t> at;
    std::vector<double> values;
    std::vector<std::string> text = {};  // all elements of a string tensor
  };
  std::map<std::string, Output> outputs = {};
  std::map<std::string, std::int64_t> dims = {};  // sizes of the symbolic dimensions
  std::string producer = {}, inputs = {};         // provenance, informational
};

Expected<Golden> read_golden(const std::filesystem::path& path);
Expected<Done> write_golden(const Golden& golden, const std::filesystem::path& path);

/// Golden form of a tensor: up to `most_samples` samples, at random positions with a fixed seed.
Golden::Output golden_of(const Tensor& tensor,
                         std::int64_t most_samples = std::numeric_limits<std::int64_t>::max());

/// Error of an output against its golden form. With rms = l2 / sqrt(count): `error` is the largest
/// |y - g| / rms over the samples, `mean_error` |mean - golden mean| / rms, `l2_error` the relative
/// difference of the norms. Means and norms are over finite elements; an unexpected NaN or infinity
/// is an infinite error.
struct Distance {
  double error = 0, mean_error = 0, l2_error = 0;
  std::string problem = {};  // mismatch other than numbers: different shapes, a missing output
  bool within(double tolerance) const {
    return problem.empty() && error <= tolerance && mean_error <= tolerance &&
           l2_error <= tolerance;
  }
};
Distance distance(const Tensor& output, const Golden::Output& golden);
/// Error against a full tensor: every element is a sample.
Distance distance(const Tensor& output, const Tensor& expected);

}  // namespace tessera
