#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "tessera/support/expected.h"
#include "tessera/support/tensor.h"

namespace tessera {

/// Reads an array that NumPy saved (`.npy`, format versions 1 to 3): bool, integers and floats of
/// any byte order, in C or Fortran order. An array that is already as tessera stores it stays
/// mapped. Types that are not its own NumPy saves as bytes without a name: these are read as
/// `unnamed`, if that is of their width.
Expected<Tensor> read_npy(const std::filesystem::path& path, std::optional<DType> unnamed = {});

/// The same for a file already in memory; `name` is for diagnostics.
Expected<Tensor> parse_npy(const Bytes& file, const std::string& name,
                           std::optional<DType> unnamed = {});

/// The type that elements of a dtype have in a file: NumPy knows neither bf16 nor small types. Such
/// floats are f32 there, such integers i8 or u8.
DType npy_dtype(DType dtype);

/// Writes an array for NumPy, with elements of npy_dtype.
Expected<Done> write_npy(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace tessera
