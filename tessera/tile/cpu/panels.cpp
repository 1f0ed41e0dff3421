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
  MatmulUnit unit;
  RegisterTile tile;
};
constexpr Architecture arm = Architecture::AArch64, x86 = Architecture::X86_64;
constexpr std::array rows = {
    Row{arm, 32, MatmulUnit::Lanes, {4, 6}},
    Row{arm, 32, MatmulUnit::Blocks, {8, 3}},
    Row{x86, 32, MatmulUnit::Lanes, {12, 2}},
    Row{x86, 16, MatmulUnit::Lanes, {6, 2}},
};

}  // namespace

RegisterTile register_tile(MatmulUnit unit, const Machine& machine) {
  return std::find_if(rows.begin(), rows.end() - 1,
                      [&](const Row& row) {
                        return row.architecture == machine.architecture && row.unit == unit &&
                               row.registers <= machine.vector_registers;
                      })
      ->tile;
}

int register_rows(std::int64_t panel_columns, const Machine& machine) {
  const RegisterTile usual = register_tile(MatmulUnit::Lanes, machine);
  const int lanes = machine.vector_bytes / byte_width(DType::F32);
  const auto vectors = static_cast<int>((panel_columns + lanes - 1) / lanes);
  // Panels beyond twice the usual width are streamed for a single row.
  if (vectors <= usual.vectors || vectors > 2 * usual.vectors) return usual.rows;
  return std::max(1, usual.rows * usual.vectors / vectors);
}

Panels panels_for(DType factors, std::int64_t rows, const Machine& machine) {
  const int lanes = machine.vector_bytes / byte_width(DType::F32);
  const auto wide = [&](MatmulUnit unit) {
    return std::int64_t{register_tile(unit, machine).vectors} * lanes;
  };
  if (factors == DType::BF16 && machine.architecture == arm && machine.has("bf16"))
    return {DType::BF16, wide(MatmulUnit::Blocks), 4};
  if (factors == DType::BF16 && machine.architecture == x86 && machine.has("avx512bf16"))
    return {DType::BF16, wide(MatmulUnit::Lanes), 2};
  if (factors == DType::I8 && machine.architecture == arm && machine.has("i8mm"))
    return {DType::I8, wide(MatmulUnit::Blocks), 8};
  if (factors == DType::I8 && machine.architecture == x86 &&
      (machine.has("avx512vnni") || (machine.has("avxvnni") && machine.vector_bytes <= 32)))
    return {DType::I8, wide(MatmulUnit::Lanes), 4};
  const DType plain = factors == DType::I8 ? DType::I8 : DType::F32;
  // One row streams b: half of the registers are accumulators.
  if (rows == 1) return {plain, std::int64_t{machine.vector_registers} / 2 * lanes, 1};
  return {plain, wide(MatmulUnit::Lanes), 1};
}

}  // namespace tessera::tile::cpu
