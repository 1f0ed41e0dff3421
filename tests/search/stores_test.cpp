#include <filesystem>

#include "tessera/cost/store.h"
#include "tessera/machine/machine.h"
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

std::string text_on(const Graph& graph, const Computer& computer) {
  auto model = cost::open_model({.store = store_of(computer), .target = computer.name});
  EXPECT_TRUE(model) << to_string(model.error());
  const search::Found found =
      testing::searched(graph, testing::rules_named({}), **model, {.steps = 150});
  return to_text(found.graph);
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

}  // namespace
}  // namespace tessera
