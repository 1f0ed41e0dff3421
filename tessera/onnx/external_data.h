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
/// A location is a path below the model's folder and is followed component by component: neither
/// `..`, nor an absolute path, nor a symbolic link leads out of it.
class ExternalData {
 public:
  explicit ExternalData(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Exactly `size` bytes; a stated length that differs is a diagnostic.
  Expected<Bytes> read(const ExternalRange& range, std::uint64_t size);

 private:
  Expected<Bytes> map(const std::string& location);

  std::filesystem::path folder_;
  std::map<std::string, Bytes> files_;
};

}  // namespace tessera::onnx
