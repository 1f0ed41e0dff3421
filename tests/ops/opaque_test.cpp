#include <algorithm>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "tessera/ops/catalog.h"
#include "tessera/runtime/host/host.h"
#include "tests/ops/expect_op.h"

namespace tessera {
namespace {

TEST(Opaque, NamesAreThoseOfTheHostFunctions) {
  std::vector<std::string> inferred, hosted;
  for (const OpDef& op : catalog())
    if (op.kind() == OpDef::Kind::Opaque) inferred.push_back(op.name);
  for (const host::Entry& entry : host::all()) hosted.emplace_back(entry.name);
  EXPECT_EQ(inferred, hosted);
}

TEST(Opaque, OnlyDrawsAreImpure) {
  std::vector<std::string> impure;
  for (const OpDef& op : catalog())
    if (!op.pure) impure.push_back(op.name);
  EXPECT_EQ(impure, (std::vector<std::string>{"bernoulli", "multinomial", "random_normal",
                                              "random_normal_like", "random_uniform",
                                              "random_uniform_like"}));
}

Argument argument(DType dtype, Shape shape) {
  return {.type = {dtype, std::move(shape)}};
}

/// The results of an operator, as text: dtype and shape.
std::string inferred(const char* name, const Attrs& attrs, const Signature& in) {
  const OpDef* op = find_op(name);
  const auto complete = completed(*op, attrs);
  if (!complete) return "attributes";
  const auto types = op->infer(*complete, in);
  if (!types) return "none";
  std::string text;
  for (const OpaqueType& type : *types) {
    text += (text.empty() ? "" : " ") + std::string(to_string(type.dtype));
    if (type.kind == OpaqueType::Kind::Sequence) text += "*";
    if (!type.shape) continue;
    text += "[";
    for (const Dim& size : *type.shape)
      text += (text.back() == '[' ? "" : ",") + (size.is_undefined() ? "?" : size.to_string());
    text += "]";
  }
  return text;
}

TEST(Opaque, TellsWhatIsKnownOfTheResults) {
  const Argument x = argument(DType::F32, {Dim::symbol("n"), 6}),
                 text = argument(DType::String, {3});
  Argument k = argument(DType::I64, {1});
  EXPECT_EQ(inferred("top_k", {}, {x, k}), "f32[n,?] i64[n,?]");
  k.value = std::vector<Dim>{4};
  EXPECT_EQ(inferred("top_k", {}, {x, k}), "f32[n,4] i64[n,4]");
  EXPECT_EQ(inferred("top_k", {{"axis", 2}}, {x, k}), "none");
  EXPECT_EQ(inferred("unique", {}, {x}), "f32[?] i64[?] i64[?] i64[?]");
  EXPECT_EQ(inferred("unique", {{"axis", 0}}, {x}), "f32[?,6] i64[?] i64[?] i64[?]");
  EXPECT_EQ(inferred("compress", {{"axis", -1}}, {x, k}), "f32[n,?]");
  EXPECT_EQ(inferred("non_zero", {}, {x}), "i64[2,?]");
  EXPECT_EQ(inferred("non_max_suppression", {}, {x, x}), "i64[?,3]");
  EXPECT_EQ(inferred("sequence_construct", {}, {x}), "f32*");
  EXPECT_EQ(inferred("sequence_at", {}, {x, k}), "f32");
  EXPECT_EQ(inferred("sequence_empty", {{"dtype", std::string("i64")}}, {}), "i64*");
  EXPECT_EQ(inferred("sequence_length", {}, {x}), "i64[]");
  EXPECT_EQ(inferred("string_concat", {}, {text, argument(DType::String, {2, 1})}), "string[2,3]");
  EXPECT_EQ(inferred("string_split", {}, {text}), "string[3,?] i64[3]");
  EXPECT_EQ(inferred("cast_string", {{"to", std::string("f32")}}, {text}), "f32[3]");
  EXPECT_EQ(inferred("random_normal", {{"shape", Ints{2, 3}}}, {}), "f32[2,3]");
  EXPECT_EQ(inferred("random_normal", {}, {}), "attributes");
  EXPECT_EQ(inferred("random_uniform_like", {{"dtype", std::string("f64")}}, {x}), "f64[n,6]");
  EXPECT_EQ(inferred("multinomial", {{"sample_size", 5}}, {x}), "i32[n,5]");
  EXPECT_EQ(inferred("det", {}, {argument(DType::F32, {7, 3, 3})}), "f32[7]");
  EXPECT_EQ(inferred("max_unpool", {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}},
                     {argument(DType::F32, {1, 1, 2, 3}), k}),
            "f32[1,1,4,6]");
}

TEST(Opaque, ReinterpretsBitsOfOneWidth) {
  const Argument x{.type = {DType::F32, {Dim::symbol("n")}}};
  EXPECT_EQ(inferred("bit_cast", {{"to", std::string("i32")}}, {x}), "i32[n]");
  EXPECT_EQ(inferred("bit_cast", {{"to", std::string("i64")}}, {x}), "none");
}

}  // namespace
}  // namespace tessera
