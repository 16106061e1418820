#include "cli/base/output.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/time.h"
#include "cli/base/terminal.h"

namespace baton::cli {
namespace {

constexpr const char* kDeadLetterSuffix = ".dlq";
// People see this much of a payload; programs see all of it.
constexpr std::size_t kPayloadShown = 2048;

std::string duration_text(std::optional<std::chrono::milliseconds> duration) {
  return duration ? format_duration(*duration) : "-";
}

std::string limit_text(std::optional<std::uint64_t> value, std::string (*format)(std::uint64_t)) {
  if (!value) return "-";
  return *value == 0 ? "no limit" : format(*value);
}

/// An empty setting means the default; dead-letter queues themselves have none.
std::string dead_letter_text(const client::QueueInfo& queue) {
  std::string set = queue.settings.dead_letter_queue.value_or("");
  if (!set.empty()) return set;
  return queue.name.ends_with(kDeadLetterSuffix) ? "none" : queue.name + kDeadLetterSuffix;
}

std::string_view cost_name(client::FairnessCost cost) {
  switch (cost) {
    case client::FairnessCost::message: return "FAIRNESS_COST_MESSAGE";
    case client::FairnessCost::byte: return "FAIRNESS_COST_BYTE";
    default: return "FAIRNESS_COST_UNSPECIFIED";
  }
}

std::string_view state_name(client::MessageState state) {
  switch (state) {
    case client::MessageState::ready: return "MESSAGE_STATE_READY";
    case client::MessageState::leased: return "MESSAGE_STATE_LEASED";
    case client::MessageState::delayed: return "MESSAGE_STATE_DELAYED";
    default: return "MESSAGE_STATE_UNSPECIFIED";
  }
}

std::string_view state_word(client::MessageState state) {
  switch (state) {
    case client::MessageState::ready: return "ready";
    case client::MessageState::leased: return "leased";
    case client::MessageState::delayed: return "delayed";
    default: return "in an unknown state";
  }
}

Json json_of(std::chrono::milliseconds value) { return value.count(); }
Json json_of(client::FairnessCost value) { return cost_name(value); }
template <class T>
Json json_of(const T& value) {
  return value;
}

Json to_json(const client::QueueSettings& settings) {
  Json out = Json::object();
  client::for_each_setting(settings, [&](const char* name, const auto& value) {
    if (value) out[name] = json_of(*value);
  });
  out["weights"] = Json::object();
  for (const auto& [key, weight] : settings.weights) out["weights"][key] = weight;
  out["throttles"] = Json::object();
  for (const auto& [key, throttle] : settings.throttles) {
    out["throttles"][key] = {{"rate", throttle.rate}, {"burst", throttle.burst}};
  }
  return out;
}

Json to_json(const client::QueueStats& stats) {
  return {{"ready", stats.ready},
          {"leased", stats.leased},
          {"delayed", stats.delayed},
          {"bytes", stats.bytes},
          {"active_keys", stats.active_keys},
          {"consumers", stats.consumers},
          {"outgoing", stats.outgoing},
          {"dedup_ids", stats.dedup_ids},
          {"enqueued_total", stats.enqueued_total},
          {"delivered_total", stats.delivered_total},
          {"acked_total", stats.acked_total},
          {"nacked_total", stats.nacked_total},
          {"lease_expired_total", stats.lease_expired_total},
          {"dead_lettered_total", stats.dead_lettered_total},
          {"dropped_total", stats.dropped_total},
          {"deduplicated_total", stats.deduplicated_total}};
}

/// The beginning of `payload`, which is UTF-8, without cutting a character in two.
std::string_view shown_part(std::string_view payload) {
  if (payload.size() <= kPayloadShown) return payload;
  std::size_t end = kPayloadShown;
  while (end > 0 && (static_cast<unsigned char>(payload[end]) & 0xc0U) == 0x80U) --end;
  return payload.substr(0, end);
}

std::string describe_body(const client::Headers& headers, const std::string& payload) {
  std::string out;
  for (const auto& [name, value] : headers) {
    out += fmt::format("\n  {}: {}", printable(name), printable(value));
  }
  return out + describe_payload(payload);
}

std::string key_text(const std::string& key) {
  return key.empty() ? std::string() : fmt::format("  key {}", printable(key));
}

/// How a column of a table is written.
struct Column {
  std::size_t width = 0;
  bool number = true;
};

bool is_number(std::string_view text) {
  return !text.empty() && text.front() >= '0' && text.front() <= '9';
}

std::vector<Column> columns_of(const std::vector<std::vector<std::string>>& rows) {
  std::vector<Column> columns;
  for (const auto& row : rows) {
    columns.resize(std::max(columns.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) {
      columns[c].width = std::max(columns[c].width, visible_width(row[c]));
      // The first row is the head.
      if (&row != &rows.front() && !is_number(row[c])) columns[c].number = false;
    }
  }
  return columns;
}

}  // namespace

struct Output::Failure {
  std::uint32_t code = 0;
  std::string_view name;
  std::string text;
  ExitCode exit_code = ExitCode::failure;
};

void Output::text(std::string_view line) { fmt::print("{}\n", line); }

void Output::object(const Json& value) { fmt::print("{}\n", dump(value)); }

void Output::print(std::string_view what, const Failure& failure) const {
  std::fflush(stdout);
  if (!json_) {
    fmt::print(stderr, "baton: {}{}{}\n", what, what.empty() ? "" : ": ", failure.text);
    return;
  }
  const Json error{{"code", failure.code},
                   {"name", failure.name},
                   {"text", failure.text},
                   {"what", what},
                   {"exit_code", static_cast<int>(failure.exit_code)}};
  fmt::print(stderr, "{}\n", dump(Json{{"error", error}}));
}

ExitCode Output::fail(std::string_view what, const Error& given) const {
  const Error error = explain_ ? explain_(given) : given;
  const ExitCode code = exit_code_of(error.code);
  const std::string text = json_ ? error.text : reason(error);
  print(what, {static_cast<std::uint32_t>(error.code), error.name(), text, code});
  return code;
}

ExitCode Output::fail_here(std::string_view what, const Error& error) const {
  const ExitCode code = exit_code_of(error.code);
  const std::string text = error.text.empty() ? std::string(errc_text(error.code)) : error.text;
  print(what, {static_cast<std::uint32_t>(error.code), error.name(), text, code});
  return code;
}

ExitCode Output::fail(std::string_view what, std::string_view why, ExitCode code) const {
  const std::string_view name = code == ExitCode::usage              ? "usage"
                                : code == ExitCode::nothing_to_lease ? "nothing_to_lease"
                                : code == ExitCode::partial          ? "partial"
                                                                     : "failure";
  print(what, {0, name, std::string(why), code});
  return code;
}

std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json to_json(const client::QueueInfo& queue) {
  return {{"name", queue.name},
          {"id", queue.id},
          {"settings", to_json(queue.settings)},
          {"stats", to_json(queue.stats)}};
}

Json to_json(const client::LeasedMessage& message) {
  Json out{{"id", message.id}};
  put_bytes(out, "payload", message.payload);
  out["headers"] = Json::object();
  for (const auto& [name, value] : message.headers) out["headers"][name] = value;
  out["fairness_key"] = message.fairness_key;
  out["attempt"] = message.attempt;
  out["enqueued_at_ns"] = message.enqueued_at.time_since_epoch().count();
  out["lease_deadline_ns"] = message.lease_deadline.time_since_epoch().count();
  out["lease_token"] = base64(message.token.bytes);
  out["throttle_keys"] = message.throttle_keys;
  return out;
}

Json to_json(const client::PeekedMessage& message) {
  Json out{{"id", message.id}};
  put_bytes(out, "payload", message.payload);
  out["headers"] = Json::object();
  for (const auto& [name, value] : message.headers) out["headers"][name] = value;
  out["fairness_key"] = message.fairness_key;
  out["attempts"] = message.attempts;
  out["enqueued_at_ns"] = message.enqueued_at.time_since_epoch().count();
  out["state"] = state_name(message.state);
  out["consumer_id"] = message.consumer_id;
  out["visible_at_ns"] = message.visible_at.time_since_epoch().count();
  return out;
}

Json to_json(const client::EnqueueResult& result) {
  Json out{{"id", result.id}, {"duplicate", result.duplicate}};
  if (result.error) out["error"] = to_json(*result.error);
  return out;
}

Json to_json(const Error& error) {
  return {{"code", static_cast<std::uint32_t>(error.code)},
          {"name", error.name()},
          {"text", error.text}};
}

std::string reason(const Error& error) {
  if (error.text.empty()) return std::string(error.name());
  return fmt::format("{} ({})", error.text, error.name());
}

std::string describe_payload(std::string_view payload) {
  std::string out;
  if (is_utf8(payload)) {
    // Every line of a payload is indented, so that it cannot be mistaken for a line of ours.
    std::string_view rest = shown_part(payload);
    const bool cut = rest.size() < payload.size();
    while (!rest.empty()) {
      const auto end = std::min(rest.find('\n'), rest.size());
      out += fmt::format("\n    {}", printable(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (cut) out += "\n    ... (--json shows all)";
  } else {
    out += fmt::format("\n    ({} that {} not text; --json shows all)",
                       counted(payload.size(), "byte"), payload.size() == 1 ? "is" : "are");
  }
  return out;
}

namespace {

// The settings that describe() words with care. It shows any other as its name and its value.
const std::set<std::string> kDescribed{
    "visibility_timeout_ms", "attempts_max", "dead_letter_queue", "retry_delay_ms",
    "retry_delay_max_ms",    "bytes_max",    "payload_bytes_max", "release_on_disconnect",
    "messages_max",          "retention_ms", "dedup_window_ms",   "dedup_ids_max",
    "fairness_cost"};

/// "lock_timeout_ms" is shown as "lock timeout".
std::string label_of(std::string name) {
  if (name.ends_with("_ms")) name.resize(name.size() - 3);
  std::ranges::replace(name, '_', ' ');
  return name;
}

std::string text_of(std::chrono::milliseconds value) { return duration_text(value); }
std::string text_of(bool value) { return value ? "yes" : "no"; }
template <std::unsigned_integral Number>
std::string text_of(Number value) {
  return format_count(value);
}
std::string text_of(const std::string& value) { return printable(value); }
std::string text_of(client::FairnessCost value) { return std::string(cost_name(value)); }

}  // namespace

std::string describe(const client::QueueInfo& queue) {
  const auto& settings = queue.settings;
  const auto& stats = queue.stats;
  std::string out = fmt::format("{}  (id {})\n", queue.name, queue.id);
  const auto line = [&out](std::string_view name, std::string_view value) {
    out += fmt::format("  {:<22}{}\n", name, value);
  };
  line("visibility timeout", duration_text(settings.visibility_timeout));
  line("attempts max", limit_text(settings.attempts_max, format_count));
  line("dead-letter queue", dead_letter_text(queue));
  line("retry delay", fmt::format("{}, doubled up to {}", duration_text(settings.retry_delay),
                                  duration_text(settings.retry_delay_max)));
  line("release on disconnect", settings.release_on_disconnect.value_or(true) ? "yes" : "no");
  line("payload max", limit_text(settings.payload_bytes_max, format_bytes));
  line("messages max", limit_text(settings.messages_max, format_count));
  line("bytes max", limit_text(settings.bytes_max, format_bytes));
  line("retention", settings.retention.value_or(std::chrono::milliseconds{0}).count() == 0
                        ? "no limit"
                        : duration_text(settings.retention));
  line("dedup window", fmt::format("{}, at most {} ids", duration_text(settings.dedup_window),
                                   limit_text(settings.dedup_ids_max, format_count)));
  line("fairness cost", settings.fairness_cost == client::FairnessCost::byte ? "byte" : "message");
  client::for_each_setting(settings, [&](const std::string& name, const auto& value) {
    if (value && !kDescribed.contains(name)) line(label_of(name), text_of(*value));
  });
  for (const auto& [key, weight] : settings.weights) {
    line("weight", fmt::format("{}={}", printable(key), weight));
  }
  for (const auto& [key, throttle] : settings.throttles) {
    line("throttle", fmt::format("{}={}/{}", printable(key), throttle.rate, throttle.burst));
  }
  out += "now\n";
  line("ready", format_count(stats.ready));
  line("leased", format_count(stats.leased));
  line("delayed", format_count(stats.delayed));
  line("bytes", format_bytes(stats.bytes));
  line("active keys", format_count(stats.active_keys));
  line("consumers", format_count(stats.consumers));
  line("outgoing", format_count(stats.outgoing));
  line("dedup ids", format_count(stats.dedup_ids));
  out += "since the broker started\n";
  line("enqueued", format_count(stats.enqueued_total));
  line("delivered", format_count(stats.delivered_total));
  line("acked", format_count(stats.acked_total));
  line("nacked", format_count(stats.nacked_total));
  line("leases expired", format_count(stats.lease_expired_total));
  line("dead-lettered", format_count(stats.dead_lettered_total));
  line("dropped", format_count(stats.dropped_total));
  out += fmt::format("  {:<22}{}", "deduplicated", format_count(stats.deduplicated_total));
  return out;
}

std::string describe(const client::LeasedMessage& message) {
  return fmt::format("{}  attempt {}{}  {}{}", message.id, message.attempt,
                     key_text(message.fairness_key), counted(message.payload.size(), "byte"),
                     describe_body(message.headers, message.payload));
}

std::string describe(const client::PeekedMessage& message) {
  std::string state(state_word(message.state));
  if (!message.consumer_id.empty()) state += " by " + printable(message.consumer_id);
  if (message.attempts > 0) state += ", failed " + counted(message.attempts, "time");
  return fmt::format("{}  {}{}  {}{}", message.id, state, key_text(message.fairness_key),
                     counted(message.payload.size(), "byte"),
                     describe_body(message.headers, message.payload));
}

std::string format_table(const std::vector<std::vector<std::string>>& rows) {
  const std::vector<Column> columns = columns_of(rows);
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (c > 0) line += "  ";
      const std::string padding(columns[c].width - visible_width(row[c]), ' ');
      line += columns[c].number ? padding + row[c] : row[c] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    if (&row == &rows.front()) line = paint(Tone::head, line);
    if (!out.empty()) out.push_back('\n');
    out += line;
  }
  return out;
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 4> kUnits{"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  // "1 MiB" if it is exact, "1.5 MiB" if not.
  const std::string number = fmt::format("{:.1f}", value);
  return fmt::format("{} {}", number.ends_with(".0") ? number.substr(0, number.size() - 2) : number,
                     kUnits.at(unit));
}

std::string format_count(std::uint64_t count) {
  std::string digits = fmt::format("{}", count);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ' ');
  return digits;
}

std::string counted(std::uint64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", format_count(count), thing, count == 1 ? "" : "s");
}

bool is_utf8(std::string_view bytes) {
  // nlohmann checks as strictly as RFC 3629 asks: no overlong forms, no surrogates.
  try {
    (void)nlohmann::json(bytes).dump();
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

void put_bytes(Json& out, const std::string& name, std::string_view bytes) {
  if (is_utf8(bytes)) {
    out[name] = bytes;
  } else {
    out[name + "_base64"] = base64(bytes);
  }
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool control = (byte < ' ' && c != '\t') || byte == 0x7f;
    if (control) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out.push_back(c);
    }
  }
  return out;
}

}  // namespace baton::cli
