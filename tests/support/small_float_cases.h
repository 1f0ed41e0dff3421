#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "tessera/support/dtype.h"

namespace tessera::testing {

/// The numbers of every small float by their bits, as ml_dtypes of Python has them.
inline std::map<DType, std::vector<double>> small_floats() {
  std::ifstream file(std::string(TESSERA_SOURCE_DIR) + "/tests/fixtures/small_floats.txt");
  std::map<DType, std::vector<double>> result;
  std::string name, number;
  std::size_t count = 0;
  while (file >> name >> count) {
    std::vector<double>& numbers = result[*parse_dtype(name)];
    while (numbers.size() < count && file >> number) numbers.push_back(std::stod(number));
  }
  return result;
}

/// The finite numbers of at least 0 in order; their bits are their positions.
inline std::vector<double> not_negative(DType dtype, const std::vector<double>& numbers) {
  const std::size_t end = dtype == DType::F8E8M0 ? numbers.size() : numbers.size() / 2;
  std::vector<double> result;
  for (std::size_t i = 0; i < end && std::isfinite(numbers[i]); ++i) result.push_back(numbers[i]);
  return result;
}

/// Numbers, those between neighbours, and what comes right before and after these in type T, of
/// both signs; and numbers that are special or far away.
template <class T>
std::vector<double> boundaries(DType dtype, const std::vector<double>& numbers) {
  const std::vector<double> finite = not_negative(dtype, numbers);
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  std::vector<double> points = finite;
  // Beyond the largest number the next one would be as far away as the one before.
  points.push_back(2 * finite.back() - finite[finite.size() - 2]);
  for (std::size_t i = 0; i < finite.size(); ++i) points.push_back((points[i] + points[i + 1]) / 2);
  for (const double far : {1e-30, 1e-40, 1e5, 1e30, 3e38}) points.push_back(far);
  std::vector<double> result;
  for (const double point : points) {
    const T near = static_cast<T>(point);
    for (const T x : {near, std::nextafter(near, T{0}), std::nextafter(near, kInfinity)})
      for (const T with_sign : {x, -x}) result.push_back(with_sign);
  }
  result.push_back(kInfinity);
  result.push_back(-kInfinity);
  result.push_back(std::numeric_limits<T>::quiet_NaN());
  return result;
}

}  // namespace tessera::testing
