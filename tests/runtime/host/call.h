#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/runtime/host/host.h"

namespace tessera::host {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

inline Tensor floats(std::vector<std::int64_t> shape, const std::vector<float>& elements) {
  return Tensor::of<float>(DType::F32, std::move(shape), elements);
}
inline Tensor integers(std::vector<std::int64_t> shape, const std::vector<std::int64_t>& elements) {
  return Tensor::of<std::int64_t>(DType::I64, std::move(shape), elements);
}
inline Tensor bools(std::vector<std::int64_t> shape, const std::vector<std::uint8_t>& elements) {
  return Tensor::of<std::uint8_t>(DType::Bool, std::move(shape), elements);
}
inline Tensor texts(std::vector<std::int64_t> shape, std::vector<std::string> elements) {
  return Tensor::of_strings(std::move(shape), std::move(elements));
}
inline Tensor scalar(std::int64_t value) {
  return integers({}, {value});
}

/// The numbers, rounded to any dtype.
inline Tensor numbers(DType dtype, std::vector<std::int64_t> shape,
                      const std::vector<double>& elements) {
  Buffer buffer(elements.size() * static_cast<std::size_t>(byte_width(dtype)));
  for (std::size_t i = 0; i < elements.size(); ++i)
    store_number(dtype, buffer.data(), static_cast<std::int64_t>(i), elements[i]);
  return {dtype, std::move(shape), std::move(buffer).freeze()};
}

/// Every dtype that has numbers.
inline std::vector<DType> number_dtypes() {
  return {DType::F16, DType::BF16, DType::F32, DType::F64, DType::I8,  DType::I16,
          DType::I32, DType::I64,  DType::U8,  DType::U16, DType::U32, DType::U64};
}

struct Request {
  std::string_view name;
  std::vector<Datum> inputs = {};
  Attrs attrs = {};
  int outputs = 1;
  std::int64_t memory_limit = 1 << 20;
};

inline Results result_of(const Request& request) {
  const Function function = find(request.name);
  if (function == nullptr) return Diagnostic{.id = "test", .message = "no such function"};
  return function({.inputs = request.inputs,
                   .attrs = request.attrs,
                   .outputs = request.outputs,
                   .memory_limit = request.memory_limit});
}

/// The results of a call that is allowed; as many nothings if it is refused.
inline std::vector<Datum> results_of(const Request& request) {
  const Results results = result_of(request);
  if (!results) {
    ADD_FAILURE() << to_string(results.error());
    return std::vector<Datum>(static_cast<std::size_t>(request.outputs));
  }
  EXPECT_EQ(results->size(), static_cast<std::size_t>(request.outputs));
  return *results;
}

inline void expect_tensor(const Datum& found, const Tensor& expected) {
  ASSERT_TRUE(found.is_tensor());
  const Tensor& tensor = found.tensor();
  EXPECT_EQ(to_string(tensor.dtype), to_string(expected.dtype));
  EXPECT_EQ(tensor.shape, expected.shape);
  if (expected.dtype == DType::String) {
    ASSERT_NE(tensor.strings, nullptr);
    EXPECT_EQ(*tensor.strings, *expected.strings);
    return;
  }
  ASSERT_EQ(tensor.bytes.size(), expected.bytes.size());
  for (std::int64_t i = 0; i < expected.count(); ++i) {
    const double a = number_at(tensor, i), b = number_at(expected, i);
    EXPECT_TRUE(a == b || (a != a && b != b)) << "at " << i << ": " << a << " instead of " << b;
  }
}

/// The first result of a call is this tensor.
inline void expect_result(const Request& request, const Tensor& expected) {
  expect_tensor(results_of(request).front(), expected);
}

/// The call is refused under the function's own id, with this message.
inline void expect_refused(const Request& request, std::string_view message) {
  const Results results = result_of(request);
  ASSERT_FALSE(results) << request.name << " accepted the call";
  EXPECT_EQ(results.error().id, "host-" + std::string(request.name));
  EXPECT_EQ(results.error().message, message);
}

/// The call asks for more memory than it may have: so many elements of so many bytes.
inline void expect_too_large(const Request& request, std::string_view elements) {
  const Results results = result_of(request);
  ASSERT_FALSE(results) << request.name << " accepted the call";
  EXPECT_EQ(results.error().id, "memory-limit");
  EXPECT_EQ(results.error().message,
            fmt::format("{}: {} do not fit into memory", request.name, elements));
}

}  // namespace tessera::host
