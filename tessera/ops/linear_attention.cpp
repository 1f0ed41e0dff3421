#include <cmath>
#include <limits>

#include "tessera/ops/composite.h"

// Operators of models that carry a state of fixed size along time instead of a cache.

namespace tessera::define {
namespace {

/// The sizes of a last axis that packs heads.
Expected<Dim> size_of_head(const Val& x, std::string_view name, std::int64_t heads) {
  const Dim packed = x.dim(2);
  if (const auto size = packed.constant(); size && *size % heads != 0)
    return bad_operands(fmt::format("the last axis of {} has size {}", name, *size),
                        fmt::format("{} heads have to divide it", heads));
  return floor_div(packed, heads);
}

/// [batch, time, packed] as [time, batch, sizes…].
Val steps_of(const Val& x, const Vals& sizes) {
  Body& b = x.body();
  const Val split = b.op("reshape", {x, joined(tessera::concat({sizes_of(x, 0, 2)}, sizes), 0)});
  Ints order = counted(0, 2 + static_cast<int>(sizes.size()));  // of a failed reshape too
  std::swap(order[0], order[1]);
  return transposed(split, order);
}

/// A size as a list of one number.
Val size_list(const Val& x, const Dim& size, std::int64_t heads) {
  Body& b = x.body();
  if (const auto constant = size.constant()) return b.ints({*constant});
  return b.op("div", {sizes_of(x, 2, 3), b.ints({heads})});
}

/// Gates and heads that the attributes of linear_attention require of its operands.
struct HeadsAndGates {
  bool gated, delta;
  std::int64_t heads, queries;
};

Expected<Done> check_heads_and_gates(const Vals& in, const HeadsAndGates& stated) {
  const bool decay = given(in, 4), beta = given(in, 5);
  if (decay != stated.gated || beta != stated.delta)
    return bad_operands(fmt::format("decay is {}, beta is {}", decay ? "given" : "left out",
                                    beta ? "given" : "left out"),
                        "gated rules take decay, delta rules take beta, others neither");
  if (stated.heads < 1 || stated.queries < 1 || stated.queries % stated.heads != 0)
    return bad_operands(
        fmt::format("{} query heads share {} key and value heads", stated.queries, stated.heads),
        "the latter has to divide the former");
  return Done{};
}

}  // namespace

OpDef linear_attention() {
  return {
      .name = "linear_attention",
      .summary =
          "scale * query S, where S, a matrix for each head, is updated by key and value at "
          "every step",
      .inputs = {"query", "key", "value", "past_state?", "decay?", "beta?"},
      .outputs = {"out", "present_state"},
      .attrs = {{"chunk_size", 64},
                required_attr("kv_num_heads", 1),
                required_attr("q_num_heads", 1),
                {"scale", 0.0},
                {"update_rule", "gated_delta"}},
      .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
        TESSERA_TRY_DONE(
            check_word(attrs, "update_rule", {"linear", "gated", "delta", "gated_delta"}));
        const std::string& rule = attrs.s("update_rule");
        const bool gated = rule.starts_with("gated"), delta = rule.ends_with("delta");
        const std::int64_t heads = attrs.i("kv_num_heads"), queries = attrs.i("q_num_heads");
        TESSERA_TRY_DONE(check_heads_and_gates(in, {gated, delta, heads, queries}));
        constexpr std::string_view kNames[] = {"query", "key", "value", "", "decay", "beta"};
        for (const std::size_t i : {0, 1, 2, 4, 5})
          if (given(in, i)) TESSERA_TRY_DONE(check_rank(in[i], kNames[i], 3));
        TESSERA_TRY(const Dim depth, size_of_head(in[0], "query", queries));
        TESSERA_TRY(const Dim key_depth, size_of_head(in[1], "key", heads));
        if (depth.constant() && key_depth.constant() && depth.constant() != key_depth.constant())
          return bad_operands(fmt::format("a head of query has size {}, one of key {}",
                                          depth.to_string(), key_depth.to_string()),
                              "they have to be the same");
        TESSERA_TRY(const Dim width, size_of_head(in[2], "value", heads));

        const Val depths = size_list(in[0], depth, queries);
        const Val widths = size_list(in[2], width, heads);
        const Val one = b.ints({1}), kv = b.ints({heads}), shared = b.ints({queries / heads});
        const auto wide = [](const Val& x) { return converted(x, DType::F32); };
        // Each slice is [batch, heads, rows, columns].
        Vals slices = {steps_of(wide(in[0]), {kv, shared, depths}),
                       steps_of(wide(in[1]), {kv, depths, one}),
                       steps_of(wide(in[2]), {kv, one, widths})};
        if (gated) {
          const Dim size = in[4].dim(2);
          const bool per_head = (size - heads).is(0);
          if (!size.constant()) return needs_value("shape");
          if (!per_head && !(size - in[1].dim(2)).is(0))
            return bad_operands(fmt::format("the last axis of decay has size {}", size.to_string()),
                                "it has to be that of key, or the number of its heads");
          slices.push_back(
              b.op("exp", {steps_of(wide(in[4]), {kv, per_head ? one : depths, one})}));
        }
        if (delta) {
          const Dim size = in[5].dim(2);
          const bool common = size.is(1);
          if (!size.constant()) return needs_value("shape");
          if (!common && !(size - heads).is(0))
            return bad_operands(fmt::format("the last axis of beta has size {}", size.to_string()),
                                "it has to be 1 or the number of key and value heads");
          slices.push_back(steps_of(wide(in[5]), {common ? one : kv, one, one}));
        }
        Val state;
        if (given(in, 3)) {
          TESSERA_TRY_DONE(check_rank(in[3], "past_state", 4));
          state = wide(in[3]);
        } else {
          state = filled(0, DType::F32, {sizes_of(in[0], 0, 1), kv, depths, widths});
        }
        const Vals results =
            b.scan({state}, slices, [&](Body& inner, const Vals& states, const Vals& now) -> Vals {
              const Val &query = now[0], &key = now[1];
              Val before = states[0], value = now[2];
              if (gated) before = before * now[3];
              if (delta) {
                const Val row = transposed(key, {0, 1, 3, 2});
                value = now.back() * (value - inner.op("matmul", {row, before}));
              }
              const Val after = before + key * value;
              return {after, inner.op("matmul", {query, after})};
            });

        double scale = attrs.f("scale");
        Val read = results.back();  // [time, batch, heads, shared, width]
        if (scale == 0) {
          if (const auto size = depth.constant())
            scale = 1 / std::sqrt(static_cast<double>(*size));
          else
            read = read / b.op("sqrt", {wide(depths)});
        }
        if (scale != 0) read = read * scale;
        read = transposed(read, {1, 0, 2, 3, 4});
        const Val packed = widths * b.ints({queries});
        const Val out = b.op("reshape", {read, joined({sizes_of(in[0], 0, 2), packed}, 0)});
        const DType kept = given(in, 3) ? in[3].dtype() : in[0].dtype();
        return Vals{converted(out, in[0].dtype()), converted(results[0], kept)};
      }};
}

OpDef causal_conv_with_state() {
  return {.name = "causal_conv_with_state",
          .summary =
              "depthwise convolution over the past and present of each channel, and the inputs "
              "that the next call needs",
          .inputs = {"x", "weight", "bias?", "past_state?"},
          .outputs = {"out", "present_state"},
          .attrs = {{"activation", "none"}},
          .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
            TESSERA_TRY_DONE(check_word(attrs, "activation", {"none", "silu", "swish"}));
            TESSERA_TRY_DONE(check_rank(in[0], "x", 3));
            TESSERA_TRY_DONE(check_rank(in[1], "weight", 3));
            auto channels = in[1].dim(0).constant();
            if (!channels) channels = in[0].dim(1).constant();
            if (!channels) return needs_value("shape");
            Val past;
            if (given(in, 3)) {
              TESSERA_TRY_DONE(check_rank(in[3], "past_state", 3));
              past = in[3];
            } else {
              const Val reach = sizes_of(in[1], 2, 3) - b.ints({1});
              past = filled(0, in[0].dtype(), {sizes_of(in[0], 0, 2), reach});
            }
            const Val whole = joined({past, in[0]}, 2);
            Vals operands = {whole, in[1]};
            if (given(in, 2)) operands.push_back(in[2]);
            Val out = b.op("conv", operands, {{"group", *channels}});
            if (attrs.s("activation") != "none") out = b.op("swish", {out});
            constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
            const Val present =
                b.op("slice", {whole, sizes_of(in[0], 2, 3), b.ints({kEnd}), b.ints({2})});
            return Vals{out, present};
          }};
}

}  // namespace tessera::define
