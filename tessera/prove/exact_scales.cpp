#include "tessera/prove/exact_scales.h"

#include <algorithm>
#include <map>
#include <string>

#include "tessera/interp/interp.h"
#include "tessera/ops/operators.h"
#include "tessera/support/rng.h"

namespace tessera::prove {
namespace {

constexpr std::int64_t kMostScales = 1 << 12;  // one for each channel
constexpr double kMoved = 1e-12;  // far more than double rounds, far less than tells two numbers

bool is_small(const Tensor& tensor) {
  return tensor.count() <= kMostScales;
}

std::string bytes_of(const Tensor& tensor) {
  const auto view = tensor.bytes.view();
  return {reinterpret_cast<const char*>(view.data()), view.size()};
}

/// 1 is no scale, but says that a result is one already.
bool is_one(const Tensor& tensor) {
  return tensor.count() == 1 && number_at(tensor, 0) == 1;
}

}  // namespace

ExactScales::ExactScales(const Prepared& source, const Prepared& target)
    : source_(source.graph),
      target_(target.graph),
      joint_(joint_graph(source_, target_)),
      is_scale_(joint_.graph.value_count()) {
  const Graph& graph = joint_.graph;
  for (const GraphNode& node : graph.nodes())
    if (node.op == op::quantize_linear || node.op == op::dequantize_linear) {
      const ValueId scale = graph.inputs(node)[1];
      const Tensor* constant = graph.constant(scale);
      is_scale_[scale.index] =
          constant != nullptr && is_float(constant->dtype) && !is_one(*constant);
    }
  std::map<std::string, ValueId> by_bytes;  // what is computed of scales, rounded
  for (const Side side : kSides) {
    const Prepared& prepared = side == Side::Source ? source : target;
    const auto& values = joint_.values[static_cast<std::size_t>(side)];
    for (std::uint32_t i = 0; i < prepared.rounded.size(); ++i)
      if (const auto& rounded = prepared.rounded[i];
          rounded && values[i].present() && rounded->dtype == DType::F32 && is_small(*rounded))
        by_bytes.emplace(bytes_of(*rounded), values[i]);
  }
  for (std::uint32_t i = 0; i < graph.value_count(); ++i)
    if (const Tensor* constant = graph.constant({i});
        constant != nullptr && is_scale_[i] && is_small(*constant) && constant->dtype == DType::F32)
      if (const auto it = by_bytes.find(bytes_of(*constant)); it != by_bytes.end())
        products_.push_back({{i}, it->second});
}

ExactScales::Constants ExactScales::moved_constants(std::uint64_t seed) const {
  const Graph& graph = joint_.graph;
  Rng rng(seed);
  Constants constants(graph.value_count());
  for (std::uint32_t i = 0; i < graph.value_count(); ++i) {
    const Tensor* constant = graph.constant({i});
    if (constant == nullptr) continue;
    constants[i] = widened(*constant);
    if (!is_scale_[i] || constants[i]->dtype != DType::F64) continue;
    Buffer buffer(constants[i]->bytes.size());
    for (std::int64_t at = 0; at < constants[i]->count(); ++at)
      store_number(DType::F64, buffer.data(), at,
                   number_at(*constants[i], at) * (1 + kMoved * (2 * rng.uniform() - 1)));
    constants[i]->bytes = std::move(buffer).freeze();
  }
  return constants;
}

void ExactScales::compute_products(Constants& constants) const {
  if (products_.empty()) return;
  const Graph& graph = joint_.graph;
  Constants known = constants;  // also what is computed of constants
  for (const GraphNode& node : graph.nodes()) {
    std::vector<interp::Value> operands;
    for (const ValueId id : graph.inputs(node)) {
      if (!id.present() || !known[id.index] || !is_small(*known[id.index])) break;
      operands.push_back({*known[id.index]});
    }
    const auto outputs = graph.outputs(node);
    if (operands.size() != graph.inputs(node).size() || outputs.size() != 1 || !node.op->pure ||
        node.op->kind() == OpDef::Kind::Control)
      continue;
    const auto results = interp::run_op<double>(*node.op, *node.attrs, operands, 1, {});
    if (results && results->front().datum.is_tensor())
      known[outputs[0].index] = results->front().datum.tensor();
  }
  for (const Product& of : products_)
    if (const auto& product = known[of.product.index]) {
      Tensor& constant = *constants[of.constant.index];
      constant = Tensor{DType::F64, constant.shape, product->bytes};
    }
}

Widened ExactScales::moved(std::uint64_t seed) const {
  Constants constants = moved_constants(seed);
  compute_products(constants);
  return widened(joint_.graph, constants);
}

}  // namespace tessera::prove
