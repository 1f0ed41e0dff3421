#include <algorithm>

#include "tessera/ops/families.h"

namespace tessera::define {

OpDef tile() {
  return {.name = "tile",
          .summary = "x repeated along each axis",
          .inputs = {"x", "repeats"},
          .define = [](const Attrs&, const Signature& in) -> Expected<Definition> {
            TESSERA_TRY(const std::vector<Dim> repeats, known_sizes(in, 1, "repeats"));
            if (static_cast<int>(repeats.size()) != in[0].rank())
              return bad_operands(fmt::format("there are {} repeats", repeats.size()),
                                  fmt::format("x has {} axes", in[0].rank()));
            const std::vector<Axis> inner = axes("i", in[0].rank());
            std::vector<MergedAxis> run;
            for (std::size_t i = 0; i < inner.size(); ++i)
              run.push_back(repeats[i].is(1)
                                ? MergedAxis{{inner[i]}}
                                : merge({fmt::format("r{}", i), repeats[i]}, inner[i]));
            const Operand x{"x", in[0].dtype(), sizes(inner)};
            return Definition{.inputs = tessera::concat({x}, rest_as_given({"repeats"}, in)),
                              .outputs = {output(x.dtype, run, x(indices(inner)))}};
          }};
}

OpDef expand() {
  return {.name = "expand",
          .summary = "x broadcast with a tensor of the given shape",
          .inputs = {"x", "shape"},
          .define = [](const Attrs&, const Signature& in) -> Expected<Definition> {
            TESSERA_TRY(const Shape shape, known_sizes(in, 1, "shape"));
            const std::size_t had = in[0].type.shape.size(), rank = std::max(had, shape.size());
            std::vector<Axis> run = axes("i", static_cast<int>(rank));
            Operand x{"x", in[0].dtype()};
            std::vector<Scalar> at;
            for (std::size_t i = 0; i < rank; ++i) {
              const Dim wanted = i + shape.size() < rank ? Dim(1) : shape[i + shape.size() - rank];
              const Dim found = i + had < rank ? Dim(1) : in[0].type.shape[i + had - rank];
              const bool repeated = found.is(1);
              if (!repeated && !wanted.is(1) && (found - wanted).constant().value_or(0) != 0)
                return bad_operands(fmt::format("an axis of x has size {}", found.to_string()),
                                    fmt::format("the shape asks for {}", wanted.to_string()));
              // A symbolic size that meets a number other than 1 becomes it, being 1 or equal.
              run[i].extent = repeated || (!found.constant() && !wanted.is(1)) ? wanted : found;
              if (i + had < rank) continue;
              x.shape.push_back(found);
              at.push_back(repeated ? Scalar(0) : Scalar(run[i]));
            }
            return Definition{.inputs = tessera::concat({x}, rest_as_given({"shape"}, in)),
                              .outputs = {output(x.dtype, each(run), x(at))}};
          }};
}

}  // namespace tessera::define
