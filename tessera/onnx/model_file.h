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

/// The raw data of tensors, outside of protobuf, which would copy it.
///
/// In every message of this folder, `raw_data` is not the content but the token of a payload, eight
/// bytes long. Reading turns each content into a token, however small; writing turns each token
/// into a content. So a token cannot be taken for a content, whatever a file says.
class Payloads {
 public:
  /// Keeps the bytes and returns their token, the value of `raw_data`.
  std::string add(Bytes bytes);

  /// The bytes of a token.
  const Bytes& at(std::string_view token) const;

  /// Position of a token in the order of `add`.
  std::size_t index_of(std::string_view token) const;

  std::size_t size() const { return payloads_.size(); }

 private:
  std::vector<Bytes> payloads_;
};

/// Where the elements of the TensorProtos of one file lie.
struct TensorStore {
  std::filesystem::path path;  // of the file, for diagnostics
  Payloads payloads = {};
  std::shared_ptr<ExternalData> external = {};
};

/// A model as its file states it, weights mapped and not yet touched.
struct ModelFile : TensorStore {
  std::shared_ptr<const ::onnx::ModelProto> proto;
};

Expected<ModelFile> read_model(const std::filesystem::path& path);

/// The same for a file already in memory; external data is looked for beside `path`.
Expected<ModelFile> parse_model(const Bytes& file, const std::filesystem::path& path);

/// Fills in any one message; the raw data of its tensors stays where it lies.
Expected<Done> parse_message(const Bytes& source, Message kind,
                             ::google::protobuf::MessageLite& into, Payloads& payloads);

struct WriteOptions {
  /// Puts large initializers into a file beside the model, its name with the ending `.weights`. A
  /// model that is too large for one protobuf message gets such a file in any case.
  bool external = false;
  /// What is too large, in bytes; others cannot read more than 2 GiB.
  std::uint64_t inline_limit = (std::uint64_t{2} << 30) - (std::uint64_t{1} << 20);
};

/// Writes a model whose tensors refer to `payloads`; contents go from where they lie to the file.
/// References to external data that the model itself states are written as they stand.
Expected<Done> write_model(const ::onnx::ModelProto& model, const Payloads& payloads,
                           const std::filesystem::path& path, const WriteOptions& options = {});

}  // namespace tessera::onnx
