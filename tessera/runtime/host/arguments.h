#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/runtime/host/draft.h"
#include "tessera/runtime/host/host.h"

namespace tessera::host {

using Shape = std::vector<std::int64_t>;

/// Typed access to the inputs and attributes of a call. Data that the operator does not allow
/// becomes a diagnostic with the function's name.
class Arguments {
 public:
  Arguments(const Call& call, std::string_view name) : call_(call), name_(name) {}

  const Attrs& attrs() const { return call_.attrs; }
  std::size_t count() const { return call_.inputs.size(); }
  bool has(std::size_t index) const { return index < count() && call_.inputs[index].present(); }

  Diagnostic fault(std::string message, std::string note = {}) const;

  Expected<Datum> datum(std::size_t index) const;
  Expected<Tensor> tensor(std::size_t index) const;
  Expected<Tensor> number_tensor(std::size_t index) const;
  Expected<Tensor> float_tensor(std::size_t index) const;
  Expected<Tensor> integer_tensor(std::size_t index) const;
  Expected<Tensor> text_tensor(std::size_t index) const;
  /// Elements of a sequence of tensors.
  Expected<std::vector<Datum>> sequence(std::size_t index) const;
  /// Value of a tensor with one element.
  Expected<std::int64_t> integer(std::size_t index) const;
  Expected<double> number(std::size_t index) const;

  /// Normalized index along an axis of `extent` elements; a negative one counts from the end.
  Expected<std::int64_t> place(std::string_view what, std::int64_t index,
                               std::int64_t extent) const;
  Expected<std::size_t> axis(std::int64_t axis, std::size_t rank) const;

  /// Attributes without a default: empty, or the given value, if absent.
  Ints ints(std::string_view attr) const;
  Floats floats(std::string_view attr) const;
  Strings strings(std::string_view attr) const;
  Expected<DType> dtype(std::string_view attr, DType otherwise) const;

  /// Allocates a tensor within the memory limit; a tensor of strings also counts the bytes of
  /// `text` that it will hold.
  Expected<Draft> allocate(DType dtype, Shape shape, std::int64_t text = 0) const;
  Expected<Done> fits(std::int64_t count, std::size_t bytes_each) const;

  /// The first results, as many as the call asks for.
  std::vector<Datum> results(std::vector<Datum> all) const;

 private:
  Expected<Tensor> tensor_of(std::size_t index, bool (*accepted)(DType),
                             std::string_view expected) const;

  const Call& call_;
  std::string_view name_;
};

/// Decomposition of a shape around an axis: an element is at (outer * extent + index) * inner +
/// rest. A tensor without elements has outer = inner = 0, so that loops over them are as long as
/// the data.
struct Lanes {
  std::int64_t outer = 1;
  std::int64_t extent = 1;
  std::int64_t inner = 1;

  std::int64_t at(std::int64_t o, std::int64_t index) const { return (o * extent + index) * inner; }
};
Lanes lanes_along(const Shape& shape, std::size_t axis);

/// Shape with another extent on one axis.
Shape with_extent(Shape shape, std::size_t axis, std::int64_t extent);

/// Total bytes of the strings of a tensor; 0 for numbers.
std::int64_t text_bytes(const Tensor& tensor);

/// Tensor of i64 with one axis.
Tensor index_tensor(std::span<const std::int64_t> values);

std::string shape_text(const Shape& shape);

}  // namespace tessera::host
