#pragma once

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/support/expected.h"
#include "tessera/tile/lang_arguments.h"
#include "tessera/tile/lang_val.h"

namespace tessera::tile {

/// Typed parameters of a kernel body: a number, a pointer, a view.
template <class T>
struct Num : Val {
  explicit Num(const Val& value) : Val(value) {}
};
template <class T>
struct Ptr : Val {
  explicit Ptr(const Val& value) : Val(value) {}
};
/// Contiguous row-major view with dynamic extents.
template <class T, int Rank>
struct ViewOf : View {
  using View::View;
};

/// A parameter: its name, and its type where the body takes a plain Val or View.
struct Param {
  // NOLINTNEXTLINE(google-explicit-constructor): a list of names
  Param(std::string name, std::optional<Type> type = {})
      : name(std::move(name)), type(std::move(type)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): a list of names
  Param(const char* name) : Param(std::string(name)) {}
  std::string name;
  std::optional<Type> type;
};
Param number(std::string name, DType dtype = DType::I64);
Param pointer(std::string name, DType dtype);
/// `kDynamic` extents are known at launch.
Param view(std::string name, DType dtype, Extents shape);
/// View with explicit strides.
Param view(std::string name, DType dtype, Extents shape, Extents strides);

namespace detail {

/// Parameter that a C++ type in the signature of a body stands for.
struct Formal {
  Type::Kind kind;  // a Number may turn out to be a pointer if the type is not known
  std::optional<Type> type;
};
template <class T>
struct FormalOf;
template <>
struct FormalOf<Val> {
  static Formal get() { return {Type::Kind::Number, {}}; }
  static Val make(ValueId id) { return Val::of(id); }
};
template <>
struct FormalOf<View> {
  static Formal get() { return {Type::Kind::View, {}}; }
  static View make(ValueId id) { return View(id); }
};
template <class T>
struct FormalOf<Num<T>> {
  static Formal get() { return {Type::Kind::Number, Type::scalar(dtype_of<T>())}; }
  static Num<T> make(ValueId id) { return Num<T>(Val::of(id)); }
};
template <class T>
struct FormalOf<Ptr<T>> {
  static Formal get() { return {Type::Kind::Pointer, Type::pointer(dtype_of<T>())}; }
  static Ptr<T> make(ValueId id) { return Ptr<T>(Val::of(id)); }
};
template <class T, int Rank>
struct FormalOf<ViewOf<T, Rank>> {
  static Formal get() {
    return {Type::Kind::View, Type::view(dtype_of<T>(), Extents(Rank, kDynamic))};
  }
  static ViewOf<T, Rank> make(ValueId id) { return ViewOf<T, Rank>(id); }
};

using Call = std::function<void(const std::vector<ValueId>&)>;
Expected<Kernel> trace(const std::string& name, const std::vector<Param>& params,
                       const std::vector<Formal>& formals, const Call& call, const Place& where);

template <class... Args>
struct Formals {
  static std::vector<Formal> list() { return {FormalOf<std::remove_cvref_t<Args>>::get()...}; }
  template <class Body>
  static Call call(const Body& body) {
    return [&body](const std::vector<ValueId>& ids) {
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        body(FormalOf<std::remove_cvref_t<Args>>::make(ids[I])...);
      }
      (std::index_sequence_for<Args...>());
    };
  }
};
template <class Body>
struct FormalsOf : FormalsOf<decltype(&Body::operator())> {};
template <class Result, class... Args>
struct FormalsOf<Result (*)(Args...)> : Formals<Args...> {};
template <class Result, class Class, class... Args>
struct FormalsOf<Result (Class::*)(Args...) const> : Formals<Args...> {};

}  // namespace detail

/// Traces a kernel body: a lambda or a function with parameters of type Val, View, Num<T>, Ptr<T>
/// or ViewOf<T, rank>.
template <class Body>
Expected<Kernel> kernel(const std::string& name, const std::vector<Param>& params, const Body& body,
                        Place where = Place::current()) {
  using Formals = detail::FormalsOf<Body>;
  return detail::trace(name, params, Formals::list(), Formals::call(body), where);
}

}  // namespace tessera::tile
