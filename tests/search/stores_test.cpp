#include <filesystem>

#include "tessera/cost/store.h"
#include "tessera/ir/builder.h"
#include "tessera/machine/machine.h"
#include "tessera/prove/sweep.h"
#include "tests/search/search_check.h"

namespace tessera {
namespace {

/// A computer by what it can do.
struct Computer {
  std::string name;
  double flops_per_second, bytes_per_second, seconds_per_launch;
};

/// A store that knows this one computer, and no kernel.
std::filesystem::path store_of(const Computer& computer) {
  const std::filesystem::path file =
      std::filesystem::path(::testing::TempDir()) / ("search_" + computer.name + ".sqlite");
  std::filesystem::remove(file);
  auto store = cost::Store::open(file);
  EXPECT_TRUE(store) << to_string(store.error());
  cost::Target target = cost::target_of(machine::host(), 1);
  target.name = computer.name;
  target.flops_per_second = computer.flops_per_second;
  target.bytes_per_second = computer.bytes_per_second;
  target.seconds_per_launch = computer.seconds_per_launch;
  EXPECT_TRUE(store->put(target));
  return file;
}

Graph searched_on(const Graph& graph, const Computer& computer, std::int64_t steps) {
  auto model = cost::open_model({.store = store_of(computer), .target = computer.name});
  EXPECT_TRUE(model) << to_string(model.error());
  if (!model) return graph;
  return testing::found_by(graph, testing::rules_named({}), **model, {.steps = steps}).graph;
}

std::string text_on(const Graph& graph, const Computer& computer) {
  const Graph found = searched_on(graph, computer, 150);
  testing::expect_same_results(graph, found, 1e-4);
  return to_text(found);
}

/// (x·y)·z takes half of the multiplications of x·(y·z), and a larger matrix in between.
constexpr std::string_view kProducts =
    "graph(x: f32[4, 15], y: f32[15, 64], z: f32[64, 15]) { return matmul(x, matmul(y, z)) }";

const Computer kSlowToCompute{"slow_to_compute", 1e6, 1e14, 1e-12};
const Computer kSlowToRead{"slow_to_read", 1e14, 1e6, 1e-12};

TEST(Search, IsDecidedByWhatTheStoreKnowsOfTheComputer) {
  const Graph graph = testing::parsed(kProducts);
  EXPECT_NE(text_on(graph, kSlowToCompute), text_on(graph, kSlowToRead));
}

TEST(Search, GivesTheSameBytesWithTheSameStore) {
  const Graph graph = testing::parsed(kProducts);
  EXPECT_EQ(text_on(graph, kSlowToCompute), text_on(graph, kSlowToCompute));
}

/// SqueezeNet 1.1 (Iandola et al., 2016) for images of 224 by 224 pixels, with any weights.
class SqueezeNet {
 public:
  Graph graph() {
    const Val x = graph_.input("x", DType::F32, {1, 3, 224, 224});
    Val image = max_pool(relu_conv(x, {64, 3, 3, 3}, {{"strides", Ints{2, 2}}}));
    std::int64_t channels = 64;
    for (const auto& [squeezed, expanded, pools] :
         {Fire{16, 64, false}, Fire{16, 64, true}, Fire{32, 128, false}, Fire{32, 128, true},
          Fire{48, 192, false}, Fire{48, 192, false}, Fire{64, 256, false}, Fire{64, 256, false}}) {
      const Val small = relu_conv(image, {squeezed, channels, 1, 1}, {});
      const Val narrow = relu_conv(small, {expanded, squeezed, 1, 1}, {});
      const Val wide = relu_conv(small, {expanded, squeezed, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}});
      image = graph_.op("concat", {narrow, wide}, {{"axis", 1}});
      channels = 2 * expanded;
      if (pools) image = max_pool(image);
    }
    const Val classes = relu_conv(image, {1000, channels, 1, 1}, {});
    const Val axes = graph_.constant(Tensor::of<std::int64_t>(DType::I64, {2}, Ints{2, 3}), "axes");
    auto made = graph_.finish({{"y", graph_.op("reduce_mean", {classes, axes})}});
    EXPECT_TRUE(made) << to_string(made.error());
    return *std::move(made);
  }

 private:
  struct Fire {
    std::int64_t squeezed, expanded;
    bool pools;
  };

  Val relu_conv(const Val& image, const Ints& shape, const Attrs& attrs) {
    const Val weight = graph_.constant(testing::random_f32(shape, ++count_), {});
    const Val bias = graph_.constant(testing::random_f32({shape[0]}, ++count_), {});
    return graph_.op("relu", {graph_.op("conv", {image, weight, bias}, attrs)});
  }
  Val max_pool(const Val& image) {
    return graph_.op("max_pool", {image},
                     {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"ceil_mode", 1}});
  }

  GraphBuilder graph_;
  std::uint64_t count_ = 0;
};

/// One core as it was measured, and an accelerator for which a launch is as dear as 10^8
/// operations.
const Computer kCore{"neoverse-v1", 83e9, 16.5e9, 0.3e-6};
const Computer kAccelerator{"accelerator", 60e12, 4.8e12, 3e-6};

TEST(SlowSearch, AModelComesOutDifferentOnAnotherComputer) {
  const Graph model = SqueezeNet().graph();
  constexpr std::int64_t kSteps = 120;
  const Graph on_core = searched_on(model, kCore, kSteps);
  const Graph on_accelerator = searched_on(model, kAccelerator, kSteps);
  EXPECT_FALSE(same_graph(on_core, on_accelerator));
  for (const Graph& found : {on_core, on_accelerator}) {
    const auto proof = prove::sweep(model, found, {});
    ASSERT_TRUE(proof) << to_string(proof.error());
    EXPECT_TRUE(std::holds_alternative<prove::Proved>(proof->verdict));
  }
  EXPECT_EQ(to_text(searched_on(model, kCore, kSteps)), to_text(on_core));
}

}  // namespace
}  // namespace tessera
