#include <algorithm>

#include "tessera/ops/families.h"

// Opaque operators: type inference only, their meaning is a host function.
namespace tessera::define {
namespace {

using Results = Expected<std::vector<OpaqueType>>;

OpaqueType tensor_of(DType dtype, std::optional<Shape> shape = {}) {
  return {.dtype = dtype, .shape = std::move(shape)};
}

OpaqueType sequence_of(DType dtype) {
  return {.dtype = dtype, .kind = OpaqueType::Kind::Sequence};
}

/// Shape with another size on one axis.
Shape resized(Shape shape, int axis, const Dim& size) {
  shape[static_cast<std::size_t>(axis)] = size;
  return shape;
}

/// The shape that two shapes broadcast to.
Shape broadcast_shape(const Argument& a, const Argument& b) {
  const bool ordered = a.rank() >= b.rank();
  Shape shape = (ordered ? a : b).type.shape;
  const Shape& other = (ordered ? b : a).type.shape;
  for (std::size_t i = 0; i < other.size(); ++i) {
    Dim& size = shape[shape.size() - other.size() + i];
    if (size.is(1)) size = other[i];
  }
  return shape;
}

/// A sequence of the dtype that the first input has.
Results same_sequence(const Attrs&, const Signature& in) {
  return std::vector{sequence_of(in[0].dtype())};
}

/// The content of an optional is unknown before run time.
Results unknown_content(const Attrs&, const Signature&) {
  return needs_value("input");
}

/// Shape of a selection along `axis`, or of the flattened tensor without one.
Expected<Shape> selected(const Attrs& attrs, const Argument& x) {
  if (!attrs.has("axis")) return Shape{Dim::undefined()};
  TESSERA_TRY(const int axis, normal_axis(attrs.i("axis"), x.rank()));
  return resized(x.type.shape, axis, Dim::undefined());
}

Expected<DType> any_dtype(const Attrs& attrs, const char* name) {
  if (attrs.s(name) == "string") return DType::String;
  return dtype_attr(attrs, name, DType::F32);
}

std::vector<AttrSpec> with_seed(std::vector<AttrSpec> attrs) {
  attrs.push_back(optional_attr("dtype", std::string()));
  attrs.push_back(optional_attr("seed", 0.0));
  return attrs;
}

std::vector<AttrSpec> normal() {
  return {{"mean", 0.0}, {"scale", 1.0}};
}
std::vector<AttrSpec> uniform() {
  return {{"low", 0.0}, {"high", 1.0}};
}

/// Random numbers of a shape given by an attribute.
OpDef draw(std::string name, std::string summary, std::vector<AttrSpec> distribution) {
  distribution.push_back(required_attr("shape", Ints{}));
  return {.name = std::move(name),
          .summary = std::move(summary),
          .inputs = {},
          .attrs = with_seed(std::move(distribution)),
          .infer = [](const Attrs& attrs, const Signature&) -> Results {
            TESSERA_TRY(const DType dtype, dtype_attr(attrs, "dtype", DType::F32));
            const Ints& sizes = attrs.ints("shape");
            if (std::ranges::any_of(sizes, [](std::int64_t size) { return size < 0; }))
              return bad_operands("the shape has a negative size");
            return std::vector{tensor_of(dtype, Shape(sizes.begin(), sizes.end()))};
          },
          .pure = false};
}

/// Random numbers of the shape of the input.
OpDef draw_like(std::string name, std::string summary, std::vector<AttrSpec> distribution) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .inputs = {"x"},
          .attrs = with_seed(std::move(distribution)),
          .infer = [](const Attrs& attrs, const Signature& in) -> Results {
            TESSERA_TRY(const DType dtype, dtype_attr(attrs, "dtype", in[0].dtype()));
            return std::vector{tensor_of(dtype, in[0].type.shape)};
          },
          .pure = false};
}

}  // namespace

OpDef top_k() {
  return {.name = "top_k",
          .summary = "the k largest or smallest elements along an axis, and where they are",
          .inputs = {"x", "k"},
          .outputs = {"values", "indices"},
          .attrs = {{"axis", -1}, flag_attr("largest", 1), flag_attr("sorted", 1)},
          .infer = [](const Attrs& attrs, const Signature& in) -> Results {
            TESSERA_TRY(const int axis, normal_axis(attrs.i("axis"), in[0].rank()));
            const bool known = in[1].value && in[1].value->size() == 1;
            const Shape shape =
                resized(in[0].type.shape, axis, known ? in[1].value->front() : Dim::undefined());
            return std::vector{tensor_of(in[0].dtype(), shape), tensor_of(DType::I64, shape)};
          }};
}

OpDef unique() {
  return {.name = "unique",
          .summary = "the distinct elements or slices, where they first are, and how often",
          .inputs = {"x"},
          .outputs = {"values", "indices", "inverse_indices", "counts"},
          .attrs = {optional_attr("axis", 0), flag_attr("sorted", 1)},
          .infer = [](const Attrs& attrs, const Signature& in) -> Results {
            TESSERA_TRY(const Shape shape, selected(attrs, in[0]));
            const OpaqueType list = tensor_of(DType::I64, Shape{Dim::undefined()});
            return std::vector{tensor_of(in[0].dtype(), shape), list, list, list};
          }};
}

OpDef compress() {
  return {.name = "compress",
          .summary = "the elements or slices for which the condition holds",
          .inputs = {"x", "condition"},
          .attrs = {optional_attr("axis", 0)},
          .infer = [](const Attrs& attrs, const Signature& in) -> Results {
            TESSERA_TRY(const Shape shape, selected(attrs, in[0]));
            return std::vector{tensor_of(in[0].dtype(), shape)};
          }};
}

OpDef non_zero() {
  return {.name = "non_zero",
          .summary = "the positions of the elements that are not zero, one per column",
          .inputs = {"x"},
          .infer = [](const Attrs&, const Signature& in) -> Results {
            return std::vector{tensor_of(DType::I64, Shape{in[0].rank(), Dim::undefined()})};
          }};
}

OpDef non_max_suppression() {
  return {.name = "non_max_suppression",
          .summary = "the boxes with the best scores that do not overlap too much",
          .inputs = {"boxes", "scores", "max_output_boxes_per_class?", "iou_threshold?",
                     "score_threshold?"},
          .attrs = {flag_attr("center_point_box", 0)},
          .infer = [](const Attrs&, const Signature&) -> Results {
            return std::vector{tensor_of(DType::I64, Shape{Dim::undefined(), 3})};
          }};
}

OpDef sequence_empty() {
  return {.name = "sequence_empty",
          .summary = "a sequence without elements",
          .inputs = {},
          .attrs = {{"dtype", std::string("f32")}},
          .infer = [](const Attrs& attrs, const Signature&) -> Results {
            TESSERA_TRY(const DType dtype, any_dtype(attrs, "dtype"));
            return std::vector{sequence_of(dtype)};
          }};
}

OpDef sequence_construct() {
  return {.name = "sequence_construct",
          .summary = "a sequence of the inputs",
          .inputs = {"x+"},
          .infer = same_sequence};
}

OpDef sequence_insert() {
  return {.name = "sequence_insert",
          .summary = "a sequence with a tensor put in before a position, by default at the end",
          .inputs = {"sequence", "x", "position?"},
          .infer = [](const Attrs&, const Signature& in) -> Results {
            return std::vector{sequence_of(in[1].dtype())};
          }};
}

OpDef sequence_erase() {
  return {.name = "sequence_erase",
          .summary = "a sequence without one element, by default the last",
          .inputs = {"sequence", "position?"},
          .infer = same_sequence};
}

OpDef sequence_at() {
  return {.name = "sequence_at",
          .summary = "an element of a sequence",
          .inputs = {"sequence", "position"},
          .infer = [](const Attrs&, const Signature& in) -> Results {
            return std::vector{tensor_of(in[0].dtype())};
          }};
}

OpDef sequence_length() {
  return {.name = "sequence_length",
          .summary = "the number of elements of a sequence",
          .inputs = {"sequence"},
          .infer = [](const Attrs&, const Signature&) -> Results {
            return std::vector{tensor_of(DType::I64, Shape{})};
          }};
}

OpDef split_to_sequence() {
  return {.name = "split_to_sequence",
          .summary = "a sequence of the parts of x along an axis",
          .inputs = {"x", "split?"},
          .attrs = {{"axis", 0}, flag_attr("keepdims", 1)},
          .infer = same_sequence};
}

OpDef concat_from_sequence() {
  return {.name = "concat_from_sequence",
          .summary = "the elements of a sequence joined along an axis, or stacked along a new one",
          .inputs = {"sequence"},
          .attrs = {required_attr("axis", 0), {"new_axis", 0}},
          .infer = [](const Attrs&, const Signature& in) -> Results {
            return std::vector{tensor_of(in[0].dtype())};
          }};
}

OpDef optional() {
  return {.name = "optional",
          .summary = "an optional that holds the input, or nothing",
          .inputs = {"x?"},
          .attrs = {optional_attr("type", std::string())},
          .infer = unknown_content};
}

OpDef optional_has_element() {
  return {.name = "optional_has_element",
          .summary = "whether an optional holds something",
          .inputs = {"x?"},
          .infer = [](const Attrs&, const Signature&) -> Results {
            return std::vector{tensor_of(DType::Bool, Shape{})};
          }};
}

OpDef optional_get_element() {
  return {.name = "optional_get_element",
          .summary = "what an optional holds",
          .inputs = {"x"},
          .infer = unknown_content};
}

OpDef string_normalizer() {
  return {.name = "string_normalizer",
          .summary = "words without stop words, in lower or upper case",
          .inputs = {"x"},
          .attrs = {{"case_change_action", std::string("NONE")},
                    {"is_case_sensitive", 0},
                    optional_attr("locale", std::string()),
                    {"stopwords", Strings{}}},
          .infer = [](const Attrs&, const Signature& in) -> Results {
            if (in[0].rank() != 1 && in[0].rank() != 2)
              return bad_operands(fmt::format("x has {} axes", in[0].rank()),
                                  "it has to have 1 or 2");
            return std::vector{tensor_of(
                DType::String, resized(in[0].type.shape, in[0].rank() - 1, Dim::undefined()))};
          }};
}

OpDef string_concat() {
  return {.name = "string_concat",
          .summary = "texts joined pairwise",
          .inputs = {"x", "y"},
          .infer = [](const Attrs&, const Signature& in) -> Results {
            return std::vector{tensor_of(DType::String, broadcast_shape(in[0], in[1]))};
          }};
}

OpDef string_split() {
  return {.name = "string_split",
          .summary = "the parts of texts between delimiters, and how many there are",
          .inputs = {"x"},
          .outputs = {"parts", "counts"},
          .attrs = {optional_attr("delimiter", std::string()), optional_attr("maxsplit", 0)},
          .infer = [](const Attrs&, const Signature& in) -> Results {
            return std::vector{
                tensor_of(DType::String, tessera::concat(in[0].type.shape, {Dim::undefined()})),
                tensor_of(DType::I64, in[0].type.shape)};
          }};
}

OpDef regex_full_match() {
  return {.name = "regex_full_match",
          .summary = "whether a pattern matches the whole of each text",
          .inputs = {"x"},
          .attrs = {{"pattern", std::string()}},
          .infer = [](const Attrs&, const Signature& in) -> Results {
            return std::vector{tensor_of(DType::Bool, in[0].type.shape)};
          }};
}

OpDef bit_cast() {
  return {.name = "bit_cast",
          .summary = "the bits of x as elements of another dtype of the same width",
          .inputs = {"x"},
          .attrs = {required_attr("to", std::string())},
          .infer = [](const Attrs& attrs, const Signature& in) -> Results {
            TESSERA_TRY(const DType to, dtype_attr(attrs, "to", DType::F32));
            if (byte_width(to) != byte_width(in[0].dtype()) || in[0].dtype() == DType::String)
              return bad_operands(
                  fmt::format("x is of {}, to is {}", to_string(in[0].dtype()), to_string(to)),
                  "the types have to have the same width");
            return std::vector{tensor_of(to, in[0].type.shape)};
          }};
}

OpDef image_decoder() {
  return {.name = "image_decoder",
          .summary = "the pixels of an encoded image: rows, columns, channels",
          .inputs = {"stream"},
          .attrs = {{"pixel_format", "RGB"}},
          .infer = [](const Attrs& attrs, const Signature&) -> Results {
            const std::int64_t channels = attrs.s("pixel_format") == "Grayscale" ? 1 : 3;
            return std::vector{
                tensor_of(DType::U8, Shape{Dim::undefined(), Dim::undefined(), channels})};
          }};
}

OpDef cast_string() {
  return {.name = "cast_string",
          .summary = "text read as numbers, or numbers written as text",
          .inputs = {"x"},
          .attrs = {required_attr("to", std::string()),
                    flag_attr("saturate", 1),
                    {"round_mode", std::string("up")}},
          .infer = [](const Attrs& attrs, const Signature& in) -> Results {
            TESSERA_TRY(const DType to, any_dtype(attrs, "to"));
            if (is_small(to))
              return bad_operands(fmt::format("text is read as {}", to_string(to)),
                                  "it is read as numbers of another type, and these are converted");
            return std::vector{tensor_of(to, in[0].type.shape)};
          }};
}

OpDef tf_idf_vectorizer() {
  return {.name = "tf_idf_vectorizer",
          .summary = "how often the n-grams of a pool occur, weighted",
          .inputs = {"x"},
          .attrs = {required_attr("max_gram_length", 1), required_attr("max_skip_count", 0),
                    required_attr("min_gram_length", 1), required_attr("mode", std::string()),
                    required_attr("ngram_counts", Ints{}), required_attr("ngram_indexes", Ints{}),
                    optional_attr("pool_int64s", Ints{}), optional_attr("pool_strings", Strings{}),
                    optional_attr("weights", Floats{})},
          .infer = [](const Attrs& attrs, const Signature& in) -> Results {
            const Ints& columns = attrs.ints("ngram_indexes");
            if (in[0].rank() < 1 || columns.empty())
              return bad_operands("x has no axes or ngram_indexes no entries");
            const Dim width = Dim(std::ranges::max(columns)) + 1;
            return std::vector{
                tensor_of(DType::F32, resized(in[0].type.shape, in[0].rank() - 1, width))};
          }};
}

OpDef random_normal() {
  return draw("random_normal", "normally distributed numbers", normal());
}

OpDef random_uniform() {
  return draw("random_uniform", "equally distributed numbers", uniform());
}

OpDef random_normal_like() {
  return draw_like("random_normal_like", "normally distributed numbers in the shape of x",
                   normal());
}

OpDef random_uniform_like() {
  return draw_like("random_uniform_like", "equally distributed numbers in the shape of x",
                   uniform());
}

OpDef bernoulli() {
  return draw_like("bernoulli", "1 with the probability that x says, else 0", {});
}

OpDef multinomial() {
  return {.name = "multinomial",
          .summary = "classes drawn by the logarithms of their probabilities",
          .inputs = {"x"},
          .attrs = with_seed({{"sample_size", 1}}),
          .infer = [](const Attrs& attrs, const Signature& in) -> Results {
            TESSERA_TRY(const DType dtype, dtype_attr(attrs, "dtype", DType::I32));
            if (in[0].rank() != 2 || attrs.i("sample_size") < 0)
              return bad_operands(fmt::format("x has {} axes and sample_size is {}", in[0].rank(),
                                              attrs.i("sample_size")),
                                  "x has to have 2, and sample_size not to be negative");
            return std::vector{tensor_of(dtype, Shape{in[0].dim(0), attrs.i("sample_size")})};
          },
          .pure = false};
}

OpDef max_unpool() {
  return {.name = "max_unpool",
          .summary = "maxima put back where they were pooled from, zeros elsewhere",
          .inputs = {"x", "indices", "output_shape?"},
          .attrs = {required_attr("kernel_shape", Ints{}), optional_attr("pads", Ints{}),
                    optional_attr("strides", Ints{})},
          .infer = [](const Attrs& attrs, const Signature& in) -> Results {
            const DType dtype = in[0].dtype();
            if (given(in, 2))
              return std::vector{
                  tensor_of(dtype, in[2].value ? *in[2].value
                                               : Shape(in[0].type.shape.size(), Dim::undefined()))};
            const auto spatial = in[0].type.shape.size() - 2;
            const auto filled = [&](const char* name, std::size_t count, std::int64_t neutral) {
              const Ints list = attrs.has(name) ? attrs.ints(name) : Ints{};
              return list.empty() ? Ints(count, neutral) : list;
            };
            const Ints& kernel = attrs.ints("kernel_shape");
            if (in[0].rank() < 2 || kernel.size() != spatial)
              return bad_operands(fmt::format("kernel_shape has {} entries", kernel.size()),
                                  fmt::format("x has {} axes", in[0].rank()));
            const Ints strides = filled("strides", spatial, 1);
            const Ints pads = filled("pads", 2 * spatial, 0);
            if (strides.size() != spatial || pads.size() != 2 * spatial)
              return bad_operands("strides or pads do not fit kernel_shape");
            Shape shape = in[0].type.shape;
            for (std::size_t i = 0; i < spatial; ++i)
              shape[i + 2] =
                  (shape[i + 2] - 1) * strides[i] + kernel[i] - pads[i] - pads[i + spatial];
            return std::vector{tensor_of(dtype, shape)};
          }};
}

OpDef det() {
  return {.name = "det",
          .summary = "determinants of matrices",
          .inputs = {"x"},
          .infer = [](const Attrs&, const Signature& in) -> Results {
            if (in[0].rank() < 2)
              return bad_operands(fmt::format("x has {} axes", in[0].rank()),
                                  "it has to have at least 2");
            const Shape& shape = in[0].type.shape;
            return std::vector{tensor_of(in[0].dtype(), Shape(shape.begin(), shape.end() - 2))};
          }};
}

}  // namespace tessera::define
