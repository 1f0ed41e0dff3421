#include "tests/programs/random_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "tessera/ir/builder.h"
#include "tessera/ops/catalog.h"
#include "tests/programs/call_attributes.h"
#include "tests/programs/node_evaluation.h"
#include "tests/programs/operand_patterns.h"

namespace tessera::testing {
namespace {

/// A value of the program.
struct Item {
  Val value = {};
  Datum content;
  bool used = false;
};

/// A node to be: its operands as they are chosen one by one.
struct Call {
  OperandContents elements;
  Bindings bound = {};
  Vals values = {};
  std::vector<Datum> contents = {};
  std::vector<std::size_t> from = {};  // items of the program that it uses

  void add(const Item& item) {
    values.push_back(item.value);
    contents.push_back(item.content);
    elements.add_operand(item.content.is_tensor() ? item.content.tensor().shape : Ints{});
  }
  void insert_first(const std::vector<Item>& items) {
    for (std::size_t i = items.size(); i-- > 0;) {
      values.insert(values.begin(), items[i].value);
      contents.insert(contents.begin(), items[i].content);
    }
  }
};

class ProgramGenerator {
 public:
  ProgramGenerator(std::uint64_t seed, const RandomProgramOptions& options)
      : draws_(seed), options_(options), nodes_(1 + draws_.below(options.max_nodes)) {}

  RandomProgram run() {
    // Most calls are valid; a bound on the attempts keeps an unlucky seed from going on for ever.
    for (int attempt = 0; nodes_ > 0 && attempt < 200; ++attempt)
      if (draws_.one_in(24))
        add_control();
      else
        add_call(draws_.one_of(operand_patterns()));
    return {*graph_.finish(chosen_outputs()), inputs_};
  }

 private:
  /// Every value that nothing reads, and some others; at least one.
  Vals chosen_outputs() {
    Vals outputs;
    for (const Item& item : items_)
      if (!item.used || draws_.one_in(20)) outputs.push_back(item.value);
    if (outputs.empty()) outputs.push_back(add_leaf(any_tensor(DType::F32, {2}), false).value);
    return outputs;
  }

  // Operands.

  Call new_call() { return {.elements = {draws_, options_.special_values}}; }

  Tensor any_tensor(DType dtype, const Ints& shape) {
    return random_tensor(dtype, shape, options_.special_values, draws_);
  }

  Item add_leaf(Tensor content, bool constant) {
    Item item{.content = content};
    if (constant || (content.dtype != DType::String && draws_.one_in(3))) {
      item.value = graph_.constant(std::move(content));
    } else {
      item.value = graph_.input(fmt::format("x{}", inputs_.size()), content.dtype,
                                {content.shape.begin(), content.shape.end()});
      inputs_.push_back(item.content);
    }
    item.used = !draws_.one_in(30);  // an output may be an input or a constant
    items_.push_back(item);
    return item;
  }

  /// A value of the program that has the form; nothing if there is none.
  std::optional<std::size_t> existing(const OperandForm& form, Bindings& bound) {
    std::vector<std::size_t> fitting;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const Datum& content = items_[i].content;
      if (form.type == "sequence" || form.type == "optional") {
        if (content.kind() ==
            (form.type == "sequence" ? Datum::Kind::Sequence : Datum::Kind::Optional))
          fitting.push_back(i);
        continue;
      }
      if (!content.is_tensor() || !form.dims) continue;
      if (!form.content.empty() && (form.content != "finite" || !is_finite(content.tensor())))
        continue;
      const Tensor& tensor = content.tensor();
      const auto type = bound.types.find(form.type);
      if (type != bound.types.end() ? tensor.dtype != type->second
                                    : std::ranges::count(class_of(form.type), tensor.dtype) == 0)
        continue;
      Bindings trial = bound;
      if (matches(*form.dims, tensor.shape, trial)) fitting.push_back(i);
    }
    if (fitting.empty()) return std::nullopt;
    const std::size_t chosen = draws_.one_of(fitting);
    if (items_[chosen].content.is_tensor()) {
      const Tensor& tensor = items_[chosen].content.tensor();
      matches(*form.dims, tensor.shape, bound);
      bound.types[form.type] = tensor.dtype;
    }
    return chosen;
  }

  bool add_existing(const OperandForm& form, Call& call) {
    const auto found = existing(form, call.bound);
    if (!found) return false;
    call.from.push_back(*found);
    call.add(items_[*found]);
    return true;
  }

  bool add_operand(const OperandForm& form, Call& call) {
    if (form.optional &&
        (draws_.one_in(2) || (form.dims && form.dims->size() == 1 && (*form.dims)[0] == "0"))) {
      call.add({});
      return true;
    }
    if (!form.constant && !draws_.one_in(4) && add_existing(form, call)) return true;
    if (form.type == "sequence" || form.type == "optional") {
      const std::string maker = form.type == "sequence" ? "sequence_construct" : "optional";
      add_call(*std::ranges::find(operand_patterns(), maker, &OperandPattern::op));
      return add_existing(form, call);
    }
    const auto [type, is_new] = call.bound.types.try_emplace(form.type, DType::F32);
    if (is_new) type->second = draws_.one_of(class_of(form.type));
    const auto content = call.elements.draw(form, type->second, call.bound);
    if (!content || content->count() > kMostElements) return false;
    call.add(add_leaf(*content, form.constant && !draws_.one_in(6)));
    return true;
  }

  // Calls.

  void add_call(const OperandPattern& pattern) {
    const OpDef* op = find_op(pattern.op);
    if (op == nullptr) throw std::logic_error("there is no operator " + pattern.op);
    Call call = new_call();
    for (const std::string& operand : split(pattern.operands, ' '))
      if (!add_operand(parse_operand(operand), call)) return;
    while (!call.values.empty() && !call.values.back().present()) {
      call.values.pop_back();
      call.contents.pop_back();
    }
    const auto given = draw_attributes(*op, pattern.attributes, call.elements, call.bound, draws_);
    if (!given) return;
    const auto attrs = completed(*op, *given);
    if (!attrs) return;
    std::vector<ValueInfo> known;
    for (const Val& value : call.values)
      known.push_back(value.present() ? graph_.known(value) : ValueInfo{.present = false});
    const auto inferred = infer(*op, *attrs, known);
    if (!inferred || inferred->empty()) return;
    // Trailing results may be left out, unless their number follows from the call.
    const auto most = static_cast<int>(inferred->size());
    const bool is_variadic = op->outputs.back().ends_with('+') || op->outputs.back().ends_with('*');
    const int outputs = is_variadic ? most : 1 + draws_.below(most);
    const auto results = evaluate<double>(
        {.node = {.op = op, .attrs = *attrs, .outputs = std::vector<Type>(outputs)},
         .operands = call.contents});
    if (!results) return;
    for (const Datum& result : *results)
      if (result.is_tensor() && result.tensor().count() > kMostElements) return;
    add_items(graph_.call(*op, call.values, *given, outputs), *results, call);
  }

  void add_items(const Vals& values, const std::vector<Datum>& results, const Call& call) {
    for (const std::size_t i : call.from) items_[i].used = true;
    for (std::size_t i = 0; i < values.size(); ++i)
      items_.push_back({.value = values[i], .content = results.at(i)});
    --nodes_;
  }

  // Control flow: bodies of a few elementwise operators over tensors of one type.

  Val random_body(GraphBuilder& body, Vals values) {
    for (int i = 1 + draws_.below(3); i > 0; --i) {
      const Val x = draws_.one_of(values), y = draws_.one_of(values);
      const bool is_unary = draws_.one_in(3);
      const std::string op = is_unary
                                 ? draws_.one_of<std::string>({"tanh", "neg", "relu", "sigmoid"})
                                 : draws_.one_of<std::string>({"add", "mul", "sub", "max", "min"});
      values.push_back(body.op(op, is_unary ? Vals{x} : Vals{x, y}));
    }
    return values.back();
  }
  Item scalar(DType dtype, std::int64_t value) {
    return add_leaf(integer_tensor(dtype, {}, {value}), false);
  }
  static std::shared_ptr<const Graph> shared(GraphBuilder& body, const Vals& outputs) {
    return std::make_shared<const Graph>(*body.finish(outputs));
  }

  void add_control() {
    Call call = new_call();
    const std::string shape = draws_.one_in(2) ? "[n,a..]" : "[n,m]";
    for (int i = 0; i < 2; ++i)
      if (!add_operand(parse_operand("F" + shape), call)) return;
    const Tensor& first = call.contents[0].tensor();
    const Type type = Type::tensor(first.dtype, {first.shape.begin(), first.shape.end()});
    const int which = draws_.below(3);
    which == 0   ? add_branch(type, std::move(call))
    : which == 1 ? add_loop(type, std::move(call))
                 : add_scan(type, std::move(call));
  }

  void add_branch(const Type& type, Call call) {
    call.insert_first({scalar(DType::Bool, draws_.below(2))});
    GraphBuilder::Subgraphs branches;
    for (int i = 0; i < 2; ++i) {
      GraphBuilder body(fmt::format("b{}_{}_", nodes_, i));
      const Vals captures = {body.input("", {.type = type}), body.input("", {.type = type})};
      branches.push_back(shared(body, {random_body(body, captures)}));
    }
    add_control_node({.op = find_op("if_else"), .outputs = {type}, .subgraphs = branches}, call);
  }

  /// A loop with a state and a capture; stops after some iterations, or by a condition.
  void add_loop(const Type& type, Call call) {
    const Item trips = scalar(DType::I64, draws_.below(5)),
               condition = scalar(DType::Bool, draws_.one_in(6) ? 0 : 1);
    call.insert_first({trips, draws_.one_in(3) ? Item{} : condition});
    GraphBuilder body(fmt::format("l{}_", nodes_));
    const Val step = body.input("", DType::I64, {});
    const Val again = body.input("", DType::Bool, {});
    const Val state = body.input("", {.type = type}), capture = body.input("", {.type = type});
    const Val next = draws_.one_in(2) ? body.op("identity", {again})
                                      : body.op("less", {step, body.number(2, DType::I64)});
    const Val state_next = random_body(body, {state, capture});
    const Val stacked = random_body(body, {state, state_next});
    add_control_node({.op = find_op("loop"),
                      .attrs = {{"states", std::int64_t{1}}},
                      .outputs = {type, Type{.dtype = type.dtype}},
                      .subgraphs = {shared(body, {next, state_next, stacked})}},
                     call);
  }

  /// A scan of the first operand along an axis, with a state like its slices.
  void add_scan(const Type& type, Call call) {
    const auto rank = static_cast<std::int64_t>(type.shape->size());
    const std::int64_t axis = draws_.one_in(2) ? 0 : draws_.between(-rank, rank - 1);
    const std::int64_t direction = draws_.below(2);
    Shape slice = *type.shape;
    const Dim count = slice[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)];
    slice.erase(slice.begin() + (axis < 0 ? axis + rank : axis));
    Ints sizes;
    for (const Dim& dim : slice) sizes.push_back(dim.constant().value());
    call.values.resize(1);
    call.contents.resize(1);
    call.insert_first({add_leaf(any_tensor(type.dtype, sizes), false)});
    const Type of_slice = Type::tensor(type.dtype, slice);
    GraphBuilder body(fmt::format("s{}_", nodes_));
    const Val before = body.input("", {.type = of_slice}),
              element = body.input("", {.type = of_slice});
    const Val after = random_body(body, {before, element});
    const Val result = random_body(body, {after, element});
    const std::int64_t out_axis = draws_.one_in(2) ? 0 : -1;
    Shape stacked = slice;
    stacked.insert(out_axis == 0 ? stacked.begin() : stacked.end(), count);
    add_control_node({.op = find_op("scan"),
                      .attrs = {{"states", std::int64_t{1}},
                                {"elements", std::int64_t{1}},
                                {"input_axes", Ints{axis}},
                                {"input_directions", Ints{direction}},
                                {"output_axes", Ints{out_axis}},
                                {"output_directions", Ints{draws_.below(2)}}},
                      .outputs = {of_slice, Type::tensor(type.dtype, stacked)},
                      .subgraphs = {shared(body, {after, result})}},
                     call);
  }

  void add_control_node(const Graph::NewNode& node, const Call& call) {
    const auto results = evaluate<double>({.node = node, .operands = call.contents});
    if (!results) return;
    add_items(graph_.call_control(*node.op, call.values, node.attrs, node.subgraphs, node.outputs),
              *results, call);
  }

  static constexpr std::int64_t kMostElements = 20'000;

  Draws draws_;
  RandomProgramOptions options_;
  GraphBuilder graph_;
  std::vector<Datum> inputs_;
  std::vector<Item> items_;
  int nodes_;
};

}  // namespace

RandomProgram random_program(std::uint64_t seed, const RandomProgramOptions& options) {
  return ProgramGenerator(seed, options).run();
}

}  // namespace tessera::testing
