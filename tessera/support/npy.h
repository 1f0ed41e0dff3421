#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "tessera/support/expected.h"
#include "tessera/support/tensor.h"

namespace tessera {

/// Reads an array that NumPy saved (`.npy`, format versions 1 to 3): bool, integers and floats of
/// any byte order, in C or Fortran order. An array whose layout Tessera can use directly stays
/// mapped. Extension types (ml_dtypes), which NumPy saves as untyped bytes, are read as `unnamed`
/// if it has the same width.
Expected<Tensor> read_npy(const std::filesystem::path& path, std::optional<DType> unnamed = {});

/// Parses a `.npy` file in memory; `name` is for diagnostics.
Expected<Tensor> parse_npy(const Bytes& file, const std::string& name,
                           std::optional<DType> unnamed = {});

/// Element type in a `.npy` file. NumPy has neither bf16 nor the small types: such floats are
/// stored as f32, such integers as i8 or u8.
DType npy_dtype(DType dtype);

/// Writes an array for NumPy, with elements of npy_dtype.
Expected<Done> write_npy(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace tessera
