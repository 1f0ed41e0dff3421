#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tessera/tile/builder.h"
#include "tessera/triton/module.h"

namespace tessera::triton {

/// A TTIR value in tile IR.
struct Lowered {
  Type type = {};
  tile::ValueId id = 0;
};

/// Translator of one kernel from TTIR to tile IR. The first error is kept by the builder; what is
/// lowered after it has no meaning and does no harm.
class Lowering {
 public:
  Lowering(const Module& module, std::string name) : module_(module), builder_(std::move(name)) {}

  Expected<tile::Kernel> lower(const Function& function);

 private:
  using Values = std::vector<Lowered>;
  /// Names of the values that are visible, by function.
  using Scope = std::unordered_map<std::string, Lowered>;

  // lower.cpp: structure and control flow
  tile::Type tile_type(const Type& type) const;
  /// Lowers a block and, under its branches, the blocks that follow it; the operands of the
  /// terminator. Blocks that several branches lead to, as a common return, are lowered for each.
  Values lower_blocks(const Region& region, std::size_t block, std::span<const Lowered> arguments);
  Values lower_block(const Region& region, const Block& block);
  Values follow(const Region& region, const Successor& successor);
  /// Lowers the operations of a region of one block; the operands of its terminator.
  Values lower_region(const Region& region, std::span<const Lowered> arguments);
  void lower_op(const Operation& op);
  void lower_for(const Operation& op);
  void lower_if(const Operation& op);
  void lower_while(const Operation& op);
  void lower_call(const Operation& op);
  bool lower_structure(const Operation& op);

  // lower_arith.cpp
  bool lower_arith(const Operation& op);
  void lower_constant(const Operation& op);
  tile::ValueId constant_of(const Number& number, const Type& type);
  void lower_compare_integers(const Operation& op);
  void lower_compare_floats(const Operation& op);
  void lower_select(const Operation& op);
  void lower_cast(const Operation& op);
  tile::ValueId binary(tile::Function function, const Lowered& a, const Lowered& b,
                       bool is_unsigned);
  tile::ValueId integer_cast(const Lowered& x, const Type& to, bool is_unsigned);
  tile::ValueId float_cast(const Lowered& x, const Type& to, bool toward_zero);

  // float8.cpp
  /// Numbers of an 8-bit float format, from their bits, in f32.
  tile::ValueId decoded(Element format, tile::ValueId bits);
  /// Bits of the nearest number of an 8-bit float format; ties to even, or toward zero.
  tile::ValueId encoded(Element format, tile::ValueId numbers, bool toward_zero);

  // lower_tensor.cpp
  bool lower_tensor(const Operation& op);
  void lower_reduce(const Operation& op);
  void lower_scan(const Operation& op);
  void lower_dot(const Operation& op);
  void lower_dot_scaled(const Operation& op);
  void lower_histogram(const Operation& op);
  void lower_map_elementwise(const Operation& op);
  void lower_elementwise_if(const Operation& op);
  tile::ValueId matrix_product(tile::ValueId a, tile::ValueId b, tile::ValueId c);
  std::vector<tile::ValueId> combine(const Operation& op, const std::vector<tile::ValueId>& left,
                                     const std::vector<tile::ValueId>& right);

  // lower_memory.cpp
  bool lower_memory(const Operation& op);
  void lower_load(const Operation& op);
  void lower_store(const Operation& op);
  void lower_atomic(const Operation& op);
  void lower_cas(const Operation& op);
  void lower_poll(const Operation& op);
  tile::ValueId current(const Lowered& pointer);
  /// The integers in i64, their sums and products computed in i64.
  tile::ValueId widened(tile::ValueId x, std::unordered_map<tile::ValueId, tile::ValueId>& known);
  tile::ValueId to_memory(const Lowered& x);
  tile::ValueId from_memory(tile::ValueId x, const Type& type);

  // libdevice.cpp
  void lower_extern(const Operation& op);

  // values
  Lowered value(const std::string& name);
  Lowered operand(const Operation& op, std::size_t index);
  void define(const std::string& name, Lowered value) { scope_[name] = std::move(value); }
  void result(const Operation& op, Type type, tile::ValueId id);
  /// The type of the i-th result where the text states it.
  Type result_type(const Operation& op, std::size_t index = 0);
  Type pointee(const Type& type) const;
  std::int64_t integer_attribute(const Operation& op, const std::string& name,
                                 std::int64_t otherwise = 0);

  // shorthands of the builder, on values of one shape
  tile::ValueId number(tile::ValueId like, double value);
  tile::ValueId integer(tile::ValueId like, std::int64_t value);
  tile::ValueId map(tile::Function function, std::vector<tile::ValueId> in) {
    return builder_.map(function, std::move(in));
  }
  tile::ValueId select(tile::ValueId condition, tile::ValueId a, tile::ValueId b) {
    return builder_.map(tile::Function::Select, {condition, a, b});
  }
  tile::ValueId as(tile::ValueId x, DType dtype) { return builder_.cast(x, dtype); }
  tile::ValueId reinterpret(tile::ValueId x, DType dtype);
  tile::ValueId shaped(tile::ValueId x, const std::vector<std::int64_t>& shape);

  void unsupported(const Operation& op, const std::string& what, const std::string& help = {});
  void malformed(const Operation& op, const std::string& what);

  const Module& module_;
  tile::Builder builder_;
  Scope scope_;
  std::vector<std::string> calls_;         // functions being inlined
  std::vector<const Block*> open_blocks_;  // from the first to the one being lowered
  std::vector<std::int64_t> elementwise_;  // shape of the scalars in a function of elements
  tile::Source source_;                    // of the operation that is lowered
  std::int64_t lowered_ = 0;               // operations so far
};

/// Integer types of a width in bits, and the unsigned type as wide as another.
DType signed_bits(int width);
DType unsigned_bits(int width);
DType unsigned_of(DType dtype);

}  // namespace tessera::triton
