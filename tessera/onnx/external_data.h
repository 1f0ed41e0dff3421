#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "tessera/support/bytes.h"
#include "tessera/support/expected.h"

namespace tessera::onnx {

/// A part of a file beside the model, as a TensorProto states it; text as found.
struct ExternalRange {
  std::string location;
  std::optional<std::string> offset = std::nullopt;  // 0 when absent
  std::optional<std::string> length = std::nullopt;
};

/// The files that hold the weights of one model; each is mapped once, when first asked for.
///
/// A location is a path below the model's folder, without `..`. Symbolic links are followed as long
/// as they lead to a file in that folder, or in the one that the model itself is a link into: a
/// download cache keeps the contents of both beside each other.
class ExternalData {
 public:
  explicit ExternalData(std::filesystem::path model) : model_(std::move(model)) {}

  /// Exactly `size` bytes; a stated length that differs is a diagnostic.
  Expected<Bytes> read(const ExternalRange& range, std::uint64_t size);

 private:
  Expected<Bytes> map(const std::string& location);

  std::filesystem::path model_;
  std::map<std::string, Bytes> files_;
};

}  // namespace tessera::onnx
