#include "examples/catalog.h"

#include "examples/attention.h"
#include "examples/conv.h"
#include "examples/dropout.h"
#include "examples/histogram.h"
#include "examples/layer_norm.h"
#include "examples/matmul.h"
#include "examples/softmax.h"
#include "examples/vector_add.h"

namespace tessera::tile::examples {

const std::vector<Example>& catalog() {
  static const std::vector<Example> examples = {
      {"vector_add",
       "x + y of any length, under a mask",
       [] { return vector_add(DType::F32, 1024); },
       {"x=f32[10000]", "y=f32[10000]", "out=f32[10000]", "n=10000"},
       {10, 1, 1}},
      {"softmax",
       "softmax of rows, a row per program",
       [] { return softmax(DType::F32, 1000); },
       {"x=f32[64, 1000]", "out=f32[64, 1000]"},
       {64, 1, 1}},
      {"online_softmax",
       "softmax of rows of any width, in two passes",
       [] { return online_softmax(DType::F32, 256); },
       {"x=f32[64, 1000]", "out=f32[64, 1000]"},
       {64, 1, 1}},
      {"layer_norm",
       "layer norm of rows, statistics in one pass",
       [] { return layer_norm(DType::F32, 768); },
       {"x=f32[64, 768]", "out=f32[64, 768]", "eps=1e-5"},
       {64, 1, 1}},
      {"matmul",
       "a · b through views",
       [] {
         return matmul(DType::F32, DType::F32, {64, 96, 128, 8});
       },
       {"a=f32[200, 300]", "b=f32[300, 400]", "c=f32[200, 400]"},
       {20, 1, 1}},
      {"matmul_pointers",
       "a · b through pointers and masks",
       [] {
         return matmul_pointers(DType::F32, {64, 64, 32, 8});
       },
       {"a=f32[6000]", "b=f32[12000]", "c=f32[7200]", "m=60", "n=120", "k=100", "a_m=100", "a_k=1",
        "b_k=120", "b_n=1", "c_m=120", "c_n=1"},
       {2, 1, 1}},
      {"matmul_bias",
       "gelu(a · b + bias) in one kernel",
       [] {
         return matmul_bias(DType::F32, {64, 96, 128, 8}, Activation::Gelu);
       },
       {"a=f32[200, 300]", "b=f32[300, 400]", "bias=f32[400]", "c=f32[200, 400]"},
       {20, 1, 1}},
      {"matmul_packed",
       "a · b with b packed ahead in panels",
       [] {
         return matmul_packed(DType::F32, {64, 96, 128, 8}, 24);
       },
       {"a=f32[200, 300]", "b=f32[17, 300, 24]", "c=f32[200, 400]"},
       {20, 1, 1}},
      {"attention",
       "fused attention by online softmax",
       [] {
         return attention(DType::F32, 64, {64, 64}, Mask::None);
       },
       {"q=f32[4, 200, 64]", "k=f32[4, 200, 64]", "v=f32[4, 200, 64]", "out=f32[4, 200, 64]"},
       {4, 4, 1}},
      {"causal_attention",
       "the same; a query sees the keys up to its own position",
       [] {
         return attention(DType::F32, 64, {64, 64}, Mask::Causal);
       },
       {"q=f32[4, 200, 64]", "k=f32[4, 200, 64]", "v=f32[4, 200, 64]", "out=f32[4, 200, 64]"},
       {4, 4, 1}},
      {"conv",
       "a convolution as a product of boxes of pixels",
       [] {
         return conv(DType::F32, {3, 3, 2, 1}, {1, 4, 8, 32, 16}, AfterConv::BiasRelu);
       },
       {"image=f32[2, 5, 2, 7, 2, 20]", "weight=f32[9, 20, 40]", "bias=f32[40]",
        "out=f32[2, 5, 7, 40]"},
       {8, 1, 1}},
      {"dropout",
       "dropout by Philox, reproducible from its seed",
       [] { return dropout(DType::F32, 1024); },
       {"x=f32[10000]", "out=f32[10000]", "n=10000", "p=0.5", "seed=7"},
       {10, 1, 1}},
      {"histogram",
       "counts by atomic additions",
       [] { return histogram(1024); },
       {"x=i32[10000]", "counts=i32[1000]", "n=10000", "bins=1000"},
       {10, 1, 1}},
  };
  return examples;
}

const Example* find_example(std::string_view name) {
  for (const Example& example : catalog()) {
    if (example.name == name) return &example;
  }
  return nullptr;
}

}  // namespace tessera::tile::examples
