#include "cli/broker/kv_output.h"

#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/broker/stream_output.h"

namespace baton::cli {
namespace {

using client::KvWatchEvent;
using Rows = std::vector<std::vector<std::string>>;

// People see the beginning of a value in a list; `kv get` shows all of it.
constexpr std::size_t kValueShown = 60;

std::string_view event_name(KvWatchEvent::Kind kind) {
  switch (kind) {
    case KvWatchEvent::Kind::put: return "put";
    case KvWatchEvent::Kind::removed: return "removed";
    case KvWatchEvent::Kind::expired: return "expired";
    case KvWatchEvent::Kind::snapshot_end: return "snapshot_end";
    case KvWatchEvent::Kind::compacted: return "compacted";
    case KvWatchEvent::Kind::session_lost: return "session_lost";
    case KvWatchEvent::Kind::disconnected: return "disconnected";
    case KvWatchEvent::Kind::ended: return "ended";
  }
  return "unknown";
}

Json settings_json(const client::BucketSettings& settings) {
  Json out = Json::object();
  if (settings.value_bytes_max) out["value_bytes_max"] = *settings.value_bytes_max;
  if (settings.keys_max) out["keys_max"] = *settings.keys_max;
  if (settings.history_changes_max) out["history_changes_max"] = *settings.history_changes_max;
  if (settings.history_bytes_max) out["history_bytes_max"] = *settings.history_bytes_max;
  return out;
}

/// For one line of a terminal.
std::string value_text(const std::string& value) {
  if (!is_utf8(value)) return fmt::format("({} bytes)", value.size());
  if (value.size() <= kValueShown) return printable(value);
  std::size_t end = kValueShown;
  while (end > 0 && (static_cast<unsigned char>(value[end]) & 0xc0U) == 0x80U) --end;
  return printable(value.substr(0, end)) + "...";
}

std::string expiry_text(const client::KvEntry& entry) {
  return entry.expires_at ? format_time(*entry.expires_at) : "-";
}

bool is_change(KvWatchEvent::Kind kind) {
  return kind == KvWatchEvent::Kind::put || kind == KvWatchEvent::Kind::removed ||
         kind == KvWatchEvent::Kind::expired;
}

}  // namespace

Json to_json(const client::BucketInfo& bucket) {
  return {{"name", bucket.name},
          {"id", bucket.id},
          {"settings", settings_json(bucket.settings)},
          {"created_at_ns", bucket.created_at.time_since_epoch().count()},
          {"revision", bucket.revision},
          {"history_floor", bucket.history_floor},
          {"keys", bucket.keys},
          {"bytes", bucket.bytes},
          {"watches", bucket.watches}};
}

Json to_json(const client::KvEntry& entry) {
  Json out{{"key", entry.key}};
  put_bytes(out, "value", entry.value);
  out["revision"] = entry.revision;
  out["created_revision"] = entry.created_revision;
  out["version"] = entry.version;
  if (entry.expires_at) out["expires_at_ns"] = entry.expires_at->time_since_epoch().count();
  return out;
}

Json to_json(const client::KvOutcome& outcome, bool removal) {
  Json out{{"revision", outcome.revision}};
  if (removal) out["deleted"] = outcome.done && !outcome.unchanged;
  if (outcome.error) out["error"] = to_json(*outcome.error);
  if (outcome.current) out["current"] = to_json(*outcome.current);
  return out;
}

Json to_json(const KvWatchEvent& event) {
  Json out{{"event", event_name(event.kind)}};
  if (is_change(event.kind)) {
    if (event.in_snapshot) out["in_snapshot"] = true;
    out.update(to_json(event.entry));
    if (event.kind != KvWatchEvent::Kind::put) out.erase("value");
  } else if (event.kind == KvWatchEvent::Kind::session_lost) {
    out["key"] = event.entry.key;
    out["revision"] = event.entry.revision;
  } else if (event.kind == KvWatchEvent::Kind::snapshot_end) {
    out["revision"] = event.revision;
  } else if (event.kind == KvWatchEvent::Kind::disconnected) {
    out["error"] = to_json(event.error);
  }
  return out;
}

std::string describe(const client::BucketInfo& bucket) {
  std::string out = fmt::format("{}  (id {})", printable(bucket.name), bucket.id);
  const auto line = [&out](std::string_view name, std::string_view value) {
    out += fmt::format("\n  {:<16}{}", name, value);
  };
  line("keys", fmt::format("{} of {}", format_count(bucket.keys),
                           format_count(bucket.settings.keys_max.value_or(0))));
  line("bytes", format_bytes(bucket.bytes));
  line("revision", fmt::format("{}", bucket.revision));
  line("resume after", fmt::format("{} or later", bucket.history_floor));
  line("watches", format_count(bucket.watches));
  line("value max", format_bytes(bucket.settings.value_bytes_max.value_or(0)));
  line("history",
       fmt::format("{} changes, {}", format_count(bucket.settings.history_changes_max.value_or(0)),
                   format_bytes(bucket.settings.history_bytes_max.value_or(0))));
  line("created", format_time(bucket.created_at));
  return out;
}

std::string terminal_text(std::string_view value) {
  if (!is_utf8(value)) {
    return fmt::format("({} that are not text; --raw writes them as they are)",
                       counted(value.size(), "byte"));
  }
  std::string out;
  while (true) {
    const auto end = value.find('\n');
    out += printable(value.substr(0, end));
    if (end == std::string_view::npos) return out;
    out.push_back('\n');
    value.remove_prefix(end + 1);
  }
}

std::string list_text(const std::vector<client::BucketInfo>& buckets) {
  if (buckets.empty()) return "no buckets";
  Rows rows{{"NAME", "KEYS", "BYTES", "REVISION", "WATCHES"}};
  for (const auto& bucket : buckets) {
    rows.push_back({bucket.name, format_count(bucket.keys), format_bytes(bucket.bytes),
                    fmt::format("{}", bucket.revision), format_count(bucket.watches)});
  }
  return format_table(rows);
}

std::string list_text(const std::vector<client::KvEntry>& entries) {
  if (entries.empty()) return "no keys";
  Rows rows{{"KEY", "REVISION", "EXPIRES", "VALUE"}};
  for (const auto& entry : entries) {
    rows.push_back({printable(entry.key), fmt::format("{}", entry.revision), expiry_text(entry),
                    value_text(entry.value)});
  }
  return format_table(rows);
}

std::string describe(const KvWatchEvent& event) {
  switch (event.kind) {
    case KvWatchEvent::Kind::put:
      return fmt::format("{}@{}  {}{}", printable(event.entry.key), event.entry.revision,
                         value_text(event.entry.value),
                         event.entry.expires_at ? "  until " + expiry_text(event.entry) : "");
    case KvWatchEvent::Kind::removed:
    case KvWatchEvent::Kind::expired:
      return fmt::format("{}@{}  {}", printable(event.entry.key), event.entry.revision,
                         event_name(event.kind));
    case KvWatchEvent::Kind::snapshot_end:
      return fmt::format("-- that was all at revision {}; from here on: changes", event.revision);
    case KvWatchEvent::Kind::compacted: return "-- some changes are lost; everything again:";
    case KvWatchEvent::Kind::session_lost:
      return fmt::format("{}@{}  session lost", printable(event.entry.key), event.entry.revision);
    case KvWatchEvent::Kind::disconnected:
    case KvWatchEvent::Kind::ended: return fmt::format("-- {}", reason(event.error));
  }
  return "-- something that this version does not know";
}

}  // namespace baton::cli
