#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/tile/builder.h"

namespace tessera::tile {

class Val;

/// Source line of a traced program; as a default argument, the line of the call.
struct Place {
  const char* file = "";
  int line = 0;
  // Not std::source_location, which not every compiler that reads this has.
  static constexpr Place current(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

/// Tracer of the kernel that is being recorded on this thread, with the variables that are alive.
///
/// A `Val` is a variable of the C++ program that traces. When a region opens, every variable that
/// has a value is given the region's own; when it closes, those that were assigned get what the
/// region hands on. What was not assigned is taken out of the finished kernel again, so that a loop
/// carries no more than it has to.
class Trace {
 public:
  explicit Trace(std::string name) : builder_(std::move(name)) {}
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  ~Trace();

  /// Tracer of this thread; there is one while a body is traced.
  static Trace& current();
  static Trace* current_or_null();

  /// Runs the body with this trace as the current one, up to its first mistake.
  Expected<Kernel> run(const std::function<void(Builder&)>& body);

  Builder& builder() { return builder_; }
  /// The value of the last operation, unless there was an error: that ends the trace.
  ValueId checked(ValueId id);
  void check() const;
  [[noreturn]] void fail(std::string id, std::string message, std::string note = {},
                         std::string help = {});
  /// Reports an error at the line of another operation.
  [[noreturn]] void fail_at(const Source& source, std::string id, std::string message,
                            std::string note = {});

  /// Scope that attributes operations to a source line; operations inside of a library function are
  /// attributed to the line that called it.
  class Line {
   public:
    Line(Trace& trace, const Place& where);
    explicit Line(const Place& where) : Line(current(), where) {}
    Line(const Line&) = delete;
    Line& operator=(const Line&) = delete;
    ~Line() { --trace_.pinned_; }

   private:
    Trace& trace_;
  };

  void open_for(ValueId from, ValueId to, ValueId step, std::vector<std::int64_t> hints,
                ValueId& index);
  void close_for();
  /// Records that a loop was left before its end, without ending the trace (a destructor calls
  /// this).
  void abandon_for() noexcept;
  void while_loop(const std::function<ValueId()>& condition, const std::function<void()>& body);
  void if_else(ValueId condition, const std::function<void()>& then,
               const std::function<void()>& otherwise);
  /// Runs a user function in a scope of its own, from which only the result escapes.
  std::vector<ValueId> apart(const std::function<std::vector<ValueId>()>& body);

 private:
  friend class Val;

  /// A variable and the value it had, or was given, when a region was opened.
  struct Entry {
    Val* variable;
    ValueId value;
  };
  struct Open {
    std::vector<Entry> entries;
    ValueId first = 0;  // values from here on are of the region
    Source source;
  };

  std::vector<ValueId> in_region(const std::function<std::vector<ValueId>()>& body);
  ValueId next_id() const { return static_cast<ValueId>(made_at_.size()); }
  void enlist(Val* variable) { alive_.push_back(variable); }
  void dismiss(const Val* variable);
  bool alive(const Val* variable) const;
  /// Variables that have a value, with it.
  std::vector<Entry> assigned() const;
  std::vector<ValueId> values_of(const std::vector<Entry>& entries) const;
  /// Current values of the variables of the entries; a changed type is an error.
  std::vector<ValueId> next_of(const Open& region);
  void give(const std::vector<Entry>& entries, const std::vector<ValueId>& values);
  /// Ends the scope of values that were defined in the region.
  void leave(const Open& region);
  /// Source line of the operation that defines a value.
  Source source_of(ValueId id) const;

  Builder builder_;
  std::vector<Val*> alive_;      // by age, nearly
  std::vector<Open> open_;       // loops of open_for, innermost last
  std::vector<Source> made_at_;  // by value id, where known
  Source source_;
  int pinned_ = 0;
};

/// Kernel without loop-carried values and branch results that never change, renumbered in order.
Kernel without_unchanged(const Kernel& kernel);

}  // namespace tessera::tile
