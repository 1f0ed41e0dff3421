#include "tessera/onnx/model_file.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <map>

#include "onnx.pb.h"
#include "tessera/support/file.h"

namespace tessera::onnx {
namespace {

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");

/// Size limit of a protobuf message.
constexpr std::uint64_t message_limit = std::numeric_limits<std::int32_t>::max();

/// Smaller initializers stay in the model, where tools look for shapes and axes; as onnx.save does.
constexpr std::size_t external_minimum = 1024;

/// Recommended by ONNX, so that a tensor can be mapped by itself.
constexpr std::uint64_t external_alignment = 4096;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Other file formats that are mistaken for ONNX models.
struct Lookalike {
  std::string_view start;
  std::string_view what;
  std::string_view help;
};

constexpr Lookalike lookalikes[] = {
    {"version https://git-lfs", "a Git LFS pointer", "fetch the file itself with git lfs pull"},
    {"PK\3\4", "a zip archive, perhaps a PyTorch checkpoint", "export it with torch.onnx.export"},
    {"\x89HDF", "an HDF5 file, perhaps of Keras", "convert it with tf2onnx"},
    {"\x93NUMPY", "a NumPy array", "name it as an input, not as the model"},
    {"\x1f\x8b", "compressed with gzip", "unpack it first"},
    {"<", "a web page or XML", "fetch the file itself"},
    {"{", "JSON", "convert it to the binary form of ONNX"},
};

/// Adds what the file seems to be instead to a diagnostic.
Diagnostic explained(Diagnostic diagnostic, std::span<const std::byte> file) {
  const std::string_view text = text_of(file);
  for (const Lookalike& other : lookalikes) {
    if (!text.starts_with(other.start)) continue;
    diagnostic.note = fmt::format("the file looks like {}", other.what);
    diagnostic.help = other.help;
    return diagnostic;
  }
  const std::string_view head = text.substr(0, 512);
  const bool printable = std::all_of(head.begin(), head.end(), [](unsigned char c) {
    return (c >= ' ' && c != 0x7f) || c == '\n' || c == '\r' || c == '\t';
  });
  if (printable) {
    diagnostic.note = "the file looks like text";
    diagnostic.help = "a model is read in the binary form of ONNX";
  } else if (diagnostic.help.empty()) {
    diagnostic.help =
        "the file is not an ONNX model, or was damaged or cut off while it was copied";
  }
  return diagnostic;
}

Expected<Done> write_pieces(const RewrittenMessage& message, const std::filesystem::path& path) {
  return write_file(path, [&](std::ostream& out) {
    for (const auto piece : message.pieces) out << text_of(piece);
  });
}

/// Content of a weights file: each payload once, in order of first use.
class WeightsFile {
 public:
  std::uint64_t place(std::size_t index, const Bytes& payload) {
    const auto [known, inserted] = offsets_.emplace(index, end_);
    if (inserted) {
      contents_.push_back(payload);
      const std::uint64_t pages = (payload.size() + external_alignment - 1) / external_alignment;
      end_ += pages * external_alignment;
    }
    return known->second;
  }

  Expected<Done> write(const std::filesystem::path& path) const {
    return write_file(path, [&](std::ostream& out) {
      const std::string padding(external_alignment, '\0');
      std::size_t gap = 0;
      for (const Bytes& content : contents_) {
        out.write(padding.data(), static_cast<std::streamsize>(gap));
        out << text_of(content.view());
        gap = (external_alignment - content.size() % external_alignment) % external_alignment;
      }
    });
  }

 private:
  std::map<std::size_t, std::uint64_t> offsets_;
  std::vector<Bytes> contents_;
  std::uint64_t end_ = 0;
};

std::string external_entry(std::string_view key, const std::string& value) {
  ::onnx::StringStringEntryProto entry;
  entry.set_key(std::string(key));
  entry.set_value(value);
  return encode(tensor_field::ExternalData, entry.SerializeAsString());
}

std::filesystem::path weights_path(std::filesystem::path model) {
  if (model.extension() == ".onnx") return model.replace_extension(".weights");
  return model += ".weights";
}

}  // namespace

std::string Payloads::add(Bytes bytes) {
  const std::uint64_t index = payloads_.size();
  payloads_.push_back(std::move(bytes));
  std::string token(sizeof(index), '\0');
  std::memcpy(token.data(), &index, sizeof(index));
  return token;
}

std::size_t Payloads::index_of(std::string_view token) const {
  std::uint64_t index = 0;
  TESSERA_CHECK(token.size() == sizeof(index), "raw_data of {} bytes is no token", token.size());
  std::memcpy(&index, token.data(), sizeof(index));
  TESSERA_CHECK(index < payloads_.size(), "raw_data is the token of another file");
  return static_cast<std::size_t>(index);
}

const Bytes& Payloads::at(std::string_view token) const {
  return payloads_[index_of(token)];
}

Expected<Done> parse_message(const Bytes& source, Message kind,
                             ::google::protobuf::MessageLite& into, Payloads& payloads) {
  TESSERA_TRY(const RewrittenMessage reduced,
              rewrite_raw_data(source.view(), kind, [&](const RawData& raw) -> Replacement {
                const auto offset = static_cast<std::size_t>(raw.content.data() - source.data());
                Bytes content = source.slice(offset, raw.content.size());
                return {encode(tensor_field::RawData, payloads.add(std::move(content)))};
              }));
  if (reduced.size > message_limit)
    return Diagnostic{.id = "onnx-malformed",
                      .message = fmt::format(
                          "{} bytes without the raw data of tensors are too many", reduced.size),
                      .help = "store the weights as raw data or as external data"};
  std::string joined;
  joined.reserve(static_cast<std::size_t>(reduced.size));
  for (const auto piece : reduced.pieces) joined += text_of(piece);

  const auto size = static_cast<int>(joined.size());
  ::google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(joined.data()),
                                              size);
  in.SetTotalBytesLimit(size);
  in.SetRecursionLimit(max_nesting);
  if (!into.ParseFromCodedStream(&in) || !in.ConsumedEntireMessage())
    return Diagnostic{.id = "onnx-malformed",
                      .message = "a part of the file is not as the ONNX schema says"};
  return Done{};
}

Expected<ModelFile> read_model(const std::filesystem::path& path) {
  TESSERA_TRY(const Bytes file, map_file(path));
  return parse_model(file, path);
}

Expected<ModelFile> parse_model(const Bytes& file, const std::filesystem::path& path) {
  const auto malformed = [&](Diagnostic why) {
    return located(explained(std::move(why), file.view()), {.file = path.string()});
  };
  if (file.size() == 0)
    return Diagnostic{.id = "onnx-malformed",
                      .where = {.file = path.string()},
                      .message = "the file is empty",
                      .help = "it may have been cut off while it was copied"};
  auto proto = std::make_shared<::onnx::ModelProto>();
  Payloads payloads;
  if (auto parsed = parse_message(file, Message::Model, *proto, payloads); !parsed)
    return malformed(std::move(parsed).error());
  if (!proto->has_graph())
    return malformed({.id = "onnx-malformed", .message = "the file holds no graph"});
  auto external = std::make_shared<ExternalData>(path);
  return ModelFile{{path, std::move(payloads), std::move(external)}, std::move(proto)};
}

Expected<Done> write_model(const ::onnx::ModelProto& model, const Payloads& payloads,
                           const std::filesystem::path& path, const WriteOptions& options) {
  const auto too_large = [&](std::uint64_t size) {
    return Diagnostic{.id = "onnx-too-large",
                      .where = {.file = path.string()},
                      .message = fmt::format("{} bytes besides the weights are too many", size),
                      .note = fmt::format("an ONNX file holds {} bytes", options.inline_limit)};
  };
  if (model.ByteSizeLong() > message_limit) return too_large(model.ByteSizeLong());
  const std::string reduced = model.SerializeAsString();
  const auto source = std::as_bytes(std::span(reduced));

  const auto in_place = [&](const RawData& raw) -> Replacement {
    const Bytes& content = payloads.at(text_of(raw.content));
    return {encode_header(tensor_field::RawData, content.size()), content.view()};
  };
  if (!options.external) {
    TESSERA_TRY(const RewrittenMessage whole, rewrite_raw_data(source, Message::Model, in_place));
    if (whole.size <= options.inline_limit) return write_pieces(whole, path);
  }

  WeightsFile weights;
  const std::filesystem::path beside = weights_path(path);
  const auto apart = [&](const RawData& raw) -> Replacement {
    const std::size_t index = payloads.index_of(text_of(raw.content));
    const Bytes& content = payloads.at(text_of(raw.content));
    if (!raw.initializer || content.size() < external_minimum) return in_place(raw);
    const std::uint64_t offset = weights.place(index, content);
    return {external_entry("location", beside.filename().string()) +
            external_entry("offset", std::to_string(offset)) +
            external_entry("length", std::to_string(content.size())) +
            encode(tensor_field::DataLocation, ::onnx::TensorProto::EXTERNAL)};
  };
  TESSERA_TRY(const RewrittenMessage small, rewrite_raw_data(source, Message::Model, apart));
  if (small.size > options.inline_limit) return too_large(small.size);
  // Writes the weights first, so that an existing model file always has its weights.
  TESSERA_TRY_DONE(weights.write(beside));
  return write_pieces(small, path);
}

}  // namespace tessera::onnx
