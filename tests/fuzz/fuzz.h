#pragma once

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tessera/interp/interp.h"
#include "tessera/ir/graph.h"
#include "tessera/support/bytes.h"

/// What the fuzzers share. Each gives any bytes to one reader: a diagnostic is a good answer; a
/// crash, an InternalError, a second of work or a gigabyte of memory is a finding.
namespace tessera::fuzz {

inline Bytes bytes_of(const std::uint8_t* data, std::size_t size) {
  return Bytes::copy(std::as_bytes(std::span(data, size)));
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Ends the process if a property does not hold.
inline void require(bool holds, std::string_view property, std::string_view details = {}) {
  if (holds) return;
  fmt::print(stderr, "finding: {}\n{}\n", property, details);
  std::abort();
}

template <class T>
const T& require(const Expected<T>& result, std::string_view property) {
  if (!result) require(false, property, to_string(result.error()));
  return *result;
}

/// Is set a while after it was made.
class Deadline {
 public:
  explicit Deadline(std::chrono::milliseconds after)
      : watcher_([this, after](const std::stop_token& ended) {
          std::unique_lock lock(mutex_);
          wake_.wait_for(lock, ended, after, [] { return false; });
          passed_ = true;
        }) {}

  const std::atomic<bool>* passed() const { return &passed_; }

 private:
  std::atomic<bool> passed_ = false;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread watcher_;  // last: it uses the others
};

/// An input of this type, with open sizes of 2 and elements 0, 1, 2, 0, ...; nothing if it is not
/// small.
inline std::optional<Datum> small_input(const Type& type) {
  constexpr std::int64_t most_elements = 1 << 16;
  std::vector<std::int64_t> shape;
  for (const Dim& dim : type.shape.value_or(Shape{2, 2}))
    shape.push_back(
        dim.substituted([](std::string_view) { return Dim(2); }).constant().value_or(-1));
  const auto count = element_count(shape);
  if (!count || *count > most_elements || type.kind != Type::Kind::Tensor) return {};
  if (type.dtype == DType::String)
    return Tensor::of_strings(std::move(shape),
                              std::vector<std::string>(static_cast<std::size_t>(*count), "a b"));
  Buffer buffer(static_cast<std::size_t>(*count * byte_width(type.dtype)));
  for (std::int64_t i = 0; i < *count; ++i)
    store_integer(type.dtype, buffer.data(), i, i % (type.dtype == DType::Bool ? 2 : 3));
  return Tensor{type.dtype, std::move(shape), std::move(buffer).freeze()};
}

/// Runs a graph if it is small.
inline void run_small(const Graph& graph) {
  if (graph.nodes().size() > 64) return;
  std::vector<Datum> inputs;
  for (const ValueId input : graph.inputs()) {
    auto datum = small_input(graph.type(input));
    if (!datum || inputs.size() == 16) return;
    inputs.push_back(*std::move(datum));
  }
  const Deadline deadline(std::chrono::seconds(1));
  (void)interp::run(graph, inputs, {.memory_limit = 16 << 20, .stop = deadline.passed()});
}

}  // namespace tessera::fuzz
