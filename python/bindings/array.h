#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "tessera/support/datum.h"

/// Arrays of Python as tensors, and tensors as arrays: numpy, torch, and whatever has a buffer or
/// DLPack.
namespace tessera::python {

struct DlpackExchange;

/// The library whose arrays results are given as: numpy, unless an input is torch's.
struct ArrayLibrary {
  bool is_torch = false;
  const DlpackExchange* exchange = nullptr;  // torch's table, where it has one
};

/// A tensor, a list of them (a sequence) or None (an optional without content). Dense row-major
/// arrays in the memory of this computer are not copied; others are. `library` becomes
/// torch where an array is torch's. The array lives at least as long as the datum.
Datum datum_of(nanobind::handle object, ArrayLibrary& library);

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
nanobind::object to_python(const Datum& datum, const ArrayLibrary& library = {});

}  // namespace tessera::python
