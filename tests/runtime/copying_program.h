#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "tests/runtime/hand_made.h"

/// A GPU program without kernels, which runs wherever there is a driver.
namespace tessera::runtime::testing {

/// Inputs of these sizes in bytes; the outputs are the same in reverse order, copied twice.
inline Program copying_program(const std::vector<std::int64_t>& sizes) {
  Maker maker;
  maker.program.architecture = "sm_80";
  maker.program.image = {};
  maker.program.kernels = {};
  std::vector<ValueIndex> inputs;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    inputs.push_back(maker.input(fmt::format("x{}", i), {sizes[i]}, DType::U8));
  for (std::size_t i = sizes.size(); i-- > 0;) {
    const ValueIndex between = maker.arena(fmt::format("a{}", i), {sizes[i]}, DType::U8);
    const ValueIndex output = maker.output(fmt::format("y{}", i), {sizes[i]}, DType::U8);
    maker.add(step::Copy{.from = {inputs[i]}, .to = {between}, .bytes = sizes[i]});
    maker.add(step::Copy{.from = {between}, .to = {output}, .bytes = sizes[i]});
  }
  return maker.program;
}

/// Bytes that differ from place to place and from seed to seed.
inline std::vector<std::byte> bytes_of(std::int64_t size, unsigned seed) {
  std::vector<std::uint64_t> words(static_cast<std::size_t>(size) / 8 + 1);
  std::uint64_t state = seed;
  for (std::uint64_t& word : words)
    word = state = state * 6364136223846793005U + 1442695040888963407U;
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  if (size > 0) std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

/// Inputs of a copying program, by seed.
inline std::vector<std::vector<std::byte>> inputs_of(const std::vector<std::int64_t>& sizes,
                                                     unsigned seed) {
  std::vector<std::vector<std::byte>> inputs;
  for (const std::int64_t size : sizes)
    inputs.push_back(bytes_of(size, seed * 1000 + static_cast<unsigned>(inputs.size())));
  return inputs;
}

/// The inputs as tensors, each at an offset from a multiple of 64 bytes.
inline std::vector<Datum> tensors_of(const std::vector<std::vector<std::byte>>& inputs,
                                     std::size_t offset = 0) {
  std::vector<Datum> tensors;
  for (const auto& input : inputs) {
    Buffer buffer(input.size() + offset);
    std::ranges::copy(input, buffer.data() + offset);
    tensors.emplace_back(Tensor{
        DType::U8, {std::ssize(input)}, std::move(buffer).freeze().slice(offset, input.size())});
  }
  return tensors;
}

inline bool are_reversed(const std::vector<std::vector<std::byte>>& inputs,
                         std::span<const Datum> outputs) {
  return inputs.size() == outputs.size() &&
         std::ranges::equal(
             inputs.rbegin(), inputs.rend(), outputs.begin(), outputs.end(),
             [](const auto& input, const Datum& output) {
               const Bytes& bytes = output.tensor().bytes;
               return input.size() == bytes.size() &&
                      (input.empty() || std::memcmp(input.data(), bytes.data(), input.size()) == 0);
             });
}

}  // namespace tessera::runtime::testing
