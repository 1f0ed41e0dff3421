#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/support/dtype.h"
#include "tests/programs/draws.h"

namespace tessera::testing {

/// The parts of a text that are not empty.
std::vector<std::string> split(std::string_view text, char separator);
std::optional<std::int64_t> integer(std::string_view text);

/// An operand of a pattern, `F?[n,c*g,d+]content`, in its parts.
struct OperandForm {
  std::string type;  // with what tells its binding from others of its class
  bool optional = false, constant = false;
  std::optional<std::vector<std::string>> dims;  // nothing: the content has a shape
  std::string content;
};
OperandForm parse_operand(std::string_view text);

/// The dtypes that a word of a type stands for.
const std::vector<DType>& class_of(std::string_view type);

/// What the letters of a call stand for.
struct Bindings {
  std::map<std::string, DType> types = {};
  std::map<std::string, std::int64_t> sizes = {};
  std::map<std::string, Ints> lists = {};  // a.. and k+
};

// What is not bound is drawn.
std::int64_t random_size(Draws& draws);
std::int64_t size_of(const std::string& letter, Bindings& bound, Draws& draws);
std::size_t spatial_rank(Bindings& bound, Draws& draws);
Ints shape_of(const std::vector<std::string>& dims, Bindings& bound, Draws& draws);

/// Whether a shape has a form; binds what the form stands for.
bool matches(std::span<const std::string> dims, std::span<const std::int64_t> shape,
             Bindings& bound);

}  // namespace tessera::testing
