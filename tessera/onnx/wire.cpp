#include "tessera/onnx/wire.h"

#include <limits>
#include <optional>

namespace tessera::onnx {
namespace {

using Span = std::span<const std::byte>;

/// Schema edge: field `field` of `parent` is a `child`.
struct Edge {
  Message parent;
  std::uint32_t field;
  Message child;
};

constexpr Edge edges[] = {
    {Message::Model, 7, Message::Graph},
    {Message::Model, 20, Message::Training},
    {Message::Model, 25, Message::Function},
    {Message::Training, 1, Message::Graph},
    {Message::Training, 2, Message::Graph},
    {Message::Function, 7, Message::Node},
    {Message::Function, 11, Message::Attribute},  // attribute_proto, since IR version 9
    {Message::Graph, 1, Message::Node},
    {Message::Graph, 5, Message::Tensor},
    {Message::Graph, 15, Message::SparseTensor},
    {Message::Node, 5, Message::Attribute},
    {Message::Attribute, 5, Message::Tensor},
    {Message::Attribute, 6, Message::Graph},
    {Message::Attribute, 10, Message::Tensor},
    {Message::Attribute, 11, Message::Graph},
    {Message::Attribute, 22, Message::SparseTensor},
    {Message::Attribute, 23, Message::SparseTensor},
    {Message::SparseTensor, 1, Message::Tensor},
    {Message::SparseTensor, 2, Message::Tensor},
};

std::optional<Message> child_of(Message parent, std::uint32_t field) {
  for (const Edge& edge : edges)
    if (edge.parent == parent && edge.field == field) return edge.child;
  return std::nullopt;
}

enum WireType : std::uint32_t { Varint = 0, Fixed64 = 1, Length = 2, Fixed32 = 5 };

void append_varint(std::string& out, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) out.push_back(static_cast<char>(number | 0x80));
  out.push_back(static_cast<char>(number));
}

Diagnostic malformed(std::string message) {
  return {.id = "onnx-malformed", .message = std::move(message)};
}

/// One field of a message; positions count from the start of the source.
struct Field {
  std::uint32_t number;
  bool holds_bytes;
  std::size_t start;       // of the tag
  std::size_t length_at;   // where the length of the content is written
  std::size_t begin, end;  // the content
};

/// Sequential reader of fields.
class Cursor {
 public:
  Cursor(Span source, std::size_t begin, std::size_t end)
      : source_(source), at_(begin), end_(end) {}

  bool done() const { return at_ == end_; }

  Expected<Field> next() {
    const std::size_t start = at_;
    const auto tag = varint();
    if (!tag || *tag > std::numeric_limits<std::uint32_t>::max() || *tag >> 3 == 0)
      return malformed(fmt::format("there is no field at byte {}", start));
    const auto number = static_cast<std::uint32_t>(*tag >> 3);
    const std::uint32_t type = *tag & 7;
    const std::size_t length_at = at_;
    std::optional<std::uint64_t> size = 0;
    switch (type) {
      case Varint:
        if (!varint()) size = std::nullopt;
        break;
      case Fixed64: size = 8; break;
      case Fixed32: size = 4; break;
      case Length: size = varint(); break;
      default:
        return malformed(
            fmt::format("field {} at byte {} has the wire type {}, which onnx does not use", number,
                        start, type));
    }
    if (!size) return malformed(fmt::format("field {} at byte {} is cut off", number, start));
    if (*size > end_ - at_)
      return malformed(fmt::format("field {} at byte {} has {} bytes, but only {} remain", number,
                                   start, *size, end_ - at_));
    const std::size_t begin = at_;
    at_ += static_cast<std::size_t>(*size);
    return Field{number, type == Length, start, length_at, begin, at_};
  }

 private:
  std::optional<std::uint64_t> varint() {
    std::uint64_t number = 0;
    for (int shift = 0; shift < 64 && at_ < end_; shift += 7) {
      const auto byte = std::to_integer<std::uint64_t>(source_[at_++]);
      if (shift == 63 && byte > 1) return std::nullopt;
      number |= (byte & 0x7f) << shift;
      if (byte < 0x80) return number;
    }
    return std::nullopt;
  }

  Span source_;
  std::size_t at_, end_;
};

/// Single-pass rewriter. Source bytes before `copied_` are in the output already; the rest is
/// copied unchanged unless a nested field is replaced.
class Rewriter {
 public:
  Rewriter(Span source, const std::function<Replacement(const RawData&)>& replace)
      : source_(source), replace_(replace) {}

  Expected<RewrittenMessage> run(Message root) && {
    TESSERA_TRY_DONE(walk({.message = root, .end = source_.size()}));
    copy_until(source_.size());
    return std::move(out_);
  }

 private:
  struct Place {
    Message message;
    std::size_t begin = 0;
    std::size_t end = 0;
    int depth = 1;
    bool initializer = false;
  };

  Expected<Done> walk(const Place& place) {
    for (Cursor cursor(source_, place.begin, place.end); !cursor.done();) {
      TESSERA_TRY(const Field field, cursor.next());
      if (!field.holds_bytes) continue;
      if (place.message == Message::Tensor) {
        if (field.number == static_cast<std::uint32_t>(tensor_field::RawData))
          replace(place, field);
      } else if (const auto child = child_of(place.message, field.number)) {
        TESSERA_TRY_DONE(descend(place, *child, field));
      }
    }
    return Done{};
  }

  Expected<Done> descend(const Place& parent, Message child, const Field& field) {
    if (parent.depth == max_nesting)
      return malformed(fmt::format("messages are nested more than {} deep", max_nesting));
    const std::size_t pieces = out_.pieces.size(), copied = copied_;
    const std::uint64_t size = out_.size, replaced = replaced_;

    copy_until(field.length_at);
    const std::size_t length = out_.pieces.size();
    out_.pieces.emplace_back();  // the length, known only after the content
    copied_ = field.begin;
    const std::uint64_t size_before = out_.size;
    TESSERA_TRY_DONE(walk({.message = child,
                           .begin = field.begin,
                           .end = field.end,
                           .depth = parent.depth + 1,
                           .initializer = parent.message == Message::Graph}));
    if (replaced_ == replaced) {
      out_.pieces.resize(pieces);
      out_.size = size;
      copied_ = copied;
      return Done{};
    }
    copy_until(field.end);
    std::string encoded;
    append_varint(encoded, out_.size - size_before);
    out_.pieces[length] = own(std::move(encoded));
    out_.size += out_.pieces[length].size();
    return Done{};
  }

  void replace(const Place& tensor, const Field& field) {
    copy_until(field.start);
    Replacement replacement =
        replace_({source_.subspan(field.begin, field.end - field.begin), tensor.initializer});
    append(own(std::move(replacement.fields)));
    append(replacement.content);
    copied_ = field.end;
    ++replaced_;
  }

  void copy_until(std::size_t position) {
    append(source_.subspan(copied_, position - copied_));
    copied_ = position;
  }

  void append(Span piece) {
    if (piece.empty()) return;
    out_.pieces.push_back(piece);
    out_.size += piece.size();
  }

  Span own(std::string text) {
    return std::as_bytes(std::span(out_.owned.emplace_back(std::move(text))));
  }

  Span source_;
  const std::function<Replacement(const RawData&)>& replace_;
  RewrittenMessage out_;
  std::size_t copied_ = 0;
  std::uint64_t replaced_ = 0;
};

std::string encode_tag(std::uint32_t field, WireType type) {
  std::string out;
  append_varint(out, (std::uint64_t{field} << 3) | type);
  return out;
}

}  // namespace

std::string encode(std::uint32_t field, std::uint64_t number) {
  std::string out = encode_tag(field, Varint);
  append_varint(out, number);
  return out;
}

std::string encode(std::uint32_t field, std::string_view content) {
  return encode_header(field, content.size()).append(content);
}

std::string encode_header(std::uint32_t field, std::uint64_t size) {
  std::string out = encode_tag(field, Length);
  append_varint(out, size);
  return out;
}

Expected<RewrittenMessage> rewrite_raw_data(
    Span source, Message root, const std::function<Replacement(const RawData&)>& replace) {
  return Rewriter(source, replace).run(root);
}

Expected<Done> for_each_field(Span source,
                              const std::function<Expected<Done>(std::uint32_t, Span)>& visit) {
  for (Cursor cursor(source, 0, source.size()); !cursor.done();) {
    TESSERA_TRY(const Field field, cursor.next());
    if (field.holds_bytes)
      TESSERA_TRY_DONE(visit(field.number, source.subspan(field.begin, field.end - field.begin)));
  }
  return Done{};
}

}  // namespace tessera::onnx
