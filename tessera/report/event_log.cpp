#include "tessera/report/event_log.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>

namespace tessera::report {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
concept HasFields = requires(T& record) {
  T::fields(record, [](const char*, auto&) {});
};

template <HasFields T>
Json json_of(const T& record);

template <class T>
Json json_of(const std::vector<T>& list) {
  Json array = Json::array();
  for (const T& one : list) {
    if constexpr (HasFields<T>) {
      array.push_back(json_of(one));
    } else {
      array.push_back(one);
    }
  }
  return array;
}
Json json_of(double number) {
  // JSON has no infinity and no NaN.
  return std::isfinite(number) ? Json(number) : Json(nullptr);
}
template <class T>
Json json_of(const std::optional<T>& value) {
  return value ? json_of(*value) : Json(nullptr);
}
template <class T>
requires(!HasFields<T>) Json json_of(const T& value) {
  return value;
}

template <HasFields T>
Json json_of(const T& record) {
  static const T kDefault = {};
  Json object = Json::object();
  std::vector<Json> defaults;
  T::fields(kDefault, [&](const char*, const auto& field) { defaults.push_back(json_of(field)); });
  std::size_t i = 0;
  T::fields(record, [&](const char* name, const auto& field) {
    Json value = json_of(field);
    if (value != defaults[i++]) object[name] = std::move(value);
  });
  return object;
}

/// Sets a field to a JSON value; false if that has another type.
template <class T>
bool read_value(const Json& json, T& value);

template <class T>
bool read_list(const Json& json, std::vector<T>& list) {
  if (!json.is_array()) return false;
  list.clear();
  for (const Json& one : json)
    if (!read_value(one, list.emplace_back())) return false;
  return true;
}

template <class T>
bool read_map(const Json& json, std::map<std::string, T>& map) {
  if (!json.is_object()) return false;
  for (const auto& [key, one] : json.items())
    if (!read_value(one, map[key])) return false;
  return true;
}

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsMap : std::false_type {};
template <class T>
struct IsMap<std::map<std::string, T>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <class T>
bool read_value(const Json& json, T& value) {
  if constexpr (HasFields<T>) {
    if (!json.is_object()) return false;
    bool fits = true;
    T::fields(value, [&](const char* name, auto& field) {
      if (const auto it = json.find(name); it != json.end()) fits = fits && read_value(*it, field);
    });
    return fits;
  } else if constexpr (IsVector<T>::value) {
    return read_list(json, value);
  } else if constexpr (IsMap<T>::value) {
    return read_map(json, value);
  } else if constexpr (IsOptional<T>::value) {
    if (json.is_null()) return true;
    return read_value(json, value.emplace());
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!json.is_string()) return false;
    value = json.get<std::string>();
    return true;
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!json.is_boolean()) return false;
    value = json.get<bool>();
    return true;
  } else if constexpr (std::is_same_v<T, double>) {
    if (json.is_null()) return value = std::nan(""), true;
    if (!json.is_number()) return false;
    value = json.get<double>();
    return true;
  } else {
    static_assert(std::is_same_v<T, std::int64_t>);
    if (!json.is_number_integer()) return false;
    value = json.get<std::int64_t>();
    return true;
  }
}

template <class T>
void write_line(const T& record, std::string& text) {
  Json object = {{"event", T::kEvent}};
  object.update(json_of(record));
  text += object.dump(-1, ' ', false, Json::error_handler_t::replace);
  text += '\n';
}

Diagnostic malformed(std::size_t line, std::string message) {
  return {.id = "report-malformed",
          .where = {.item = fmt::format("line {}", line)},
          .message = std::move(message),
          .note = "an event log has one JSON object per line, with its kind as \"event\"",
          .help = "write one with --events FILE"};
}

/// Adds the record of an event whose kind is one of the variant's; false if its fields do not fit.
template <class... Kinds>
bool read_record(const Json& json, const std::string& event, EventLog& log,
                 std::variant<Kinds...>*) {
  bool fits = true;
  const auto attempt = [&]<class Kind>(Kind record) {
    if (event != Kind::kEvent) return;
    fits = read_value(json, record);
    log.add(std::move(record));
  };
  (attempt(Kinds{}), ...);
  return fits;
}

template <class... Kinds>
void add_schema(std::vector<std::pair<std::string, std::vector<std::string>>>& kinds,
                std::variant<Kinds...>*) {
  const auto add = [&]<class Kind>(const Kind& record) {
    auto& entry = kinds.emplace_back(Kind::kEvent, std::vector<std::string>());
    Kind::fields(record, [&](const char* name, auto&) { entry.second.emplace_back(name); });
  };
  (add(Kinds{}), ...);
}

}  // namespace

EventLog::EventLog(std::string command)
    : header{.schema = kSchemaVersion, .version = TESSERA_VERSION, .command = std::move(command)} {}

std::string to_json_lines(const EventLog& log) {
  std::string text;
  write_line(log.header, text);
  for (const Record& record : log.records)
    std::visit([&](const auto& one) { write_line(one, text); }, record);
  return text;
}

Expected<EventLog> parse_event_log(std::string_view text) {
  EventLog log;
  std::size_t line = 0;
  bool has_header = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line;
    if (one.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const Json json = Json::parse(one, nullptr, false);
    if (!json.is_object() || !json.contains("event") || !json["event"].is_string())
      return malformed(line, "the line is not an event");
    const std::string event = json["event"].get<std::string>();
    if (!has_header) {
      if (event != Header::kEvent) return malformed(line, "the log does not begin with a header");
      log.header = {};
      if (!read_value(json, log.header))
        return malformed(line, "a field of the header has another type");
      if (log.header.schema != kSchemaVersion)
        return Diagnostic{.id = "report-version",
                          .message = fmt::format("the log has schema {}", log.header.schema),
                          .note = fmt::format("this version reads schema {}", kSchemaVersion)};
      has_header = true;
      continue;
    }
    if (!read_record(json, event, log, static_cast<Record*>(nullptr)))
      return malformed(line, fmt::format("a field of the event '{}' has another type", event));
  }
  if (!has_header) return malformed(line, "the log is empty");
  return log;
}

std::vector<std::pair<std::string, std::vector<std::string>>> schema() {
  std::vector<std::pair<std::string, std::vector<std::string>>> kinds;
  std::variant<Header>* header = nullptr;
  add_schema(kinds, header);
  add_schema(kinds, static_cast<Record*>(nullptr));
  return kinds;
}

}  // namespace tessera::report
