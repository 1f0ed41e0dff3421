#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/support/expected.h"

namespace tessera::onnx {

/// Protobuf wire format of ONNX files: the messages that contain tensors, directly or nested.
enum class Message : std::uint8_t {
  Model,
  Graph,
  Node,
  Attribute,
  Function,
  Training,
  SparseTensor,
  Tensor,
};

/// Limit on the nesting of messages; protobuf gets the same limit.
constexpr int max_nesting = 100;

/// Numbers of the TensorProto fields that are written here and not by protobuf.
namespace tensor_field {
enum Number : std::uint32_t { RawData = 9, ExternalData = 13, DataLocation = 14 };
}

/// Encodes one field.
std::string encode(std::uint32_t field, std::uint64_t number);
std::string encode(std::uint32_t field, std::string_view content);
/// Encodes the tag and length that precede `size` bytes of content.
std::string encode_header(std::uint32_t field, std::uint64_t size);

/// Occurrence of a raw_data field of a TensorProto.
struct RawData {
  std::span<const std::byte> content;
  bool initializer;  // initializer of a graph; otherwise part of an attribute or sparse tensor
};

/// Replacement of a raw_data field: encoded fields, then bytes that are not copied and outlive the
/// rewriting.
struct Replacement {
  std::string fields;
  std::span<const std::byte> content = {};
};

/// Rewritten message as a list of pieces, some in the source, some in replacements.
struct RewrittenMessage {
  std::vector<std::span<const std::byte>> pieces;
  std::deque<std::string> owned;
  std::uint64_t size = 0;
};

/// Replaces each raw_data field of a serialized message and corrects the enclosing lengths; all
/// other fields, known or not, are kept. Neither source nor replacement is copied. This is how
/// weights bypass protobuf, which would copy them.
Expected<RewrittenMessage> rewrite_raw_data(
    std::span<const std::byte> source, Message root,
    const std::function<Replacement(const RawData&)>& replace);

/// Visits the number and the content of each length-delimited field of a message, not of nested
/// ones.
Expected<Done> for_each_field(
    std::span<const std::byte> source,
    const std::function<Expected<Done>(std::uint32_t, std::span<const std::byte>)>& visit);

}  // namespace tessera::onnx
