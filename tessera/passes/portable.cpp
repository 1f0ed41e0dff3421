#include "tessera/passes/portable.h"

#include <algorithm>

#include "tessera/ir/builder.h"
#include "tessera/ir/expand.h"
#include "tessera/ops/operators.h"
#include "tessera/passes/rewriter.h"

namespace tessera::passes {

Expected<Graph> portable(const Graph& whole) {
  const OpRef late[] = {op::rms_normalization, op::rotary_embedding, op::attention};
  TESSERA_TRY(const Graph graph, expand(whole, [&](const OpDef& op) {
                return std::ranges::find(late, &op) != std::end(late);
              }));
  return Rewriter(graph,
                  {[&](Rewriter& out, std::size_t index) -> std::optional<Rewriter::Results> {
                    const GraphNode node = out.made().nodes()[index];
                    if (node.op != op::swish) return std::nullopt;
                    const ValueId x = out.made().inputs(node)[0];
                    const double alpha = node.attrs->f("alpha");
                    GraphBuilder body;
                    const Val in = body.input({}, {.type = out.made().type(x)});
                    const Val scaled = alpha == 1.0 ? in : in * body.number(alpha, in.dtype());
                    const auto made = body.finish(Vals{in * body.op(*op::sigmoid, {scaled})});
                    return made ? out.emit(*made, {x}) : std::nullopt;
                  }})
      .run();
}

}  // namespace tessera::passes
