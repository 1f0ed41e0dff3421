#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/onnx/external_data.h"
#include "tessera/onnx/wire.h"
#include "tessera/support/bytes.h"
#include "tessera/support/expected.h"

namespace onnx {
class ModelProto;
}
namespace google::protobuf {
class MessageLite;
}

namespace tessera::onnx {

/// Raw data of tensors, kept outside of protobuf, which would copy it.
///
/// In every message of this folder, `raw_data` holds not the content but an eight-byte token of a
/// payload. Reading replaces each content by a token, however small; writing replaces each token by
/// the content. So no content of a file can be mistaken for a token.
class Payloads {
 public:
  /// Stores the bytes and returns their token, the value of `raw_data`.
  std::string add(Bytes bytes);

  /// Bytes of a token.
  const Bytes& at(std::string_view token) const;

  /// Position of a token in the order of `add`.
  std::size_t index_of(std::string_view token) const;

  std::size_t size() const { return payloads_.size(); }

 private:
  std::vector<Bytes> payloads_;
};

/// Storage of the TensorProtos of one file: payloads and external data.
struct TensorStore {
  std::filesystem::path path;  // the file, for diagnostics
  Payloads payloads = {};
  std::shared_ptr<ExternalData> external = {};
};

/// Parsed model file; weights are mapped and not yet read.
struct ModelFile : TensorStore {
  std::shared_ptr<const ::onnx::ModelProto> proto;
};

Expected<ModelFile> read_model(const std::filesystem::path& path);

/// Parses a model file in memory; external data is resolved relative to `path`.
Expected<ModelFile> parse_model(const Bytes& file, const std::filesystem::path& path);

/// Parses one message; the raw data of its tensors is not copied.
Expected<Done> parse_message(const Bytes& source, Message kind,
                             ::google::protobuf::MessageLite& into, Payloads& payloads);

/// Options of write_model.
struct WriteOptions {
  /// Stores large initializers in a file beside the model, its name with the extension `.weights`.
  /// A model that is too large for one protobuf message gets such a file in any case.
  bool external = false;
  /// Size limit of a model without external data, in bytes; other tools cannot read more than 2
  /// GiB.
  std::uint64_t inline_limit = (std::uint64_t{2} << 30) - (std::uint64_t{1} << 20);
};

/// Writes a model whose tensors refer to `payloads`, which are streamed to the file. References to
/// external data that the model itself states are kept.
Expected<Done> write_model(const ::onnx::ModelProto& model, const Payloads& payloads,
                           const std::filesystem::path& path, const WriteOptions& options = {});

}  // namespace tessera::onnx
