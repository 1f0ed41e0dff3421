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

/// The messages of an ONNX file that hold tensors, directly or deeper down.
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

/// Messages nest this deep at most; the same limit is given to protobuf.
constexpr int max_nesting = 100;

/// The numbers of the TensorProto fields that are written here and not by protobuf.
namespace tensor_field {
enum Number : std::uint32_t { RawData = 9, ExternalData = 13, DataLocation = 14 };
}

/// One field in wire format.
std::string encode(std::uint32_t field, std::uint64_t number);
std::string encode(std::uint32_t field, std::string_view content);
/// What precedes `size` bytes of content.
std::string encode_header(std::uint32_t field, std::uint64_t size);

/// The raw_data field of one TensorProto, as found.
struct RawData {
  std::span<const std::byte> content;
  bool initializer;  // of a graph; otherwise part of an attribute or of a sparse tensor
};

/// What takes its place: encoded fields, then bytes that are not copied and outlive the rewriting.
struct Replacement {
  std::string fields;
  std::span<const std::byte> content = {};
};

/// A message in pieces, some in the source, some in replacements.
struct Rewritten {
  std::vector<std::span<const std::byte>> pieces;
  std::deque<std::string> owned;
  std::uint64_t size = 0;
};

/// Replaces each raw_data below a serialized message and corrects the lengths of what encloses it;
/// all else, known or not, stays as it is. Neither source nor replacement is copied. This is how
/// weights pass by protobuf, which would copy them.
Expected<Rewritten> rewrite_raw_data(std::span<const std::byte> source, Message root,
                                     const std::function<Replacement(const RawData&)>& replace);

/// Visits the number and the content of each field that holds bytes, of this message and not of
/// those inside it.
Expected<Done> for_each_field(
    std::span<const std::byte> source,
    const std::function<Expected<Done>(std::uint32_t, std::span<const std::byte>)>& visit);

}  // namespace tessera::onnx
