#include "tessera/expr/definition.h"

#include "tessera/support/check.h"

namespace tessera {

std::vector<Axis> axes(const std::string& prefix, int count) {
  std::vector<Axis> result;
  for (int i = 0; i < count; ++i) result.push_back({prefix + std::to_string(i)});
  return result;
}

std::vector<Bound> bounds(const std::vector<Axis>& over) {
  return {over.begin(), over.end()};
}

MergedAxis merge(const Axis& outer, const Axis& inner) {
  return {{outer, inner}};
}

MergedAxis::operator Dim() const {
  Dim size = 1;
  for (const Axis& part : parts) size = size * part.size();
  return size;
}

MergedAxis::operator Scalar() const {
  TESSERA_CHECK(!parts.empty(), "an axis of no parts has no position");
  Scalar position = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i)
    position = position * Scalar(parts[i].size()) + Scalar(parts[i]);
  return position;
}

Scalar Operand::operator()(std::vector<Scalar> at) const {
  TESSERA_CHECK(at.size() == shape.size(), "{} has {} axes and is read at {}", name, shape.size(),
                at.size());
  return Scalar(Node(node::Read{name, sort_of(dtype), std::move(at), nullptr}));
}

Scalar Operand::or_else(std::vector<Scalar> at, const Scalar& otherwise) const {
  TESSERA_CHECK(at.size() == shape.size(), "{} has {} axes and is read at {}", name, shape.size(),
                at.size());
  return Scalar(Node(
      node::Read{name, sort_of(dtype), std::move(at), std::make_shared<const Scalar>(otherwise)}));
}

Scalar Operand::or_zero(std::vector<Scalar> at) const {
  switch (sort_of(dtype)) {
    case Sort::Value: return or_else(std::move(at), 0.0);
    case Sort::Bool: return or_else(std::move(at), truth(false));
    case Sort::Integer:
    case Sort::Unsigned:
    case Sort::Text: break;
  }
  return or_else(std::move(at), 0);
}

Shape Output::shape() const {
  return {axes.begin(), axes.end()};
}

std::vector<MergedAxis> each(const std::vector<Axis>& axes) {
  std::vector<MergedAxis> result;
  for (const Axis& axis : axes) result.push_back({{axis}});
  return result;
}

std::vector<Scalar> indices(const std::vector<Axis>& axes) {
  return {axes.begin(), axes.end()};
}
Shape sizes(const std::vector<Axis>& axes) {
  return {axes.begin(), axes.end()};
}

}  // namespace tessera
