#include "tessera/triton/lower.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/tile/verify.h"
#include "tessera/triton/lowering.h"

namespace tessera::triton {
namespace {

constexpr std::int64_t kMostOperations = 200'000;
constexpr std::size_t kMostCalls = 64;

/// Whether an operation of the region, or one inside of it, multiplies in tf32.
bool has_tf32(const Region& region) {
  const auto is_tf32 = [](const Operation& op) {
    const Attribute* precision = op.attribute("inputPrecision");
    return (precision != nullptr && precision->text == "tf32") ||
           std::any_of(op.regions.begin(), op.regions.end(), has_tf32);
  };
  return std::any_of(region.blocks.begin(), region.blocks.end(), [&](const Block& block) {
    return std::any_of(block.ops.begin(), block.ops.end(), is_tf32);
  });
}

int axis_named(const Operation& op) {
  if (op.has_word("y")) return 1;
  return op.has_word("z") ? 2 : 0;
}

}  // namespace

DType signed_bits(int width) {
  switch (width) {
    case 8: return DType::I8;
    case 16: return DType::I16;
    case 32: return DType::I32;
    default: return DType::I64;
  }
}

DType unsigned_bits(int width) {
  switch (width) {
    case 8: return DType::U8;
    case 16: return DType::U16;
    case 32: return DType::U32;
    default: return DType::U64;
  }
}

DType unsigned_of(DType dtype) {
  return is_integer(dtype) ? unsigned_bits(tessera::bit_width(dtype)) : dtype;
}

// Diagnostics

void Lowering::unsupported(const Operation& op, const std::string& what, const std::string& help) {
  builder_.fail({.id = "ttir-unsupported",
                 .where = {.file = op.source.file, .item = fmt::format("line {}", op.source.line)},
                 .message = fmt::format("{}: {}", op.name, what),
                 .help = help});
}

void Lowering::malformed(const Operation& op, const std::string& what) {
  builder_.fail({.id = "ttir-structure",
                 .where = {.file = op.source.file, .item = fmt::format("line {}", op.source.line)},
                 .message = fmt::format("{}: {}", op.name, what)});
}

// Values

Lowered Lowering::value(const std::string& name) {
  const auto found = scope_.find(name);
  if (found != scope_.end()) {
    Lowered known = found->second;
    if (!elementwise_.empty() && !builder_.type(known.id).is_pointer() &&
        builder_.type(known.id).shape != elementwise_) {
      known.id = builder_.broadcast(known.id, elementwise_);
    }
    return known;
  }
  builder_.fail({.id = "ttir-structure",
                 .where = {.file = source_.file, .item = fmt::format("line {}", source_.line)},
                 .message = fmt::format("%{} is not defined", name)});
  return {Type{}, builder_.constant(tile::Type::scalar(DType::I32), 0.0)};
}

Lowered Lowering::operand(const Operation& op, std::size_t index) {
  if (index < op.operands.size()) return value(op.operands[index]);
  malformed(op, fmt::format("it has {} operands, {} are needed", op.operands.size(), index + 1));
  return {Type{}, builder_.constant(tile::Type::scalar(DType::I32), 0.0)};
}

void Lowering::result(const Operation& op, Type type, tile::ValueId id) {
  if (op.results.size() != 1) return malformed(op, "it has one result");
  define(op.results[0], {std::move(type), id});
}

Type Lowering::result_type(const Operation& op, std::size_t index) {
  const std::size_t at = op.arrow.value_or(0) + index;
  if (at < op.types.size()) return op.types[at];
  malformed(op, "the type of the result is missing");
  return {};
}

Type Lowering::pointee(const Type& type) const {
  Type result = type;
  result.pointers = std::max(0, type.pointers - 1);
  return result;
}

std::int64_t Lowering::integer_attribute(const Operation& op, const std::string& name,
                                         std::int64_t otherwise) {
  const Attribute* attribute = op.attribute(name);
  if (attribute == nullptr || attribute->integers.empty()) return otherwise;
  return attribute->integers[0];
}

tile::Type Lowering::tile_type(const Type& type) const {
  if (type.pointers == 0)
    return {tile::Type::Kind::Number, carrier_of(type.element), type.shape, {}};
  DType dtype = type.pointers > 1 ? DType::I64 : carrier_of(type.element);
  if (dtype == DType::Bool) dtype = DType::I8;
  return tile::Type::pointer(dtype, type.shape);
}

tile::ValueId Lowering::number(tile::ValueId like, double value) {
  return builder_.constant(builder_.type(like), value);
}

tile::ValueId Lowering::integer(tile::ValueId like, std::int64_t value) {
  return builder_.constant(builder_.type(like), tile::Literal{.integer = value});
}

tile::ValueId Lowering::reinterpret(tile::ValueId x, DType dtype) {
  return builder_.type(x).dtype == dtype ? x : builder_.bitcast(x, dtype);
}

tile::ValueId Lowering::shaped(tile::ValueId x, const std::vector<std::int64_t>& shape) {
  return builder_.type(x).shape == shape ? x : builder_.reshape(x, shape);
}

// Functions and blocks

Expected<tile::Kernel> Lowering::lower(const Function& function) {
  for (const Argument& argument : function.arguments) {
    if (argument.type.is_tensor) {
      return Diagnostic{
          .id = "ttir-unsupported",
          .where = {.file = function.source.file},
          .message = fmt::format("parameter {} is {}", argument.name, to_string(argument.type)),
          .note = "parameters are numbers and pointers"};
    }
    define(argument.name, {argument.type, builder_.param(tile_type(argument.type), argument.name)});
  }
  calls_.push_back(function.name);
  lower_blocks(function.body, 0, {});
  return builder_.finish();
}

Lowering::Values Lowering::lower_blocks(const Region& region, std::size_t index,
                                        std::span<const Lowered> arguments) {
  if (index >= region.blocks.size()) return {};
  const Block& block = region.blocks[index];
  if (block.arguments.size() != arguments.size()) {
    builder_.fail({.id = "ttir-structure",
                   .message = fmt::format("block {} has {} arguments, {} are given", block.label,
                                          block.arguments.size(), arguments.size())});
    return {};
  }
  for (std::size_t i = 0; i < block.arguments.size(); ++i) {
    define(block.arguments[i].name, {block.arguments[i].type, arguments[i].id});
  }
  if (++lowered_ > kMostOperations) {
    builder_.fail({.id = "ttir-unsupported", .message = "the kernel is too large"});
    return {};
  }
  open_blocks_.push_back(&block);
  Values results = lower_block(region, block);
  open_blocks_.pop_back();
  return results;
}

Lowering::Values Lowering::follow(const Region& region, const Successor& successor) {
  Values passed;
  for (const std::string& name : successor.arguments) passed.push_back(value(name));
  const auto target =
      std::find_if(region.blocks.begin(), region.blocks.end(),
                   [&](const Block& block) { return block.label == successor.label; });
  const bool is_loop =
      target != region.blocks.end() &&
      std::find(open_blocks_.begin(), open_blocks_.end(), &*target) != open_blocks_.end();
  if (target == region.blocks.end() || is_loop) {
    builder_.fail({.id = "ttir-unsupported",
                   .message = fmt::format("a branch to ^{} that is {}", successor.label,
                                          is_loop ? "a loop" : "not in the function")});
    return {};
  }
  return lower_blocks(region, static_cast<std::size_t>(target - region.blocks.begin()), passed);
}

Lowering::Values Lowering::lower_block(const Region& region, const Block& block) {
  for (const Operation& op : block.ops) {
    if (builder_.failed()) return {};
    builder_.at(op.source);
    source_ = op.source;
    if (op.name == "tt.return" || op.name == "scf.yield" || op.name == "scf.condition" ||
        op.name.ends_with(".return")) {
      Values values;
      for (const std::string& name : op.operands) values.push_back(value(name));
      return values;
    }
    if (op.name == "cf.br" && op.successors.size() == 1) return follow(region, op.successors[0]);
    if (op.name == "cf.cond_br" && op.successors.size() == 2) {
      Values sides[2];
      const auto ids = [&](int side) {
        const Scope outer = scope_;
        sides[side] = follow(region, op.successors[static_cast<std::size_t>(side)]);
        scope_ = outer;
        std::vector<tile::ValueId> result;
        for (const Lowered& v : sides[side]) result.push_back(v.id);
        return result;
      };
      const auto joined = builder_.if_else(
          operand(op, 0).id, [&] { return ids(0); }, [&] { return ids(1); });
      Values results;
      for (std::size_t i = 0; i < joined.size() && i < sides[0].size(); ++i) {
        results.push_back({sides[0][i].type, joined[i]});
      }
      return results;
    }
    if (op.name == "llvm.unreachable") return {};
    lower_op(op);
  }
  return {};
}

Lowering::Values Lowering::lower_region(const Region& region, std::span<const Lowered> arguments) {
  if (region.blocks.size() != 1) {
    builder_.fail({.id = "ttir-unsupported", .message = "a region of several blocks"});
    return {};
  }
  return lower_blocks(region, 0, arguments);
}

void Lowering::lower_op(const Operation& op) {
  if (++lowered_ > kMostOperations) return unsupported(op, "the kernel is too large");
  builder_.at(op.source);
  if (lower_structure(op) || lower_arith(op) || lower_tensor(op) || lower_memory(op)) {
    return;
  }
  if (op.name == "tt.elementwise_inline_asm")
    return unsupported(op, "inline assembly is for one GPU", "write it with functions of tl");
  unsupported(op, "there is no such operation in tile IR");
}

bool Lowering::lower_structure(const Operation& op) {
  if (!elementwise_.empty() && (op.name == "scf.for" || op.name == "scf.while"))
    return unsupported(op, "a loop in a function of elements"), true;
  if (op.name == "scf.for") return lower_for(op), true;
  if (op.name == "scf.if")
    return elementwise_.empty() ? lower_if(op) : lower_elementwise_if(op), true;
  if (op.name == "scf.while") return lower_while(op), true;
  if (op.name == "tt.call") return lower_call(op), true;
  if (op.name == "tt.get_program_id" || op.name == "tt.get_num_programs") {
    const int axis = axis_named(op);
    const tile::ValueId id =
        op.name == "tt.get_program_id" ? builder_.pid(axis) : builder_.npid(axis);
    result(op, {.element = Element::I32}, as(id, DType::I32));
    return true;
  }
  if (op.name == "tt.assert") {
    // One bool, which machine code checks outside of debug mode too.
    const Lowered holds = operand(op, 0);
    tile::ValueId all = holds.id;
    if (holds.type.is_tensor && !builder_.failed()) {
      const std::int64_t count = builder_.type(all).count();
      all = builder_.reduce(tile::Function::And, shaped(all, {count}), 0);
    }
    builder_.assertion(all, op.strings.empty() ? "" : op.strings[0]);
    return true;
  }
  if (op.name == "tt.print") {
    std::vector<tile::ValueId> values;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const Lowered x = operand(op, i);
      if (x.type.is_pointer()) return unsupported(op, "pointers"), true;
      values.push_back(is_float8(x.type.element) ? decoded(x.type.element, x.id) : x.id);
    }
    builder_.print(op.strings.empty() ? "" : op.strings[0], std::move(values));
    return true;
  }
  if (op.name == "gpu.barrier" || op.name == "ttg.barrier" || op.name == "tt.debug_barrier") {
    builder_.barrier();
    return true;
  }
  if (op.name == "llvm.intr.assume") {
    const Lowered condition = operand(op, 0);
    if (!condition.type.is_tensor) builder_.assume(condition.id);
    return true;
  }
  return false;
}

// Control flow

void Lowering::lower_for(const Operation& op) {
  if (op.operands.size() < 3 || op.bindings.size() != op.operands.size() - 2 ||
      op.regions.size() != 1) {
    return malformed(op, "bounds, initial values and a body do not fit");
  }
  const Lowered from = operand(op, 0), to = operand(op, 1), step = operand(op, 2);
  std::vector<tile::ValueId> start;
  std::vector<Type> types;
  for (std::size_t i = 3; i < op.operands.size(); ++i) {
    const Lowered x = operand(op, i);
    start.push_back(x.id);
    types.push_back(x.type);
  }
  // Tile IR counts in i32 or i64.
  const bool narrow = bit_width(from.type.element) < 32;
  const auto bound = [&](const Lowered& x) { return narrow ? as(x.id, DType::I32) : x.id; };
  const auto results = builder_.for_loop(
      bound(from), bound(to), bound(step), start,
      [&](tile::ValueId index, const std::vector<tile::ValueId>& carried) {
        const Scope outer = scope_;
        define(op.bindings[0],
               {from.type, narrow ? as(index, carrier_of(from.type.element)) : index});
        for (std::size_t i = 0; i < carried.size(); ++i)
          define(op.bindings[i + 1], {types[i], carried[i]});
        std::vector<tile::ValueId> next;
        for (const Lowered& x : lower_region(op.regions[0], {})) next.push_back(x.id);
        scope_ = outer;
        return next;
      });
  for (std::size_t i = 0; i < op.results.size() && i < results.size(); ++i) {
    define(op.results[i], {types[i], results[i]});
  }
}

void Lowering::lower_if(const Operation& op) {
  if (op.regions.empty() || op.regions.size() > 2) return malformed(op, "one or two regions");
  Values sides[2];
  const auto lower_side = [&](std::size_t side) {
    const Scope outer = scope_;
    sides[side] = lower_region(op.regions[side], {});
    scope_ = outer;
    std::vector<tile::ValueId> ids;
    for (const Lowered& x : sides[side]) ids.push_back(x.id);
    return ids;
  };
  const tile::Builder::Branch otherwise = op.regions.size() == 2
                                              ? tile::Builder::Branch([&] { return lower_side(1); })
                                              : tile::Builder::Branch();
  const auto results = builder_.if_else(
      operand(op, 0).id, [&] { return lower_side(0); }, otherwise);
  for (std::size_t i = 0; i < op.results.size() && i < results.size(); ++i) {
    define(op.results[i], {sides[0][i].type, results[i]});
  }
}

/// The first region computes a condition and what the second one is given. Tile IR has no such
/// values between the two, so the first region is lowered in front of the loop and again at the end
/// of its body.
void Lowering::lower_while(const Operation& op) {
  if (op.regions.size() != 2 || op.bindings.size() != op.operands.size() ||
      op.regions[1].blocks.size() != 1) {
    return malformed(op, "initial values and two regions do not fit");
  }
  Values start;
  for (std::size_t i = 0; i < op.operands.size(); ++i) start.push_back(operand(op, i));
  const auto evaluate = [&](const Values& arguments) {
    for (std::size_t i = 0; i < op.bindings.size() && i < arguments.size(); ++i) {
      define(op.bindings[i], arguments[i]);
    }
    return lower_region(op.regions[0], {});  // the condition, then what is handed on
  };
  const Scope outer = scope_;
  const Values first = evaluate(start);
  if (first.empty()) return malformed(op, "there is no condition");
  std::vector<tile::ValueId> ids;
  for (const Lowered& x : first) ids.push_back(x.id);
  const auto results = builder_.while_loop(
      ids,
      [](const std::vector<tile::ValueId>& carried) {
        return std::vector<tile::ValueId>{carried[0]};
      },
      [&](const std::vector<tile::ValueId>& carried) {
        Values handed;
        for (std::size_t i = 1; i < carried.size(); ++i)
          handed.push_back({first[i].type, carried[i]});
        std::vector<tile::ValueId> next;
        for (const Lowered& x : evaluate(lower_region(op.regions[1], handed))) next.push_back(x.id);
        return next;
      });
  scope_ = outer;
  for (std::size_t i = 0; i < op.results.size() && i + 1 < results.size(); ++i) {
    define(op.results[i], {first[i + 1].type, results[i + 1]});
  }
}

void Lowering::lower_call(const Operation& op) {
  const std::string callee = op.words.empty() ? "" : op.words[0].text;
  const auto found = std::find_if(module_.functions.begin(), module_.functions.end(),
                                  [&](const Function& f) { return f.name == callee; });
  if (found == module_.functions.end()) return malformed(op, "the callee is not in the module");
  if (calls_.size() > kMostCalls || std::find(calls_.begin(), calls_.end(), callee) != calls_.end())
    return unsupported(op, "recursion");
  Values arguments;
  for (std::size_t i = 0; i < op.operands.size(); ++i) arguments.push_back(operand(op, i));
  if (arguments.size() != found->arguments.size()) return malformed(op, "the number of arguments");
  Scope outer;
  std::swap(outer, scope_);
  calls_.push_back(callee);
  for (std::size_t i = 0; i < arguments.size(); ++i)
    define(found->arguments[i].name, {found->arguments[i].type, arguments[i].id});
  const Values results = lower_blocks(found->body, 0, {});
  calls_.pop_back();
  std::swap(outer, scope_);
  if (results.size() < op.results.size() && !builder_.failed())
    return malformed(op, "the callee returns fewer values");
  for (std::size_t i = 0; i < op.results.size() && i < results.size(); ++i) {
    define(op.results[i],
           {found->results.size() > i ? found->results[i] : results[i].type, results[i].id});
  }
}

// Entry points

namespace {

std::vector<Function>::const_iterator kernel_function(const Module& module) {
  return std::find_if(module.functions.begin(), module.functions.end(),
                      [](const Function& f) { return f.is_public; });
}

}  // namespace

Expected<tile::Kernel> lower(const Module& module) {
  const auto kernel = kernel_function(module);
  if (kernel == module.functions.end()) {
    return Diagnostic{.id = "ttir-structure",
                      .message = "the module has no public function",
                      .note = "the kernel is `tt.func public @name`"};
  }
  Lowering lowering(module, kernel->name);
  TESSERA_TRY(tile::Kernel result, lowering.lower(*kernel));
  TESSERA_TRY_DONE(tile::verify(result));
  return result;
}

bool allows_tf32(const Module& module) {
  return std::any_of(module.functions.begin(), module.functions.end(),
                     [](const Function& function) { return has_tf32(function.body); });
}

std::vector<std::int64_t> parameter_divisors(const Module& module) {
  std::vector<std::int64_t> divisors;
  const auto kernel = kernel_function(module);
  if (kernel == module.functions.end()) return divisors;
  for (const Argument& argument : kernel->arguments) {
    const auto found = argument.attributes.find("tt.divisibility");
    const std::int64_t stated =
        found != argument.attributes.end() && !found->second.integers.empty()
            ? found->second.integers.front()
            : 1;
    divisors.push_back(stated > 0 ? stated & -stated : 1);
  }
  return divisors;
}

Expected<tile::Kernel> kernel_of(std::string_view text, const std::string& file) {
  TESSERA_TRY(const Module module, parse_module(text, file));
  return lower(module);
}

}  // namespace tessera::triton
