#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "tessera/support/bytes.h"
#include "tessera/support/expected.h"

namespace tessera::onnx {

/// Location of a tensor in external data, as a TensorProto states it; numbers are text.
struct ExternalRange {
  std::string location;
  std::optional<std::string> offset = std::nullopt;  // 0 when absent
  std::optional<std::string> length = std::nullopt;
};

/// External data files of one model, each mapped on first use.
///
/// A location is a path below the model's folder, without `..`. Symbolic links are followed if they
/// lead to a file in that folder, or in the one that the model itself is a link into: a download
/// cache keeps the contents of both beside each other.
class ExternalData {
 public:
  explicit ExternalData(std::filesystem::path model) : model_(std::move(model)) {}

  /// Reads exactly `size` bytes; a stated length that differs is a diagnostic.
  Expected<Bytes> read(const ExternalRange& range, std::uint64_t size);

 private:
  Expected<Bytes> map(const std::string& location);

  std::filesystem::path model_;
  std::map<std::string, Bytes> files_;
};

}  // namespace tessera::onnx
