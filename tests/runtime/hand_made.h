#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/machine/features.h"
#include "tessera/runtime/session.h"

/// Programs as a compiler would make them, by hand.
namespace tessera::runtime::testing {

/// y[i] = 2 * x[i] + add, on i32, for n elements per program; fails with 7 where n is negative. Its
/// words: x, y, n, add. Made by clang from
///
///   int twice_plus(const u64* launch, i64 first, i64 last, char* scratch) {
///     const int* x = (const int*)launch[3];
///     int* y = (int*)launch[4];
///     i64 n = launch[5];
///     int add = (int)launch[6];
///     if (n < 0) return 7;
///     for (i64 i = first * n; i < last * n; ++i) y[i] = 2 * x[i] + add;
///     return 0;
///   }
inline Bytes twice_plus() {
  constexpr std::string_view kAArch64 =
      "081440f96802f8b7097d019b0a7d029b3f010aebaa0100544a0001cb2cf57ed3093040b9087d0a9b0ba841a94a01"
      "0c8b"
      "6b010c8b6c4540b8080500f12c050c0b4c4500b881ffff54e0031f2ac0035fd6e0008052c0035fd6";
  constexpr std::string_view kX86 =
      "488b47284885c0783c480faff0480fafd031c04839d67d2c488b4f184c8b47208b7f30666666662e0f1f84000000"
      "0000"
      "448b0cb1468d0c4f45890cb048ffc64839d67cecc3b807000000c3";
  const bool arm = machine::host_architecture() == machine::Architecture::AArch64;
  std::vector<std::byte> code;
  for (std::string_view hex = arm ? kAArch64 : kX86; !hex.empty(); hex.remove_prefix(2))
    code.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(0, 2)), nullptr, 16)));
  return Bytes::copy(code);
}

class Maker {
 public:
  Maker() {
    program.name = "hand-made";
    program.architecture = machine::to_string(machine::host_architecture());
    program.image = twice_plus();
    program.kernels = {{.name = "twice_plus", .scratch_bytes = 256}};
  }

  ValueIndex input(const std::string& name, std::vector<std::int64_t> shape,
                   DType dtype = DType::I32) {
    program.inputs.push_back(
        value(name, Value::Home::Input, std::move(shape), dtype, std::ssize(program.inputs)));
    return program.inputs.back();
  }
  ValueIndex output(const std::string& name, std::vector<std::int64_t> shape,
                    DType dtype = DType::I32) {
    program.outputs.push_back(
        value(name, Value::Home::Output, std::move(shape), dtype, std::ssize(program.outputs)));
    return program.outputs.back();
  }
  ValueIndex arena(const std::string& name, std::vector<std::int64_t> shape,
                   DType dtype = DType::I32) {
    const ValueIndex index =
        value(name, Value::Home::Arena, std::move(shape), dtype, program.arena_bytes);
    program.arena_bytes += (program.values[index].bytes + kAlignment - 1) / kAlignment * kAlignment;
    return index;
  }
  /// All weights of the program.
  ValueIndex weights(const std::string& name, const std::vector<std::int32_t>& elements) {
    program.weights = Bytes::copy(std::as_bytes(std::span(elements)));
    return value(name, Value::Home::Weight, {std::ssize(elements)}, DType::I32, 0);
  }
  ValueIndex boxed(const std::string& name, DType dtype = DType::I64) {
    return value(name, Value::Home::Boxed, {}, dtype, 0);
  }
  ValueIndex value(const std::string& name, Value::Home home, std::vector<std::int64_t> shape,
                   DType dtype, std::int64_t offset) {
    const std::int64_t bytes = element_count(shape).value_or(0) * byte_width(dtype);
    program.values.push_back({name, home, dtype, std::move(shape), offset, bytes});
    return static_cast<ValueIndex>(program.values.size() - 1);
  }

  std::size_t add(Step step, Program::Note note = {}) {
    program.steps.push_back(std::move(step));
    program.notes.push_back(std::move(note));
    return program.steps.size() - 1;
  }
  /// y = 2 * x + plus, on `programs` programs of n elements.
  std::size_t twice(Address x, Address y, std::int64_t programs, std::int64_t n, int plus = 1) {
    const std::int64_t bytes = programs * n * 4;
    return add(step::Launch{
        .grid = {programs, 1, 1},
        .words = {0, 0, static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(plus)},
        .patches = {{0, x, bytes}, {1, y, bytes}}});
  }
  std::size_t host(const std::string& text, std::vector<ValueIndex> inputs,
                   std::vector<ValueIndex> outputs) {
    program.texts.push_back(text);
    return add(step::Host{static_cast<std::uint32_t>(program.texts.size() - 1), std::move(inputs),
                          std::move(outputs)});
  }
  template <class T>
  T& step(std::size_t index) {
    return std::get<T>(program.steps[index]);
  }

  Program program;
};

inline Tensor numbers(const std::vector<std::int32_t>& elements) {
  return Tensor::of<std::int32_t>(DType::I32, {std::ssize(elements)}, elements);
}

inline std::vector<std::int32_t> elements_of(const Datum& datum) {
  const auto elements = datum.tensor().as<std::int32_t>();
  return {elements.begin(), elements.end()};
}

}  // namespace tessera::runtime::testing
