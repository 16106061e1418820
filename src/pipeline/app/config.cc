#include "pipeline/app/config.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/names.h"
#include "base/parse.h"
#include "base/result.h"
#include "pipeline/app/config_check.h"
#include "pipeline/app/registry.h"
#include "pipeline/app/yaml_leaves.h"
#include "pipeline/schema/schema_limits.h"

namespace baton::pipeline {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kPrefix = "BATON_PIPELINE__";
constexpr milliseconds kLongest{std::chrono::hours(24)};
// Members of a Kafka group get twice this long to come back, which must be less than a day.
constexpr milliseconds kDrainLongest{std::chrono::hours(1)};

using Set = Status (*)(PipelineConfig& config, std::string_view text);
enum class When : std::uint8_t { start, reload };  // When a changed value takes effect.
struct Setting {
  std::string_view path;
  When when;
  Set set;
};

template <class Number>
Status set_number(Number& target, std::string_view text, std::uint64_t min, std::uint64_t max) {
  BATON_TRY(const std::uint64_t number, parse_number(text, min, max));
  target = static_cast<Number>(number);
  return {};
}

constexpr std::uint64_t kMemoryMost = std::uint64_t{16} << 30U;

Status set_size(std::size_t& target, std::string_view text, std::uint64_t most = kMemoryMost) {
  constexpr std::uint64_t kLeast = 1024;
  BATON_TRY(const std::uint64_t bytes, parse_size(text));
  if (bytes < kLeast || bytes > most) {
    return invalid_argument(fmt::format("{} is not 1KiB to {}MiB", text, most >> 20U));
  }
  target = bytes;
  return {};
}

Status set_http(std::string& target, std::string_view text) {
  if (text != "off") {
    const auto place = parse_host_port(text);
    if (!place.has_value()) return invalid_argument(place.error().text + ", or off");
  }
  return set_text(target, text);
}

Status set_duration(Duration& target, std::string_view text, milliseconds least = milliseconds(0),
                    milliseconds most = kLongest) {
  BATON_TRY(target, parse_milliseconds(text, least, most));
  return {};
}

/// Checks the id by Kafka's rules for static members.
Status set_member_id(PipelineConfig& config, std::string_view text) {
  constexpr std::size_t kIdMax = 128;
  BATON_TRY_STATUS(validate_name("id", text, kIdMax));
  if (text.find_first_of("/:") != std::string_view::npos) {
    return invalid_argument(fmt::format("'{}' holds more than letters, digits and . _ -", text));
  }
  return set_text(config.id, text);
}

template <class Enum, std::size_t N>
Status set_choice(Enum& target, std::string_view text,
                  const std::array<std::pair<std::string_view, Enum>, N>& choices) {
  std::string names;
  for (const auto& [name, value] : choices) {
    if (name == text) {
      target = value;
      return {};
    }
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  }
  return invalid_argument(fmt::format("'{}' is none of {}", text.substr(0, 64), names));
}

Status set_mechanism(std::string& target, std::string_view text) {
  return set_choice<std::string, 3>(target, text,
                                    {{{"PLAIN", "PLAIN"},
                                      {"SCRAM-SHA-256", "SCRAM-SHA-256"},
                                      {"SCRAM-SHA-512", "SCRAM-SHA-512"}}});
}

/// Config files are read by many people and copied to many places.
bool is_secret(std::string_view path) {
  return path.ends_with(".login.password") || path.ends_with(".login.token");
}

// NOLINTBEGIN(readability-identifier-length): c and t in one-line lambdas.
constexpr std::array kSettings = std::to_array<Setting>({
    {"name", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       BATON_TRY_STATUS(validate_name("name", t, 64));
       return set_text(c.name, t); }},
    {"workers", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_number(c.engine.workers, t, 1, 256); }},
    {"lanes", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_number(c.engine.lanes, t, 1, 256); }},
    {"order", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_choice<Order, 3>(
           c.engine.order, t,
           {{{"key", Order::key}, {"partition", Order::partition}, {"none", Order::none}}}); }},
    {"delivery", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_choice<bool, 2>(c.engine.exactly_once, t,
                                  {{{"at_least_once", false}, {"exactly_once_effect", true}}}); }},
    {"on_duplicate", When::reload, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_choice<bool, 2>(c.engine.lane.duplicates_are_dead_letters, t,
                                  {{{"count", false}, {"dead_letter", true}}}); }},
    {"http", When::start, [](PipelineConfig& c, std::string_view t) -> Status { return set_http(c.http, t); }},
    {"id", When::start, [](PipelineConfig& c, std::string_view t) -> Status { return set_member_id(c, t); }},
    {"window.records", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_number(c.engine.window_records, t, 1, 10'000'000); }},
    {"window.bytes", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_size(c.engine.window_bytes, t); }},
    {"batch.records", When::reload, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_number(c.engine.lane.batch_records, t, 1, 100'000); }},
    {"batch.bytes", When::reload, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_size(c.engine.lane.batch_bytes, t); }},
    {"batch.linger", When::reload, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_duration(c.engine.lane.linger, t); }},
    {"commit_interval", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_duration(c.engine.commit_interval, t, milliseconds(10), std::chrono::minutes(1)); }},
    {"drain", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_duration(c.engine.drain, t, milliseconds(0), kDrainLongest); }},
    {"max_outage", When::reload, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_duration(c.engine.breaker.outage_max, t); }},
    {"retry.attempts", When::reload, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_number(c.engine.lane.retries, t, 0, 1000); }},
    {"retry.first", When::reload, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_duration(c.engine.lane.backoff.first, t, milliseconds(1)); }},
    {"retry.most", When::reload, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_duration(c.engine.lane.backoff.most, t, milliseconds(1)); }},
    {"probe.first", When::reload, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_duration(c.engine.breaker.probe.first, t, milliseconds(10)); }},
    {"probe.most", When::reload, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_duration(c.engine.breaker.probe.most, t, milliseconds(10)); }},
    {"storm.in_a_row", When::reload, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_number(c.engine.storm.in_a_row, t, 2, 1'000'000); }},
    {"storm.of_last", When::reload, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_number(c.engine.storm.of_last, t, 1, 1'000'000); }},
    {"storm.percent", When::reload, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_number(c.engine.storm.percent, t, 1, 100); }},
    {"source.url", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       BATON_TRY(c.source.endpoint, parse_source_url(t));
       return {}; }},
    {"source.group", When::start, [](PipelineConfig& c, std::string_view t) -> Status { return set_text(c.source.group, t); }},
    {"source.from", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_choice<std::string, 2>(c.source.from, t,
                                         {{{"first", "first"}, {"next", "next"}}}); }},
    {"source.session_timeout", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_duration(c.source.session_timeout, t, std::chrono::seconds(1),
                           std::chrono::minutes(30)); }},
    {"source.partitions", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_number(c.source.partitions, t, 1, 65'536); }},
    {"source.tls.ca", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_text(c.source.security.files.ca_file, t); }},
    {"source.tls.certificate", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_text(c.source.security.files.certificate_file, t); }},
    {"source.tls.key", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_text(c.source.security.files.key_file, t); }},
    {"source.tls.server_name", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_text(c.source.security.files.server_name, t); }},
    {"source.login.user", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_text(c.source.security.user, t); }},
    {"source.login.password_file", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_text(c.source.security.password_file, t); }},
    {"source.login.token_file", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_text(c.source.security.token_file, t); }},
    {"source.login.credentials_file", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_text(c.source.security.credentials_file, t); }},
    {"source.login.password", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_text(c.source.security.password, t); }},
    {"source.login.token", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_text(c.source.security.token, t); }},
    {"source.login.mechanism", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_mechanism(c.source.security.mechanism, t); }},
    {"schema", When::start, [](PipelineConfig& c, std::string_view t) -> Status { return set_text(c.schema_file, t); }},
    {"record_max", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_size(c.record_bytes_max, t, schema::kDocumentBytesMax); }},
    {"sink.url", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       BATON_TRY(c.sink.endpoint, parse_sink_url(t));
       return {}; }},
    {"sink.timeout", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_duration(c.sink.timeout, t, milliseconds(100)); }},
    {"key", When::start, [](PipelineConfig& c, std::string_view t) -> Status { return set_text(c.rows.key, t); }},
    {"dead_letters.url", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       BATON_TRY(c.dead_letters.endpoint, parse_dead_letters_url(t));
       return {}; }},
    {"dead_letters.tls.ca", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_text(c.dead_letters.security.files.ca_file, t); }},
    {"dead_letters.tls.certificate", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_text(c.dead_letters.security.files.certificate_file, t); }},
    {"dead_letters.tls.key", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_text(c.dead_letters.security.files.key_file, t); }},
    {"dead_letters.tls.server_name", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_text(c.dead_letters.security.files.server_name, t); }},
    {"dead_letters.login.user", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_text(c.dead_letters.security.user, t); }},
    {"dead_letters.login.password_file", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_text(c.dead_letters.security.password_file, t); }},
    {"dead_letters.login.token_file", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_text(c.dead_letters.security.token_file, t); }},
    {"dead_letters.login.credentials_file", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_text(c.dead_letters.security.credentials_file, t); }},
    {"dead_letters.login.password", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_text(c.dead_letters.security.password, t); }},
    {"dead_letters.login.token", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_text(c.dead_letters.security.token, t); }},
    {"dead_letters.login.mechanism", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_mechanism(c.dead_letters.security.mechanism, t); }},
    {"dead_letters.redrives_max", When::start, [](PipelineConfig& c, std::string_view t) -> Status {
       return set_number(c.dead_letters.redrives_max, t, 0, 1000); }},
});
// NOLINTEND(readability-identifier-length)

const Setting* find_setting(std::string_view path) {
  const auto* found = std::ranges::find(kSettings, path, &Setting::path);
  return found == kSettings.end() ? nullptr : found;
}

/// Parses "integer payment.amount optional": type, path, and whether the value may be missing.
Result<schema::ColumnMapping> parse_column(std::string_view name, std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const bool optional = words.size() == 3 && words[2] == "optional";
  if (words.size() != 2 && !optional) {
    return invalid_argument(
        "must be 'TYPE PATH' or 'TYPE PATH optional', as in 'integer payment.amount'");
  }
  const auto type = schema::parse_column_type(words[0]);
  if (!type.has_value()) {
    return invalid_argument(fmt::format(
        "type '{}' is none of text, integer, real, boolean, json, timestamp", words[0]));
  }
  return schema::ColumnMapping{.name = std::string(name),
                               .path = std::string(words[1]),
                               .type = *type,
                               .optional = optional};
}

/// "tables[2].columns.price" -> (2, "columns.price").
std::optional<std::pair<std::size_t, std::string_view>> table_of(std::string_view path) {
  constexpr std::string_view kTables = "tables[";
  if (!path.starts_with(kTables)) return std::nullopt;
  path.remove_prefix(kTables.size());
  const std::size_t end = path.find("].");
  if (end == std::string_view::npos) return std::nullopt;
  const auto place = parse_number(path.substr(0, end), 0, 63);
  if (!place.has_value()) return std::nullopt;
  return std::pair(static_cast<std::size_t>(*place), path.substr(end + 2));
}

Status set_table(schema::RowMapping& rows, std::size_t place, std::string_view field,
                 std::string_view text) {
  constexpr std::string_view kColumns = "columns.";
  rows.tables.resize(std::max(rows.tables.size(), place + 1));
  schema::TableMapping& table = rows.tables[place];
  if (field == "name") return set_text(table.name, text);
  if (field == "rows") return set_text(table.rows, text);
  if (!field.starts_with(kColumns)) {
    return invalid_argument("is unknown; a table has name, rows and columns");
  }
  const std::string_view name = field.substr(kColumns.size());
  BATON_TRY(schema::ColumnMapping column, parse_column(name, text));
  const auto there = std::ranges::find(table.columns, name, &schema::ColumnMapping::name);
  if (there != table.columns.end()) {
    *there = std::move(column);
  } else {
    table.columns.push_back(std::move(column));
  }
  return {};
}

constexpr std::string_view kProperties = "source.properties.";
constexpr std::string_view kHeaders = "sink.headers.";

/// "batch:", "workers:": an empty section counts as absent, if it may be absent.
Status check_empty(std::string_view path) {
  if (path.starts_with("tables[")) return invalid_argument("is empty");
  const std::string section = fmt::format("{}.", path);
  const bool known = path == "tables" || section.starts_with(kProperties) ||
                     section.starts_with(kHeaders) ||
                     std::ranges::any_of(kSettings, [&](const Setting& setting) {
                       return setting.path == path || setting.path.starts_with(section);
                     });
  return known ? Status{} : invalid_argument("is unknown");
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

/// Sets a pair by its name without regard to case: headers and librdkafka's properties ignore case,
/// and a variable does not tell it.
void set_pair(Properties& pairs, std::string_view name, const std::string& value) {
  const auto there = std::ranges::find(pairs, lower_case(name),
                                       [](const auto& pair) { return lower_case(pair.first); });
  if (there != pairs.end()) {
    there->second = value;
  } else {
    pairs.emplace_back(name, value);
  }
}

Status apply(PipelineConfig& config, const YamlLeaf& leaf) {
  const std::string_view path = leaf.path;
  if (const auto table = table_of(path)) {
    return set_table(config.rows, table->first, table->second, leaf.value);
  }
  if (path.starts_with(kProperties)) {
    set_pair(config.source.properties, path.substr(kProperties.size()), leaf.value);
    return {};
  }
  if (path.starts_with(kHeaders)) {
    set_pair(config.sink.headers, path.substr(kHeaders.size()), leaf.value);
    return {};
  }
  const Setting* setting = find_setting(path);
  if (setting == nullptr) return invalid_argument("is unknown");
  return setting->set(config, leaf.value);
}

/// "sink.url" -> "BATON_PIPELINE__SINK__URL".
std::string variable_of_path(std::string_view path) {
  std::string name(kPrefix);
  for (const char c : path) {
    name += c == '.' ? "__" : std::string(1, static_cast<char>(std::toupper(c)));
  }
  return name;
}

/// "BATON_PIPELINE__SINK__URL" -> "sink.url". Only settings can be set by variables, not tables.
std::string path_of_variable(std::string_view name) {
  std::string path;
  for (name.remove_prefix(kPrefix.size()); !name.empty(); name.remove_prefix(1)) {
    const bool is_dot = name.starts_with("__");
    if (is_dot) name.remove_prefix(1);
    path += is_dot ? '.' : name.front();
  }
  return lower_case(path);
}

Status apply_and_remember(PipelineConfig& config, const YamlLeaf& leaf) {
  const bool is_pair = leaf.path.starts_with(kProperties) || leaf.path.starts_with(kHeaders);
  const std::string path = is_pair ? lower_case(leaf.path) : leaf.path;
  if (leaf.line > 0 && config.given.contains(path)) return invalid_argument("is there twice");
  if (leaf.line > 0 && is_secret(path)) {
    return invalid_argument(fmt::format("has no place in the file: name a {}_file, or set {}",
                                        path.substr(path.rfind('.') + 1), variable_of_path(path)));
  }
  BATON_TRY_STATUS(apply(config, leaf));
  config.given[path] = {.value = leaf.value, .line = leaf.line};
  return {};
}

}  // namespace

Result<PipelineConfig> parse_config(std::string_view text, std::string_view name,
                                    const std::map<std::string, std::string>& environment) {
  BATON_TRY(const std::vector<YamlLeaf> leaves, read_yaml(text, name));
  PipelineConfig config;
  config.file = name;
  for (const YamlLeaf& leaf : leaves) {
    const Status status = leaf.is_empty ? check_empty(leaf.path) : apply_and_remember(config, leaf);
    if (status.has_value()) continue;
    return invalid_argument(
        fmt::format("{}:{}: {}: {}", name, leaf.line, leaf.path, status.error().text));
  }
  for (const auto& [variable, value] : environment) {
    if (!variable.starts_with(kPrefix)) continue;
    const std::string path = path_of_variable(variable);
    const Status status = apply_and_remember(config, {path, value, 0});
    if (!status.has_value()) {
      return invalid_argument(fmt::format("environment {}: {}", variable, status.error().text));
    }
    config.given[path].variable = variable;
  }
  BATON_TRY_STATUS(check_config(config));
  if (config.source.group.empty()) config.source.group = config.name;
  config.engine.lane.pipeline = config.name;
  return config;
}

Status set_id(PipelineConfig& config, std::string_view id) {
  const Status status = set_member_id(config, id);
  if (!status.has_value()) return invalid_argument(fmt::format("--id: {}", status.error().text));
  const Status has = check_has_setting(config.source.endpoint, "id");
  return has.has_value() ? Status{} : invalid_argument("--id " + has.error().text);
}

void resolve_paths(PipelineConfig& config, const std::string& folder) {
  const auto put_within = [&folder](std::string& path) {
    path = (std::filesystem::path(folder) / path).string();
  };
  for (Endpoint* end : {&config.dead_letters.endpoint, &config.sink.endpoint}) {
    if (end->is_path()) put_within(end->name);
  }
  for (secure::Settings* security : {&config.source.security, &config.dead_letters.security}) {
    for (std::string* file :
         {&security->files.ca_file, &security->files.certificate_file, &security->files.key_file,
          &security->password_file, &security->token_file, &security->credentials_file}) {
      if (!file->empty()) put_within(*file);
    }
  }
  if (!config.schema_file.empty() && !config.schema_file.starts_with("builtin:")) {
    put_within(config.schema_file);
  }
}

Status load_security(PipelineConfig& config, const secure::Environment& environment) {
  if (is_same_servers(config.source.endpoint, config.dead_letters.endpoint) &&
      config.dead_letters.security == secure::Settings{}) {
    config.dead_letters.security = config.source.security;
  }
  const auto load = [&](Endpoint& endpoint, const secure::Settings& settings,
                        const std::string& path) -> Status {
    auto loaded = load_security(endpoint, settings, environment);
    if (!loaded.has_value()) {
      return wrong_at(config, path + (settings.wants_login() ? ".login" : ".tls"),
                      loaded.error().text);
    }
    endpoint.security = *std::move(loaded);
    return {};
  };
  BATON_TRY_STATUS(load(config.source.endpoint, config.source.security, "source"));
  return load(config.dead_letters.endpoint, config.dead_letters.security, "dead_letters");
}

Status check_reload(const PipelineConfig& running, const PipelineConfig& fresh) {
  std::set<std::string> changed;
  for (const auto& [path, given] : fresh.given) {
    const auto before = running.given.find(path);
    if (before == running.given.end() || before->second.value != given.value) changed.insert(path);
  }
  for (const auto& [path, given] : running.given) {
    if (!fresh.given.contains(path)) changed.insert(path);
  }
  for (const std::string& path : changed) {
    const Setting* setting = find_setting(path);
    if (setting != nullptr && setting->when == When::reload) continue;
    return invalid_argument(
        fmt::format("{} cannot change while the pipeline runs: restart it", path));
  }
  return {};
}

}  // namespace baton::pipeline
