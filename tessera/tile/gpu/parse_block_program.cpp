#include <charconv>
#include <map>

#include "tessera/support/lexer.h"
#include "tessera/tile/gpu/block_program_enums.h"
#include "tessera/tile/gpu/block_program_fields.h"
#include "tessera/tile/gpu/block_program_text.h"

namespace tessera::tile::gpu {
namespace {

/// Parser of a list of fields, each of which may be left out. The first mistake is kept; what comes
/// after it is not read.
class FieldParser {
 public:
  FieldParser(Lexer& lexer, const std::map<std::string, Layout>& layouts,
              std::optional<Diagnostic>& error)
      : lexer_(lexer), layouts_(layouts), error_(error) {}

  template <class T>
  void operator()(std::string_view name, T& x) {
    if (begins(name)) read(x);
  }
  template <class T>
  void op(std::string_view name, T& x) {
    if (begins(name)) read_numbered('#', x);
  }
  template <class T>
  void value(std::string_view name, T& x) {
    if (begins(name)) read_numbered('%', x);
  }

  /// Fields in parentheses.
  template <class T>
  void read_fields(T& x) {
    expect("(");
    FieldParser inner(lexer_, layouts_, error_);
    fields(x, inner);
    expect(")");
  }
  void read(Body& body) {
    expect("{");
    while (!error_ && !lexer_.accept("}")) read_instruction(body);
  }
  void read_instruction(Body& body) {
    const Token name = lexer_.take();
    read_named<0>(name.text, body);
  }
  void expect(std::string_view word) {
    if (error_) return;
    if (const auto done = lexer_.expect(word); !done) error_ = done.error();
  }

 private:
  /// Whether the field with this name comes next.
  bool begins(std::string_view name) {
    if (error_) return false;
    const int ahead = is_first_ ? 0 : 1;
    if (ahead == 1 && !lexer_.at(",")) return false;
    if (!Lexer::is(lexer_.peek(ahead), name)) return false;
    if (ahead == 1) lexer_.take();
    lexer_.take();
    is_first_ = false;
    expect("=");
    return !error_;
  }

  template <std::size_t kIndex>
  void read_named(std::string_view name, Body& body) {
    if constexpr (kIndex < std::variant_size_v<AnyInstruction>) {
      using T = std::variant_alternative_t<kIndex, AnyInstruction>;
      if (name != kInstructionName<T>) return read_named<kIndex + 1>(name, body);
      T one;
      read_fields(one);
      if (!error_) body.emplace_back(std::move(one));
    } else {
      error_ = lexer_.error("no instruction of form S is called '" + std::string(name) + "'");
    }
  }

  template <class T>
  void keep(Expected<T> made, auto& x) {
    if (made) {
      x = static_cast<std::remove_reference_t<decltype(x)>>(*made);
    } else if (!error_) {
      error_ = made.error();
    }
  }
  void read_list(const auto& read_one) {
    expect("[");
    for (bool is_first = true; !error_ && !lexer_.accept("]"); is_first = false) {
      if (!is_first) expect(",");
      if (!error_) read_one();
    }
  }

  void read_numbered(char sigil, std::uint32_t& x) {
    const Token token = lexer_.take();
    const char* end = token.text.data() + token.text.size();
    if (token.text.size() < 2 || token.text[0] != sigil ||
        std::from_chars(token.text.data() + 1, end, x).ptr != end)
      error_ = lexer_.error("expected a number after '" + std::string(1, sigil) + "'");
  }
  void read_numbered(char sigil, std::optional<ValueId>& x) { read_numbered(sigil, x.emplace()); }
  template <class T>
  void read_numbered(char sigil, std::pair<OpId, T>& x) {
    read_numbered(sigil, x.first);
    expect(":");
    if constexpr (std::same_as<T, OpId>) {
      read_numbered(sigil, x.second);
    } else {
      read(x.second);
    }
  }
  template <class T>
  void read_numbered(char sigil, std::vector<T>& all) {
    read_list([&] { read_numbered(sigil, all.emplace_back()); });
  }
  void read_numbered(char sigil, std::set<OpId>& all) {
    read_list([&] {
      OpId one = 0;
      read_numbered(sigil, one);
      all.insert(one);
    });
  }

  void read(bool& x) {
    x = lexer_.at("true");
    if (x)
      lexer_.take();
    else
      expect("false");
  }
  void read(double& x) { keep(lexer_.number("a number"), x); }
  template <std::integral T>
  void read(T& x) {
    keep(lexer_.integer("an integer"), x);
  }
  template <class T>
  requires std::is_enum_v<T>
  void read(T& x) {
    const Token token = lexer_.take();
    const auto& names = kEnumerators<T>;
    const auto found = std::find(names.begin(), names.end(), token.text);
    if (found == names.end()) error_ = lexer_.error("'" + token.text + "' is none of its values");
    x = static_cast<T>(found - names.begin());
  }
  void read(Layout& layout) {
    const Token token = lexer_.take();
    const auto found = layouts_.find(token.text);
    if (found == layouts_.end())
      error_ = lexer_.error("no layout is called '" + token.text + "'");
    else
      layout = found->second;
  }
  void read(SharedTile& tile) {
    const Token token = lexer_.take();
    const std::optional<DType> dtype = parse_dtype(token.text);
    if (!dtype) error_ = lexer_.error("'" + token.text + "' is no dtype");
    Extents extents;
    read_list([&] { read(extents.emplace_back()); });
    expect("@");
    if (error_) return;
    tile = SharedTile::of(extents, *dtype);
    read(tile.offset);
  }
  void read(Fragment& fragment) {
    read_numbered('%', fragment.value);
    if (!error_ && lexer_.accept(":")) read(fragment.layout.emplace());
  }
  template <class T>
  void read(std::optional<T>& x) {
    read(x.emplace());
  }
  void read(std::vector<bool>& all) {
    read_list([&] {
      bool one = false;
      read(one);
      all.push_back(one);
    });
  }
  template <class T>
  void read(std::vector<T>& all) {
    read_list([&] { read(all.emplace_back()); });
  }
  template <class T>
  requires std::is_class_v<T>
  void read(T& x) { read_fields(x); }

  Lexer& lexer_;
  const std::map<std::string, Layout>& layouts_;
  std::optional<Diagnostic>& error_;
  bool is_first_ = true;
};

/// Bits of a layout: `[1:0, -]`.
Expected<std::vector<IndexBit>> parse_bits(Lexer& lexer) {
  std::vector<IndexBit> bits;
  TESSERA_TRY_DONE(lexer.expect("["));
  while (!lexer.accept("]")) {
    if (!bits.empty()) TESSERA_TRY_DONE(lexer.expect(","));
    IndexBit& bit = bits.emplace_back();
    if (lexer.accept("-")) continue;
    TESSERA_TRY(const std::int64_t axis, lexer.integer("an axis"));
    TESSERA_TRY_DONE(lexer.expect(":"));
    TESSERA_TRY(const std::int64_t number, lexer.integer("a bit"));
    bit = {static_cast<int>(axis), static_cast<int>(number)};
  }
  return bits;
}

}  // namespace

Expected<BlockProgram> parse_block_program(std::string_view text) {
  Lexer lexer(text);
  std::map<std::string, Layout> layouts;
  std::optional<Diagnostic> error;
  FieldParser parser(lexer, layouts, error);
  BlockProgram program;
  TESSERA_TRY_DONE(lexer.expect("block_program"));
  parser.read_fields(program.shared);
  parser.expect("{");
  if (error) return *error;
  while (lexer.accept("layout")) {
    TESSERA_TRY(const std::string name, lexer.name("a layout"));
    TESSERA_TRY_DONE(lexer.expect("="));
    TESSERA_TRY(const std::int64_t rank, lexer.integer("a rank"));
    TESSERA_TRY(std::vector<IndexBit> registers, parse_bits(lexer));
    TESSERA_TRY(std::vector<IndexBit> threads, parse_bits(lexer));
    layouts.emplace(name, Layout(static_cast<int>(rank), std::move(registers), std::move(threads)));
  }
  while (!error && !lexer.accept("}")) parser.read_instruction(program.body);
  if (error) return *error;
  TESSERA_TRY_DONE(lexer.end());
  return program;
}

}  // namespace tessera::tile::gpu
