#include "tessera/tile/lang_kernel.h"

#include <fmt/format.h>

#include "tessera/tile/type_check.h"

namespace tessera::tile {

Param number(std::string name, DType dtype) {
  return {std::move(name), Type::scalar(dtype)};
}

Param pointer(std::string name, DType dtype) {
  return {std::move(name), Type::pointer(dtype)};
}

Param view(std::string name, DType dtype, Extents shape) {
  return {std::move(name), Type::view(dtype, std::move(shape))};
}

Param view(std::string name, DType dtype, Extents shape, Extents strides) {
  return {std::move(name), Type::view(dtype, std::move(shape), std::move(strides))};
}

namespace detail {

Expected<Kernel> trace(const std::string& name, const std::vector<Param>& params,
                       const std::vector<Formal>& formals, const Call& call, const Place& where) {
  Trace trace(name);
  return trace.run([&](Builder& builder) {
    std::vector<ValueId> ids;
    {
      const Trace::Line line(where);
      if (params.size() != formals.size()) {
        trace.fail("tile-param", fmt::format("{} parameters are named", params.size()),
                   fmt::format("the body takes {}", formals.size()));
      }
      for (std::size_t i = 0; i < params.size(); ++i) {
        const auto& [kind, known] = formals[i];
        const std::optional<Type>& type = params[i].type ? params[i].type : known;
        const auto mistake = type ? type_mistake(*type) : std::optional<std::string>("a type");
        if (mistake) trace.fail("tile-param", "parameter " + params[i].name, *mistake);
        const bool taken = known ? *known == *type : (kind == Type::Kind::View) == type->is_view();
        if (!taken) {
          trace.fail(
              "tile-param", fmt::format("parameter {} is {}", params[i].name, to_string(*type)),
              known
                  ? "the body takes " + to_string(*known)
                  : fmt::format("the body takes a {}", kind == Type::Kind::View ? "View" : "Val"));
        }
        ids.push_back(trace.checked(builder.param(*type, params[i].name)));
      }
    }
    call(ids);
  });
}

}  // namespace detail

std::vector<Argument> fitted(const Kernel& kernel, std::vector<Argument> arguments) {
  for (std::size_t i = 0; i < arguments.size() && i < kernel.params().size(); ++i) {
    const Type& asked = kernel.type(kernel.params()[i]);
    Argument& given = arguments[i];
    if (!asked.is_number() || !given.type.is_number()) continue;
    if (is_float(given.type.dtype) && is_float(asked.dtype)) {
      given = Argument::number(asked.dtype, given.literal.number);
    } else if (!is_float(given.type.dtype) &&
               (is_float(asked.dtype) || fits(asked.dtype, given.literal.integer))) {
      given = Argument::integer(asked.dtype, given.literal.integer);
    }
  }
  return arguments;
}

}  // namespace tessera::tile
