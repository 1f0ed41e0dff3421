#pragma once

#include <string>
#include <vector>

#include "tessera/support/expected.h"
#include "tessera/support/rng.h"
#include "tessera/support/tensor.h"
#include "tessera/tile/argument.h"
#include "tessera/tile/kernel.h"

namespace tessera {

/// Arguments in memory of their own, drawn by a seed.
struct Arguments {
  Rng rng{1};
  std::vector<std::vector<std::byte>> memory = {};
  std::vector<tile::Argument> list = {};

  std::byte* fill(DType dtype, std::int64_t count) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(count * byte_width(dtype)));
    for (std::int64_t i = 0; i < count; ++i) {
      if (is_float(dtype)) {
        store_number(dtype, bytes.data(), i, static_cast<double>(rng.below(2000)) / 500.0 - 2.0);
      } else {
        store_integer(dtype, bytes.data(), i, static_cast<std::int64_t>(rng.below(100)));
      }
    }
    memory.push_back(std::move(bytes));
    return memory.back().data();
  }
  Arguments& view(DType dtype, tile::Extents shape) {
    std::byte* data = fill(dtype, tile::Type::tile(dtype, shape).count());
    list.push_back(tile::Argument::view(dtype, data, std::move(shape)));
    return *this;
  }
  Arguments& pointer(DType dtype, std::int64_t count) {
    list.push_back(tile::Argument::pointer(dtype, fill(dtype, count), count * byte_width(dtype)));
    return *this;
  }
  Arguments& integer(DType dtype, std::int64_t value) {
    list.push_back(tile::Argument::integer(dtype, value));
    return *this;
  }
  Arguments& number(DType dtype, double value) {
    list.push_back(tile::Argument::number(dtype, value));
    return *this;
  }
  /// A copy has memory of its own; its arguments have to point there.
  void point_to_memory() {
    std::size_t next = 0;
    for (tile::Argument& argument : list) {
      if (!argument.type.is_number()) argument.data = memory[next++].data();
    }
  }
};

/// A kernel that is compared with the interpreter.
struct Case {
  std::string name;
  Expected<tile::Kernel> kernel;
  Arguments arguments;
  tile::Grid grid;
  double tolerance = 0;
};

std::vector<Case> cases();

}  // namespace tessera
