#include "tessera/tile/interp_compute.h"

#include <array>
#include <cstring>

#include "tessera/tile/interp_tile.h"

namespace tessera::tile::interp {
namespace {

class Computation {
 public:
  Computation(const Kernel& kernel, std::span<const Datum> values, const Operation& op, Datum& out)
      : kernel_(kernel), values_(values), op_(op), out_(out) {}

  void run() const {
    const std::int64_t count = result().count(), width = element_bytes(result());
    std::byte* out = out_.bytes();
    switch (op_.code) {
      case Code::Const: return fill(result().dtype, op_.literal, count, out);
      case Code::Iota: return iota(result().dtype, count, out);
      case Code::Reshape:
      case Code::Bitcast:
        std::memcpy(out, in(0).bytes(), static_cast<std::size_t>(out_.size()));
        return;
      case Code::Broadcast: return broadcast();
      case Code::Permute: return permute();
      case Code::Slice: return slice();
      case Code::Concat: return concat();
      case Code::Map: {
        if (op_.function == Function::Select) {
          return select(width, in(0).as<Truth>(), in(1).bytes(), in(2).bytes(), count, out);
        }
        std::array<const std::byte*, 3> operands = {};
        for (std::size_t i = 0; i < op_.in.size(); ++i) operands[i] = in(i).bytes();
        return map(op_.function, type(0).dtype, operands, count, out);
      }
      case Code::Cast: return cast(type(0).dtype, result().dtype, in(0).bytes(), count, out);
      case Code::Reduce: return reduce(op_.function, type(0).dtype, along(), in(0).bytes(), out);
      case Code::Scan:
        return scan(op_.function, type(0).dtype, along(), op_.ints[1] != 0, in(0).bytes(), out);
      case Code::Dot: {
        const Extents &a = type(0).shape, &b = type(1).shape;
        return dot({type(0).dtype, type(1).dtype, result().dtype}, {a[0], b[1], a[1]},
                   {in(0).bytes(), in(1).bytes(), in(2).bytes()}, out);
      }
      case Code::Offset: return offset(count);
      case Code::Dim: *out_.as<std::int64_t>() = in(0).window().shape[axis()]; return;
      case Code::Stride: *out_.as<std::int64_t>() = in(0).window().strides[axis()]; return;
      case Code::Base: *out_.as<Address>() = in(0).window().base; return;
      default: TESSERA_CHECK(false, "{} is no computation", to_string(op_.code));
    }
  }

 private:
  const Type& type(std::size_t i) const { return kernel_.type(op_.in[i]); }
  const Type& result() const { return kernel_.type(op_.out[0]); }
  const Datum& in(std::size_t i) const { return values_[op_.in[i]]; }
  std::size_t axis() const { return static_cast<std::size_t>(op_.ints[0]); }
  Along along() const { return {type(0).shape, op_.ints[0]}; }

  /// Copies the operand's elements to the result, in order, from a strided pattern.
  void rearrange(const Lattice& source) const {
    move(element_bytes(result()), result().shape, in(0).bytes(), source, out_.bytes(),
         {0, dense(result().shape)});
  }

  void broadcast() const {
    Lattice source{0, dense(type(0).shape)};
    for (std::size_t i = 0; i < source.strides.size(); ++i)
      if (type(0).shape[i] == 1) source.strides[i] = 0;
    source.strides.resize(result().shape.size(), 0);  // a scalar has none
    rearrange(source);
  }

  void permute() const {
    const Extents strides = dense(type(0).shape);
    Lattice source;
    for (const std::int64_t from : op_.ints)
      source.strides.push_back(strides[static_cast<std::size_t>(from)]);
    rearrange(source);
  }

  void slice() const {
    Lattice source{0, dense(type(0).shape)};
    for (std::size_t i = 0; i < op_.ints.size(); ++i)
      source.first += op_.ints[i] * source.strides[i];
    rearrange(source);
  }

  void concat() const {
    Lattice target{0, dense(result().shape)};
    for (std::size_t i = 0; i < op_.in.size(); ++i) {
      const Extents& shape = type(i).shape;
      move(element_bytes(result()), shape, in(i).bytes(), {0, dense(shape)}, out_.bytes(), target);
      target.first += shape[axis()] * target.strides[axis()];
    }
  }

  void offset(std::int64_t count) const {
    const Datum steps = as_i64(type(1), in(1));
    for (std::int64_t i = 0; i < count; ++i) {
      const Address from = in(0).as<Address>()[i];
      const std::int64_t by = steps.as<std::int64_t>()[i];
      out_.as<Address>()[i] = {from.argument, moved(from.offset, by, byte_width(result().dtype))};
    }
  }

  const Kernel& kernel_;
  std::span<const Datum> values_;
  const Operation& op_;
  Datum& out_;
};

}  // namespace

void compute(const Kernel& kernel, std::span<const Datum> values, const Operation& op, Datum& out) {
  Computation(kernel, values, op, out).run();
}

Datum as_i64(const Type& type, const Datum& integers) {
  if (type.dtype == DType::I64) return integers;
  Datum wide(type.count() * 8);
  cast(type.dtype, DType::I64, integers.bytes(), type.count(), wide.bytes());
  return wide;
}

}  // namespace tessera::tile::interp
