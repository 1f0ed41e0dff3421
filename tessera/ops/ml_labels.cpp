#include "tessera/ops/families.h"

// Encodings of categories of ai.onnx.ml: host functions, since categories may be text.

namespace tessera::define {

OpDef ml_label_encoder() {
  return {
      .name = "ml_label_encoder",
      .summary = "each element looked up among keys and replaced by the value of its key",
      .inputs = {"x"},
      .attrs = {{"default_float", -0.0},
                {"default_int64", -1},
                {"default_string", "_Unused"},
                optional_attr("default_tensor", Tensor{}),
                {"keys_floats", Floats{}},
                {"keys_int64s", Ints{}},
                {"keys_strings", Strings{}},
                optional_attr("keys_tensor", Tensor{}),
                {"values_floats", Floats{}},
                {"values_int64s", Ints{}},
                {"values_strings", Strings{}},
                optional_attr("values_tensor", Tensor{})},
      .infer = [](const Attrs& attrs, const Signature& in) -> Expected<std::vector<OpaqueType>> {
        const DType dtype = attrs.has("values_tensor") ? attrs.tensor("values_tensor").dtype
                            : !attrs.strings("values_strings").empty() ? DType::String
                            : !attrs.ints("values_int64s").empty()     ? DType::I64
                                                                       : DType::F32;
        return std::vector{OpaqueType{.dtype = dtype, .shape = in[0].type.shape}};
      }};
}

OpDef ml_one_hot_encoder() {
  return {
      .name = "ml_one_hot_encoder",
      .summary = "a one at the position of each element among categories, zeros elsewhere",
      .inputs = {"x"},
      .attrs = {{"cats_int64s", Ints{}}, {"cats_strings", Strings{}}, {"zeros", 1}},
      .infer = [](const Attrs& attrs, const Signature& in) -> Expected<std::vector<OpaqueType>> {
        const std::size_t ints = attrs.ints("cats_int64s").size();
        const std::size_t strings = attrs.strings("cats_strings").size();
        if ((ints == 0) == (strings == 0))
          return bad_operands(fmt::format("there are {} categories that are numbers, {} that "
                                          "are text",
                                          ints, strings),
                              "there have to be categories of one kind");
        const Dim categories = static_cast<std::int64_t>(ints + strings);
        return std::vector{OpaqueType{.dtype = DType::F32,
                                      .shape = tessera::concat(in[0].type.shape, {categories})}};
      }};
}

}  // namespace tessera::define
