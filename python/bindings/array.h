#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "tessera/support/datum.h"

/// Arrays of Python as tensors, and tensors as arrays: numpy, torch, and whatever has a buffer or
/// DLPack.
namespace tessera::python {

/// The library whose arrays results are given as.
enum class ArrayKind : std::uint8_t { Numpy, Torch };

/// A tensor, a list of them (a sequence) or None (an optional without content). Dense row-major
/// arrays in the memory of this computer are not copied; others are. `kind` becomes Torch where an
/// array is torch's.
Datum datum_of(nanobind::handle object, ArrayKind& kind);

/// The memory of an array that a kernel reads and writes: dtype, shape, strides in elements.
struct ArrayView {
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape = {}, strides = {};
  std::byte* data = nullptr;
  std::int64_t bytes = 0;                  // from `data` on
  std::shared_ptr<const void> owner = {};  // keeps the memory
};
/// Nothing where the object is no array. One in read-only memory or on a GPU is an exception.
std::optional<ArrayView> writable_view(nanobind::handle object);

/// An array that shares the memory of a tensor; text is an array of objects.
nanobind::object to_python(const Datum& datum, ArrayKind kind);

}  // namespace tessera::python
