#include "tessera/ops/attention.h"

#include <array>
#include <cmath>
#include <limits>

#include "tessera/ops/composite.h"

namespace tessera::define {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Splits heads: [batch, time, heads * size] to [batch, time, heads, size].
Val split_heads(const Val& x, std::int64_t heads) {
  return reshaped(x, {0, 0, heads, -1});
}

/// Swaps the axes time and heads.
Val swapped(const Val& x) {
  return transposed(x, {0, 2, 1, 3});
}

/// Sizes and tensors of one call, with separate heads: [batch, heads, time, size].
struct Heads {
  Val q, k, v;
  Dim count, kv_count, size;

  static Expected<Heads> of(const Attrs& attrs, const Vals& in) {
    const int rank = in[0].rank();
    if ((rank != 3 && rank != 4) || in[1].rank() != rank || in[2].rank() != rank)
      return bad_operands(fmt::format("query, key and value have {}, {} and {} axes", rank,
                                      in[1].rank(), in[2].rank()),
                          "they have to have 3 or 4 alike");
    if (rank == 4) return Heads{in[0], in[1], in[2], in[0].dim(1), in[1].dim(1), in[0].dim(3)};
    if (!attrs.has("q_num_heads") || !attrs.has("kv_num_heads"))
      return bad_operands("q_num_heads or kv_num_heads is missing",
                          "tensors of 3 axes do not tell the number of heads");
    const std::int64_t count = attrs.i("q_num_heads"), kv_count = attrs.i("kv_num_heads");
    if (count < 1 || kv_count < 1) return bad_operands("the number of heads is not positive");
    return Heads{swapped(split_heads(in[0], count)),
                 swapped(split_heads(in[1], kv_count)),
                 swapped(split_heads(in[2], kv_count)),
                 count,
                 kv_count,
                 floor_div(in[0].dim(2), count)};
  }

  /// Repeats each key and value head for the query heads that share it (grouped-query attention).
  Expected<Val> repeated(const Val& x) const {
    if (count == kv_count) return x;
    const auto all = count.constant(), kv = kv_count.constant();
    if (!all || !kv) return needs_value("shape");
    if (*kv < 1 || *all % *kv != 0)
      return bad_operands(fmt::format("{} query heads share {} key and value heads", *all, *kv),
                          "the latter has to divide the former");
    Body& b = x.body();
    const Val wide = b.op("expand", {unsqueezed(x, {2}), b.ints({1, 1, *all / *kv, 1, 1})});
    return b.op("reshape",
                {wide, joined({sizes_of(x, 0, 1), b.ints({*all}), sizes_of(x, 2, 4)}, 0)});
  }

  /// Scores before masks: query and key are both multiplied by the square root of the scale.
  Val scores(const Attrs& attrs, const Val& key) const {
    const Val turned = transposed(key, {0, 1, 3, 2});
    if (attrs.has("scale") && attrs.f("scale") == 1) return q.body().op("matmul", {q, turned});
    const Val root = root_of_scale(attrs);
    return q.body().op("matmul", {q * root, turned * root});
  }

 private:
  /// By default of 1/sqrt(size).
  Val root_of_scale(const Attrs& attrs) const {
    Body& b = q.body();
    if (attrs.has("scale")) return b.number(std::sqrt(attrs.f("scale")), q.dtype());
    if (const auto constant = size.constant())
      return b.number(std::pow(static_cast<double>(*constant), -0.25), q.dtype());
    return b.op("pow", {converted(sizes_of(q, 3, 4), q.dtype()), b.number(-0.25, q.dtype())});
  }
};

/// Positions 0, 1, … along an axis.
Val positions(const Val& x, int axis) {
  Body& b = x.body();
  const Val count = picked(sizes_of(x, axis, axis + 1), 0, 0);
  return b.op("range", {b.number(0, DType::I64), count, b.number(1, DType::I64)});
}

/// Bias that is added to the scores; absent if there is no mask.
class Bias {
 public:
  explicit Bias(DType dtype) : dtype_(dtype) {}

  void add(const Val& part) { sum_ = sum_.present() ? sum_ + part : part; }
  void allow(const Val& where) {
    Body& b = where.body();
    add(b.op("where", {where, b.number(0, dtype_), b.number(-kInfinity, dtype_)}));
  }
  const Val& sum() const { return sum_; }

 private:
  DType dtype_;
  Val sum_;
};

/// Extends the mask to all keys with entries that mask out.
Expected<Val> whole_mask(const Val& mask, const Dim& keys) {
  if (mask.rank() < 1 || mask.rank() > 4)
    return bad_operands(fmt::format("the mask has {} axes", mask.rank()), "it has to have 1 to 4");
  const int last = mask.rank() - 1;
  const auto missing = (keys - mask.dim(last)).constant();
  if (!missing || *missing <= 0) return mask;
  Vals sizes = {mask.body().ints({*missing})};
  if (last > 0) sizes.insert(sizes.begin(), sizes_of(mask, 0, last));
  const double closed = mask.dtype() == DType::Bool ? 0 : -kInfinity;
  return joined({mask, filled(closed, mask.dtype(), sizes)}, last);
}

/// Causal and sliding-window masking by position: `past` keys precede the first query.
struct Places {
  Val ahead;  // how many places the query is ahead of the key: [batch, 1, queries, keys] or less
  Val key;

  Places(const Val& q, const Val& k, const Val& past) : key(positions(k, 2)) {
    Val query = unsqueezed(positions(q, 2), {1});
    if (past.present()) query = query + past;
    ahead = query - key;
  }
  Val within(const char* compare, std::int64_t bound) const {
    return key.body().op(compare, {ahead, key.body().ints({bound})});
  }
};

}  // namespace

OpDef attention() {
  return {
      .name = "attention",
      .summary =
          "softmax(scale * query key^T + mask) value for each head, with a cache of keys and "
          "values; several query heads may share a key and value head",
      .inputs = {"query", "key", "value", "mask?", "past_key?", "past_value?", "nonpad_kv_seqlen?"},
      .outputs = {"out", "present_key", "present_value", "qk_matmul_output"},
      .attrs = {flag_attr("is_causal", 0),
                optional_attr("kv_num_heads", 0),
                {"left_window_size", -1},
                optional_attr("q_num_heads", 0),
                {"qk_matmul_output_mode", 0},
                {"right_window_size", -1},
                optional_attr("scale", 0.0),
                {"softcap", 0.0},
                optional_attr("softmax_precision", "f32")},
      .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
        TESSERA_TRY(const Heads heads, Heads::of(attrs, in));
        const DType dtype = in[0].dtype();
        TESSERA_TRY(const DType precision, float_type(attrs, "softmax_precision", dtype));
        const std::int64_t mode = attrs.i("qk_matmul_output_mode");
        if (mode < 0 || mode > 3)
          return bad_operands(fmt::format("qk_matmul_output_mode is {}", mode),
                              "it has to be 0, 1, 2 or 3");
        const bool cached = given(in, 4), padded = given(in, 6);
        if (cached != given(in, 5) || (cached && padded))
          return bad_operands("past_key, past_value and nonpad_kv_seqlen do not fit together",
                              "the first two come together, and without the last");

        Val key = heads.k, value = heads.v;
        Dim keys = in[1].dim(in[1].rank() == 3 ? 1 : 2);
        if (cached) {
          TESSERA_TRY_DONE(check_rank(in[4], "past_key", 4));
          TESSERA_TRY_DONE(check_rank(in[5], "past_value", 4));
          key = joined({in[4], key}, 2);
          value = joined({in[5], value}, 2);
          keys = keys + in[4].dim(2);
        }

        Bias bias(dtype);
        if (given(in, 3)) {
          TESSERA_TRY(const Val mask, whole_mask(in[3], keys));
          if (mask.dtype() == DType::Bool)
            bias.allow(mask);
          else
            bias.add(converted(mask, dtype));
        }
        const bool causal = attrs.i("is_causal") != 0;
        const std::int64_t left = attrs.i("left_window_size"), right = attrs.i("right_window_size");
        if (causal || padded || left >= 0 || right >= 0) {
          Val past, filled_keys;
          if (cached) past = sizes_of(in[4], 2, 3);
          if (padded) {
            TESSERA_TRY_DONE(check_rank(in[6], "nonpad_kv_seqlen", 1));
            filled_keys = unsqueezed(converted(in[6], DType::I64), {1, 2, 3});
            past = filled_keys - sizes_of(heads.q, 2, 3);
          }
          const Places places(heads.q, key, past);
          if (causal) bias.allow(places.within("greater_or_equal", 0));
          if (left >= 0) bias.allow(places.within("less_or_equal", left));
          if (right >= 0) bias.allow(places.within("greater_or_equal", -right));
          if (padded) bias.allow(b.op("less", {places.key, filled_keys}));
        }

        TESSERA_TRY(const Val shared_key, heads.repeated(key));
        TESSERA_TRY(const Val shared_value, heads.repeated(value));
        const Val product = heads.scores(attrs, shared_key);
        Val capped = product;
        if (const double cap = attrs.f("softcap"); cap > 0)
          capped = b.op("tanh", {product / cap}) * cap;
        const Val biased = bias.sum().present() ? capped + bias.sum() : capped;
        Val weight = b.op("softmax", {converted(biased, precision)}, {{"axis", -1}});
        // A query with all keys masked out has no distribution; its result is zero.
        if (given(in, 3) || padded || left >= 0 || right >= 0) {
          const Val most = reduced("reduce_max", bias.sum(), {-1});
          const Val blind = b.op("equal", {most, b.number(-kInfinity, dtype)});
          weight = b.op("where", {blind, b.number(0, precision), weight});
        }
        weight = converted(weight, dtype);
        Val y = b.op("matmul", {weight, converted(shared_value, dtype)});
        if (in[0].rank() == 3) y = reshaped(swapped(y), {0, 0, -1});
        const Vals shown = {product, capped, biased, weight};
        return Vals{y, key, value, shown[static_cast<std::size_t>(mode)]};
      }};
}

OpDef rotary_embedding() {
  return {
      .name = "rotary_embedding",
      .summary = "turns pairs of elements of each head by an angle that depends on the position",
      .inputs = {"x", "cos_cache", "sin_cache", "position_ids?"},
      .attrs = {flag_attr("interleaved", 0),
                optional_attr("num_heads", 0),
                {"rotary_embedding_dim", 0}},
      .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
        const Val& x = in[0];
        const std::int64_t heads = attrs.has("num_heads") ? attrs.i("num_heads") : 0;
        const std::int64_t turned = attrs.i("rotary_embedding_dim");
        if (x.rank() != 4 && (x.rank() != 3 || heads < 1))
          return bad_operands(fmt::format("x has {} axes, num_heads is {}", x.rank(), heads),
                              "there have to be 4 axes, or 3 and a number of heads");
        if (turned < 0 || turned % 2 != 0)
          return bad_operands(fmt::format("rotary_embedding_dim is {}", turned),
                              "it has to be even");
        // [batch, time, heads, size]
        const Val whole = x.rank() == 4 ? swapped(x) : split_heads(x, heads);
        const Val part = turned == 0 ? whole : sliced(whole, 3, 0, turned);
        const auto angles = [&](const Val& cache) {
          const bool listed = given(in, 3);
          return unsqueezed(listed ? b.op("gather", {cache, in[3]}, {{"axis", 0}}) : cache, {2});
        };
        const Val cos = angles(in[1]), sin = angles(in[2]);

        const bool interleaved = attrs.i("interleaved") != 0;
        const int pair = interleaved ? 4 : 3;  // the axis of the two elements that are turned
        const Val pairs = reshaped(part, interleaved ? Ints{0, 0, 0, -1, 2} : Ints{0, 0, 0, 2, -1});
        const Val first = picked(pairs, pair, 0), second = picked(pairs, pair, 1);
        const Val turned_pairs = joined({unsqueezed(cos * first - sin * second, {pair}),
                                         unsqueezed(sin * first + cos * second, {pair})},
                                        pair);
        Val y = reshaped(turned_pairs, {0, 0, 0, -1});
        if (turned != 0)
          y = joined({y, sliced(whole, 3, turned, std::numeric_limits<std::int64_t>::max())}, 3);
        return Vals{x.rank() == 4 ? swapped(y) : reshaped(y, {0, 0, -1})};
      }};
}

}  // namespace tessera::define

namespace tessera {

Expected<Val> flex_attention(const FlexAttention& form, const Vals& in) {
  if (in.size() != 3 || !in[0].present() || !in[1].present() || !in[2].present())
    return bad_operands(fmt::format("there are {} inputs", in.size()),
                        "there have to be a query, a key and a value");
  for (std::size_t i = 0; i < 3; ++i)
    TESSERA_TRY_DONE(check_rank(in[i], std::array{"query", "key", "value"}[i], 4));
  Attrs attrs;
  if (form.scale) attrs.set("scale", *form.scale);
  TESSERA_TRY(const define::Heads heads, define::Heads::of(attrs, in));
  TESSERA_TRY(const Val key, heads.repeated(in[1]));
  TESSERA_TRY(const Val value, heads.repeated(in[2]));
  const DType dtype = in[0].dtype();
  const DType precision = form.precision.value_or(dtype == DType::F64 ? DType::F64 : DType::F32);

  const auto modified = [](const AttentionModifier& modify, const Val& x) -> Expected<Val> {
    if (!modify) return x;
    TESSERA_TRY(const Val y, modify(x));
    if (y.rank() != 4 || y.dtype() != x.dtype())
      return bad_operands(
          fmt::format("a modifier gives {} with {} axes", to_string(y.dtype()), y.rank()),
          fmt::format("it is given {} with 4", to_string(x.dtype())));
    return y;
  };
  Body& b = in[0].body();
  const Val product = heads.scores(attrs, key);
  TESSERA_TRY(const Val scores, modified(form.score_mod, converted(product, precision)));
  TESSERA_TRY(const Val weight, modified(form.prob_mod, b.op("softmax", {scores}, {{"axis", -1}})));
  return converted(b.op("matmul", {weight, converted(value, precision)}), dtype);
}

}  // namespace tessera
