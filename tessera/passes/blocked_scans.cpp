#include "tessera/passes/blocked_scans.h"

#include <algorithm>
#include <optional>

#include "tessera/expr/number.h"
#include "tessera/passes/writer.h"

namespace tessera::passes {
namespace {

/// Elements of a block, where the axis has a divisor near it.
constexpr std::int64_t kBlock = 32;
/// Shortest axis that is cut. A prefix of it has 128 elements on average, that of a block 16.
constexpr std::int64_t kLeastExtent = 8 * kBlock;

std::int64_t block_of(std::int64_t extent) {
  for (std::int64_t more = 0; more <= kBlock / 2; ++more)
    for (const std::int64_t size : {kBlock - more, kBlock + more})
      if (extent % size == 0) return size;
  return kBlock;
}

/// Operators of a scan: of elements, of blocks, and of both; an element that changes nothing.
struct ScanOps {
  OpRef scan, reduce, combine;
  double neutral;
};

class BlockedScan {
 public:
  /// The new result; none if the scan is left as it is.
  static std::optional<ValueId> write(Rebuilder& out, const GraphNode& node, const ScanOps& ops) {
    const Graph& graph = out.from();
    const ValueId x = graph.inputs(node)[0];
    const auto shape = static_shape(graph.type(x));
    const Tensor* named = graph.constant(graph.inputs(node)[1]);
    const DType dtype = graph.type(x).dtype;
    const bool is_wide =
        dtype == DType::F32 || dtype == DType::F64 || dtype == DType::I32 || dtype == DType::I64;
    if (!shape || named == nullptr || named->count() != 1 || !is_wide || product(*shape) == 0)
      return std::nullopt;
    const std::int64_t along = integer_at(*named, 0);
    const auto axis = static_cast<std::ptrdiff_t>(
        along < 0 ? along + static_cast<std::int64_t>(shape->size()) : along);
    if (const std::int64_t extent = shape->at(static_cast<std::size_t>(axis));
        extent >= kLeastExtent) {
      BlockedScan scan(out, dtype, ops, node.attrs->i("reverse"));
      scan.outer_ = product(std::span(*shape).first(static_cast<std::size_t>(axis)));
      scan.inner_ = product(std::span(*shape).subspan(static_cast<std::size_t>(axis) + 1));
      Writer& writer = scan.writer_;
      const ValueId flat = writer.reshaped(out.mapped(x), {scan.outer_, extent, scan.inner_});
      return writer.reshaped(scan.written(flat, extent, node.attrs->i("exclusive")), *shape);
    }
    return std::nullopt;
  }

 private:
  BlockedScan(Rebuilder& out, DType dtype, const ScanOps& ops, std::int64_t reverse)
      : writer_(out, dtype), dtype_(dtype), ops_(ops), reverse_(reverse) {}

  /// Scan of x [outer, extent, inner] along the axis in the middle.
  ValueId written(ValueId x, std::int64_t extent, std::int64_t exclusive) {
    const Writer::Sizes whole{outer_, extent, inner_};
    if (extent < kLeastExtent) return scanned(x, 1, exclusive, whole);
    const std::int64_t size = block_of(extent), count = integer::floor_div(extent + size - 1, size);
    const Writer::Sizes padded{outer_, count * size, inner_};
    if (padded != whole) x = padded_to(x, padded, count * size - extent);
    const Writer::Sizes blocks{outer_, count, size, inner_};
    const ValueId cut = writer_.reshaped(x, blocks);
    const ValueId totals = writer_.add(ops_.reduce, {{"keepdims", std::int64_t{0}}},
                                       {cut, writer_.integers({2})}, {outer_, count, inner_});
    const ValueId before =
        writer_.reshaped(written(totals, count, /*exclusive=*/1), {outer_, count, 1, inner_});
    const ValueId sums =
        writer_.add(ops_.combine, {}, {scanned(cut, 2, exclusive, blocks), before}, blocks);
    const ValueId joined = writer_.reshaped(sums, padded);
    if (padded == whole) return joined;
    return writer_.add(op::slice, {},
                       {joined, writer_.integers({0, 0, 0}), writer_.integers(whole)}, whole);
  }

  ValueId scanned(ValueId x, std::int64_t axis, std::int64_t exclusive,
                  const Writer::Sizes& shape) {
    const auto number = Tensor::of<std::int64_t>(DType::I64, {}, std::span(&axis, 1));
    return writer_.add(ops_.scan, {{"exclusive", exclusive}, {"reverse", reverse_}},
                       {x, writer_.constant(number)}, shape);
  }

  ValueId padded_to(ValueId x, const Writer::Sizes& shape, std::int64_t more) {
    Buffer buffer(static_cast<std::size_t>(byte_width(dtype_)));
    store_number(dtype_, buffer.data(), 0, ops_.neutral);
    return writer_.add(op::pad, {},
                       {x, writer_.integers({0, 0, 0, 0, more, 0}),
                        writer_.constant({dtype_, {}, std::move(buffer).freeze()})},
                       shape);
  }

  Writer writer_;
  const DType dtype_;
  const ScanOps& ops_;
  const std::int64_t reverse_;
  std::int64_t outer_ = 1, inner_ = 1;
};

}  // namespace

Graph blocked_scans(const Graph& graph) {
  Graph result = graph;
  for (const ScanOps& ops : {ScanOps{op::cum_sum, op::reduce_sum, op::add, 0},
                             ScanOps{op::cum_prod, op::reduce_prod, op::mul, 1}})
    result = with_rewritten(result, ops.scan, [&](Rebuilder& out, const GraphNode& node) {
      return BlockedScan::write(out, node, ops);
    });
  return result;
}

}  // namespace tessera::passes
