#include "tessera/rules/taso_graph.h"

#include <algorithm>
#include <array>
#include <memory>

#include "tessera/ir/builder.h"

namespace tessera::rules::taso {
namespace {

/// The pieces that a concatenation put together along an axis: of which sizes they are, and what
/// each was put together of itself.
struct Cut {
  struct Piece {
    Val value;
    int axis = 0;  // of `value`: as large as the piece
    std::shared_ptr<const Cut> inner = {};
  };
  std::vector<Piece> pieces;
};
using Cuts = std::map<int, std::shared_ptr<const Cut>>;  // by axis

struct Made {
  Val value;
  Cuts cuts = {};
};

class Side;
using Results = Expected<std::vector<Made>>;

struct Row {
  Operator op;
  Results (Side::*build)(const Call&, const std::vector<Made>&);
};
const Row* find_row(std::string_view op);

/// One side of a rule, while it is built.
class Side {
 public:
  Side(const std::vector<Wildcard>& inputs, const Likes& likes) : likes_(likes) {
    for (const Wildcard& input : inputs)
      values_[input.name] = one(graph_.input(input.name, DType::F32, input.shape));
  }

  Expected<Graph> built(const std::vector<Call>& calls, const std::vector<Reference>& outputs) {
    for (const Call& call : calls) {
      std::vector<Made> args;
      for (const Reference& arg : call.args) {
        TESSERA_TRY(Made made, found(arg));
        args.push_back(std::move(made));
      }
      if (values_.contains(call.name))
        return malformed(call.line, fmt::format("{} is there already", call.name));
      op_of_[call.name] = call.op;
      auto results = (this->*find_row(call.op)->build)(call, args);
      if (graph_.failed()) return at_line(*graph_.error(), call.line);
      if (!results) return std::move(results).error();
      values_[call.name] = *std::move(results);
    }
    Vals results;
    for (const Reference& output : outputs) {
      TESSERA_TRY(const Made made, found(output));
      results.push_back(made.value);
    }
    return graph_.finish(results);
  }

  Results matmul(const Call&, const std::vector<Made>& in) {
    return one(graph_.op("matmul", {in[0].value, in[1].value}),
               picked({{0, {&in[0], 0}}, {1, {&in[1], 1}}}));
  }
  Results add(const Call&, const std::vector<Made>& in) {
    return one(in[0].value + in[1].value, either(in));
  }
  Results mul(const Call&, const std::vector<Made>& in) {
    return one(in[0].value * in[1].value, either(in));
  }
  Results scalar_mul(const Call& call, const std::vector<Made>& in) {
    if (in[1].value.rank() != 0)
      return malformed(call.line, fmt::format("the factor has {} axes", in[1].value.rank()),
                       "a scalar has none");
    return one(in[0].value * in[1].value, in[0].cuts);
  }
  Results relu(const Call&, const std::vector<Made>& in) {
    return one(graph_.op("relu", {in[0].value}), in[0].cuts);
  }
  Results transpose(const Call& call, const std::vector<Made>& in) {
    TESSERA_TRY(const Ints perm, numbers(call, "perm", in[0].value.rank()));
    std::map<int, std::pair<const Made*, int>> from;
    for (std::size_t i = 0; i < perm.size(); ++i)
      from[static_cast<int>(i)] = {&in[0], static_cast<int>(perm[i])};
    return one(graph_.op("transpose", {in[0].value}, {{"perm", perm}}), picked(from));
  }
  Results concat(const Call& call, const std::vector<Made>& in) {
    TESSERA_TRY(const int axis, axis_of(call, in));
    Vals values;
    auto cut = std::make_shared<Cut>();
    for (const Made& made : in) {
      values.push_back(made.value);
      const auto inner = made.cuts.find(axis);
      cut->pieces.push_back({made.value, axis, inner == made.cuts.end() ? nullptr : inner->second});
    }
    Cuts cuts = either(in);
    cuts[axis] = std::move(cut);
    return one(graph_.op("concat", values, {{"axis", axis}}), std::move(cuts));
  }
  Results split(const Call& call, const std::vector<Made>& in) {
    TESSERA_TRY(const int axis, axis_of(call, in));
    const auto found = in[0].cuts.find(axis);
    const std::size_t parts = found == in[0].cuts.end() ? 0 : found->second->pieces.size();
    TESSERA_TRY(const Ints wanted, numbers(call, "n", 1));
    if (parts == 0 || wanted[0] != static_cast<std::int64_t>(parts))
      return malformed(call.line, fmt::format("{} parts are split along axis {}", wanted[0], axis),
                       fmt::format("{} were put together", parts));
    Vals sizes;
    for (const Cut::Piece& piece : found->second->pieces)
      sizes.push_back(
          graph_.op("shape", {piece.value}, {{"start", piece.axis}, {"end", piece.axis + 1}}));
    const Vals values =
        graph_.call("split", {in[0].value, graph_.op("concat", sizes, {{"axis", 0}})},
                    {{"axis", axis}}, static_cast<int>(parts));
    std::vector<Made> results;
    for (std::size_t i = 0; i < parts; ++i) {
      Made made{values[i], in[0].cuts};
      made.cuts[axis] = found->second->pieces[i].inner;
      if (made.cuts[axis] == nullptr) made.cuts.erase(axis);
      results.push_back(std::move(made));
    }
    return results;
  }
  Results conv(const Call& call, const std::vector<Made>& in) {
    TESSERA_TRY(Attrs attrs, sliding(call));
    attrs.set("group", group_of(call));
    Val value = graph_.op("conv", {in[0].value, in[1].value}, attrs);
    const auto act = call.words.find("act");
    if (act != call.words.end() && act->second == "relu")
      value = graph_.op("relu", {value});
    else if (act != call.words.end() && act->second != "none")
      return malformed(call.line, "act is " + act->second, "it is none or relu");
    return one(value, picked({{0, {&in[0], 0}}, {1, {&in[1], 0}}}));
  }
  /// The sum, as TASO has it.
  Results average_pool(const Call& call, const std::vector<Made>& in) {
    TESSERA_TRY(Attrs attrs, sliding(call));
    attrs.set("kernel_shape", call.window);
    attrs.set("count_include_pad", 1);
    const auto taps = static_cast<double>(call.window[0] * call.window[1]);
    return one(graph_.op("average_pool", {in[0].value}, attrs) * taps, of_channels(in[0]));
  }
  Results max_pool(const Call& call, const std::vector<Made>& in) {
    TESSERA_TRY(Attrs attrs, sliding(call));
    attrs.set("kernel_shape", call.window);
    return one(graph_.op("max_pool", {in[0].value}, attrs), of_channels(in[0]));
  }
  Results enlarge(const Call& call, const std::vector<Made>& in) {
    const Val window = graph_.op("shape", {in[0].value}, {{"start", 2}, {"end", 4}});
    const Val half = graph_.op(
        "div", {graph_.op("sub", {graph_.ints(call.window), window}), graph_.ints({2, 2})});
    const Val none = graph_.ints({0, 0});
    const Val pads = graph_.op("concat", {none, half, none, half}, {{"axis", 0}});
    return one(graph_.op("pad", {in[0].value, pads}), of_channels(in[0]));
  }
  Results identity_matrix(const Call& call, const std::vector<Made>&) {
    return one(graph_.op("eye_like", {like(call)}));
  }
  Results identity_conv(const Call& call, const std::vector<Made>&) {
    const Val dot =
        graph_.op("unsqueeze", {graph_.op("eye_like", {like(call)}), graph_.ints({2, 3})});
    const std::int64_t up = call.window[0] / 2, left = call.window[1] / 2;
    return one(graph_.op("pad", {dot, graph_.ints({0, 0, up, left, 0, 0, call.window[0] - 1 - up,
                                                   call.window[1] - 1 - left})}));
  }
  Results pool_conv(const Call& call, const std::vector<Made>&) {
    const Val rest = graph_.ints({1, call.window[0], call.window[1]});
    return one(ones(graph_.op("concat", {graph_.op("shape", {like(call)}), rest}, {{"axis", 0}})));
  }
  Results all_ones(const Call& call, const std::vector<Made>&) {
    return one(ones(graph_.op("shape", {like(call)})));
  }

 private:
  static Diagnostic at_line(Diagnostic diagnostic, int line) {
    diagnostic.where.item = malformed(line, "").where.item;
    return diagnostic;
  }
  static std::vector<Made> one(Val value, Cuts cuts = {}) { return {{value, std::move(cuts)}}; }

  Expected<Made> found(const Reference& reference) const {
    const auto it = values_.find(reference.name);
    if (it == values_.end())
      return malformed(reference.line, fmt::format("{} is not there", reference.name),
                       "a value is an input or made before");
    if (reference.result >= it->second.size())
      return malformed(reference.line,
                       fmt::format("{} has no result {}", reference.name, reference.result));
    return it->second[reference.result];
  }

  /// The cuts of some axes of operands, as cuts of axes of a result.
  static Cuts picked(const std::map<int, std::pair<const Made*, int>>& from) {
    Cuts cuts;
    for (const auto& [axis, source] : from)
      if (const auto cut = source.first->cuts.find(source.second); cut != source.first->cuts.end())
        cuts[axis] = cut->second;
    return cuts;
  }
  static Cuts of_channels(const Made& image) {
    return picked({{0, {&image, 0}}, {1, {&image, 1}}});
  }
  static Cuts either(const std::vector<Made>& in) {
    Cuts cuts;
    for (const Made& made : in) cuts.insert(made.cuts.begin(), made.cuts.end());
    return cuts;
  }

  static Expected<Ints> numbers(const Call& call, const std::string& option, int count) {
    const auto it = call.numbers.find(option);
    if (it == call.numbers.end() || it->second.size() != static_cast<std::size_t>(count))
      return malformed(call.line, fmt::format("{} needs {}", call.op, option),
                       count == 1 ? "one number" : fmt::format("{} numbers", count));
    return it->second;
  }
  static Expected<int> axis_of(const Call& call, const std::vector<Made>& in) {
    TESSERA_TRY(const Ints axis, numbers(call, "axis", 1));
    if (axis[0] >= in[0].value.rank())
      return malformed(call.line, fmt::format("the axis is {}", axis[0]),
                       fmt::format("{} has {} axes", call.args[0].name, in[0].value.rank()));
    return static_cast<int>(axis[0]);
  }

  /// Stride and padding.
  static Expected<Attrs> sliding(const Call& call) {
    Attrs attrs;
    if (call.numbers.contains("s")) {
      TESSERA_TRY(const Ints strides, numbers(call, "s", 2));
      attrs.set("strides", strides);
    }
    const auto pad = call.words.find("pad");
    const std::string mode = pad == call.words.end() ? "SAME" : pad->second;
    if (mode != "SAME" && mode != "VALID")
      return malformed(call.line, "pad is " + mode, "it is SAME or VALID");
    attrs.set("auto_pad", mode == "SAME" ? std::string("SAME_UPPER") : mode);
    return attrs;
  }

  /// As many as the channels of the image are times those of the weights. The constants say so
  /// themselves: one makes all channels of all, the other each of its own.
  Attr group_of(const Call& call) const {
    const std::string& weights = call.args[1].name;
    const auto op = op_of_.find(weights);
    if (op != op_of_.end() && op->second == "constant_iconv") return 1;
    if (op != op_of_.end() && op->second == "constant_pool")
      return Symbol{likes_.at(weights) + ".0"};
    return Symbol{call.name + ".group"};
  }

  Val like(const Call& call) const { return values_.at(likes_.at(call.name))[0].value; }
  Val ones(const Val& shape) {
    const std::array<float, 1> filling = {1};
    return graph_.op("constant_of_shape", {shape},
                     {{"value", Tensor::of<float>(DType::F32, {1}, filling)}});
  }

  GraphBuilder graph_;
  const Likes& likes_;
  std::map<std::string, std::vector<Made>> values_;
  std::map<std::string, std::string> op_of_;
};

const Row* find_row(std::string_view op) {
  using Like = Operator::Like;
  static const std::vector<Row> kRows = {
      {{"matmul", 2, 2}, &Side::matmul},
      {{"ewadd", 2, {}, Like::All}, &Side::add},
      {{"ewmul", 2, {}, Like::All}, &Side::mul},
      {{"scalar_mul", 2, {}, Like::Scaled}, &Side::scalar_mul},
      {{"relu", 1, {}, Like::All}, &Side::relu},
      {{"transpose", 1, {}, Like::None, false, {"perm", "shuffle"}}, &Side::transpose},
      {{"concat", Operator::kAny, {}, Like::All, false, {"axis", "ndim"}}, &Side::concat},
      {{"split", 1, {}, Like::All, false, {"axis", "n"}}, &Side::split},
      {{"conv", 2, 4, Like::First, true, {"s", "pad", "act"}}, &Side::conv},
      {{"pool2d_avg", 1, 4, Like::First, true, {"s", "pad"}}, &Side::average_pool},
      {{"pool2d_max", 1, 4, Like::First, true, {"s", "pad"}}, &Side::max_pool},
      {{"enlarge", 1, 4, Like::None, true}, &Side::enlarge},
      {{"constant_iconv", 0, 4, Like::None, true}, &Side::identity_conv},
      {{"constant_pool", 0, 4, Like::None, true}, &Side::pool_conv},
      {{"constant_imm", 0, 2}, &Side::identity_matrix},
      {{"constant_one", 0, {}}, &Side::all_ones},
  };
  const auto row =
      std::ranges::find_if(kRows, [&](const Row& candidate) { return candidate.op.name == op; });
  return row == kRows.end() ? nullptr : &*row;
}

}  // namespace

const Operator* find_operator(std::string_view name) {
  const Row* row = find_row(name);
  return row == nullptr ? nullptr : &row->op;
}

Expected<Graph> built(const std::vector<Wildcard>& inputs, const Likes& likes,
                      const std::vector<Call>& calls, const std::vector<Reference>& outputs) {
  return Side(inputs, likes).built(calls, outputs);
}

}  // namespace tessera::rules::taso
