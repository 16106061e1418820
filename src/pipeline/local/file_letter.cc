#include "pipeline/local/file_letter.h"

#include <optional>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "pipeline/ends/text.h"

namespace baton::pipeline {
namespace {

using Json = nlohmann::json;

bool fits_into_object(const Record& record, const Json& own) {
  std::set<std::string_view> names;
  for (const auto& [name, value] : record.headers) {
    if (!is_text(name) || !is_text(value) || own.contains(name)) return false;
    if (!names.insert(name).second) return false;
  }
  return true;
}

std::optional<std::string> bytes_of(const Json& json) {
  if (!json.is_string()) return std::nullopt;
  return from_base64(json.get_ref<const std::string&>());
}

Error wrong(std::string text) { return {Errc::malformed, "not a dead letter: " + std::move(text)}; }

Status read_headers(const Json& line, Record& record) {
  const auto headers = line.find("headers");
  if (headers == line.end() || !headers->is_object()) return wrong("no headers");
  for (const auto& [name, value] : headers->items()) {
    if (!value.is_string()) return wrong("a header that is not text");
    record.headers.emplace_back(name, value.get<std::string>());
  }
  return {};
}

/// Reads the headers besides those that read_headers() finds.
Status read_record_headers(const Json& line, Record& record) {
  const auto list = line.find("record_headers");
  if (list == line.end()) return {};
  if (!list->is_array()) return wrong("record_headers that are not a list");
  for (const Json& pair : *list) {
    const bool is_pair = pair.is_array() && pair.size() == 2;
    auto name = is_pair ? bytes_of(pair[0]) : std::nullopt;
    auto value = is_pair ? bytes_of(pair[1]) : std::nullopt;
    if (!name.has_value() || !value.has_value()) return wrong("record_headers that are not base64");
    record.headers.emplace_back(*std::move(name), *std::move(value));
  }
  return {};
}

}  // namespace

std::string to_json_line(const DeadLetter& letter) {
  const Record& record = *letter.record;
  Json headers = Json::object();
  for (const auto& [name, value] : letter.headers()) headers[name] = value;
  Json line{{"id", letter.id()}, {"key", base64(record.key)}, {"value", base64(record.value)}};
  if (fits_into_object(record, headers)) {
    for (const auto& [name, value] : record.headers) headers[name] = value;
  } else {
    Json& list = line["record_headers"] = Json::array();
    for (const auto& [name, value] : record.headers) {
      list.push_back(Json::array({base64(name), base64(value)}));
    }
  }
  line["headers"] = std::move(headers);
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<StoredLetter> from_json_line(std::string_view text) {
  const Json line = Json::parse(text, nullptr, false);
  if (!line.is_object()) return wrong("not a line of JSON");
  const auto id = line.find("id");
  const auto key = line.find("key");
  const auto value = line.find("value");
  if (id == line.end() || !id->is_string()) return wrong("no id");
  auto key_bytes = key == line.end() ? std::nullopt : bytes_of(*key);
  auto value_bytes = value == line.end() ? std::nullopt : bytes_of(*value);
  if (!key_bytes.has_value()) return wrong("no key in base64");
  if (!value_bytes.has_value()) return wrong("no value in base64");
  Record kept;
  BATON_TRY_STATUS(read_headers(line, kept));
  BATON_TRY(StoredLetter letter, to_letter(std::move(kept)));
  BATON_TRY_STATUS(read_record_headers(line, letter.record));
  letter.id = id->get<std::string>();
  letter.record.key = *std::move(key_bytes);
  letter.record.value = *std::move(value_bytes);
  return letter;
}

}  // namespace baton::pipeline
