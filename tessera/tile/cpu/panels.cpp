#include "tessera/tile/cpu/panels.h"

#include <algorithm>
#include <array>

namespace tessera::tile::cpu {
namespace {

using machine::Architecture;
using machine::Machine;

struct Row {
  Architecture architecture;
  int registers;
  Products products;
  RegisterTile tile;
};
constexpr Architecture arm = Architecture::AArch64, x86 = Architecture::X86_64;
constexpr std::array rows = {
    Row{arm, 32, Products::Lanes, {4, 6}},
    Row{arm, 32, Products::Blocks, {8, 3}},
    Row{x86, 32, Products::Lanes, {12, 2}},
    Row{x86, 16, Products::Lanes, {6, 2}},
};

}  // namespace

RegisterTile register_tile(Products products, const Machine& machine) {
  return std::find_if(rows.begin(), rows.end() - 1,
                      [&](const Row& row) {
                        return row.architecture == machine.architecture &&
                               row.products == products &&
                               row.registers <= machine.vector_registers;
                      })
      ->tile;
}

Panels panels_for(DType factors, std::int64_t rows, const Machine& machine) {
  const int lanes = machine.vector_bytes / byte_width(DType::F32);
  const auto wide = [&](Products products) {
    return std::int64_t{register_tile(products, machine).vectors} * lanes;
  };
  if (factors == DType::BF16 && machine.architecture == arm && machine.has("bf16"))
    return {DType::BF16, wide(Products::Blocks), 4};
  if (factors == DType::BF16 && machine.architecture == x86 && machine.has("avx512bf16"))
    return {DType::BF16, wide(Products::Lanes), 2};
  if (factors == DType::I8 && machine.architecture == arm && machine.has("i8mm"))
    return {DType::I8, wide(Products::Blocks), 8};
  if (factors == DType::I8 && machine.architecture == x86 &&
      (machine.has("avx512vnni") || (machine.has("avxvnni") && machine.vector_bytes <= 32)))
    return {DType::I8, wide(Products::Lanes), 4};
  const DType plain = factors == DType::I8 ? DType::I8 : DType::F32;
  // One row streams b: half of the registers take sums.
  if (rows == 1) return {plain, std::int64_t{machine.vector_registers} / 2 * lanes, 1};
  return {plain, wide(Products::Lanes), 1};
}

}  // namespace tessera::tile::cpu
