#include "cli/server/config.h"

#include <algorithm>
#include <array>
#include <exception>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "base/net/listen.h"
#include "base/parse.h"
#include "base/result.h"
#include "base/yaml_hint.h"
#include "cli/base/parse.h"

namespace baton::cli {
namespace {

constexpr std::uint64_t kShardsMax = 256;
constexpr Milliseconds kKeepaliveMin{100};
// Twice the broker's session lease: a shorter one would give a seat away before its consumer knows.
constexpr Milliseconds kKeepaliveTimeoutMin{10'000};
constexpr Milliseconds kKeepaliveMax{3'600'000};
constexpr Milliseconds kCheckpointMin{100};
constexpr Milliseconds kCheckpointMax{3'600'000};
constexpr Milliseconds kStopTimeoutMax{3'600'000};
constexpr std::uint64_t kRequestBytesMin = 64 * limits::kKiB;
constexpr std::uint64_t kRequestBytesMax = 256 * limits::kMiB;

Status set_fsync(ServerConfig& config, std::string_view text) {
  const Result<FsyncMode> mode = parse_fsync_mode(text);
  if (!mode) {
    return invalid_argument(fmt::format(
        "'{}' is not one of always, never, interval:MS with 1 to 60000", text.substr(0, 64)));
  }
  config.fsync = *mode;
  return {};
}

Status set_listen(ServerConfig& config, std::string_view text) {
  BATON_TRY_STATUS(parse_listen(text));
  return set_text(config.api.listen, text);
}

Status set_http(ServerConfig& config, std::string_view text) {
  if (text == "off") {
    config.api.http_listen.clear();
    return {};
  }
  BATON_TRY_STATUS(parse_listen(text));
  return set_text(config.api.http_listen, text);
}

Status set_shards(ServerConfig& config, std::string_view text) {
  BATON_TRY(config.shards, parse_number(text, 1, kShardsMax));
  return {};
}

Status set_checkpoint_interval(ServerConfig& config, std::string_view text) {
  BATON_TRY(config.checkpoint_interval, parse_milliseconds(text, kCheckpointMin, kCheckpointMax));
  return {};
}

Status set_keepalive_time(ServerConfig& config, std::string_view text) {
  BATON_TRY(config.api.keepalive_time, parse_milliseconds(text, kKeepaliveMin, kKeepaliveMax));
  return {};
}

Status set_keepalive_timeout(ServerConfig& config, std::string_view text) {
  BATON_TRY(config.api.keepalive_timeout,
            parse_milliseconds(text, kKeepaliveTimeoutMin, kKeepaliveMax));
  return {};
}

Status set_request_max(ServerConfig& config, std::string_view text) {
  BATON_TRY(const std::uint64_t bytes, parse_size(text));
  if (bytes < kRequestBytesMin || bytes > kRequestBytesMax) {
    return invalid_argument(fmt::format("'{}' is not from 64KiB to 256MiB", text.substr(0, 64)));
  }
  config.api.message_bytes_max = bytes;
  return {};
}

Status set_connections_max(ServerConfig& config, std::string_view text) {
  BATON_TRY(config.connections_max,
            parse_number(text, limits::kConnectionsMin, limits::kConnectionsMax));
  return {};
}

Status set_log_level(ServerConfig& config, std::string_view text) {
  constexpr std::array<std::string_view, 4> kNames{"debug", "info", "warning", "error"};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (text != kNames[i]) continue;
    config.log_level = static_cast<LogLevel>(i);
    return {};
  }
  return invalid_argument(
      fmt::format("'{}' is not one of debug, info, warning, error", text.substr(0, 64)));
}

Status set_stop_timeout(ServerConfig& config, std::string_view text) {
  BATON_TRY(config.stop_timeout, parse_milliseconds(text, Milliseconds{0}, kStopTimeoutMax));
  return {};
}

template <auto Member>
Status set_bool(ServerConfig& config, std::string_view text) {
  BATON_TRY(Member(config), parse_bool(text));
  return {};
}

constexpr std::array kSettings = std::to_array<Setting>({
    {"data", "DIR", "The data folder; created when it does not exist.",
     [](ServerConfig& config, std::string_view text) { return set_text(config.data, text); }},
    {"listen", "HOST:PORT", "Where to serve gRPC [127.0.0.1:7470]; port 0 takes a free one.",
     set_listen},
    {"http", "HOST:PORT",
     "Where to serve /metrics, /healthz and /readyz [127.0.0.1:7471], or 'off'.", set_http},
    {"fsync", "MODE",
     "When changes reach the disk: always (before each is confirmed) [default], interval:MS or "
     "never.",
     set_fsync},
    {"shards", "N",
     "Threads that own queues and streams, 1 to 256 [half the cores]. Cannot be changed once the "
     "data folder exists.",
     set_shards},
    {"cluster", "URL",
     "Keep the shards' logs on these NATS servers, nats://HOST:PORT,HOST:PORT, instead of in the "
     "data folder; see 'baton cluster init'.",
     [](ServerConfig& config, std::string_view text) { return set_text(config.cluster, text); }},
    {"join", "NAME", "The name of the cluster [baton].",
     [](ServerConfig& config, std::string_view text) { return set_text(config.join, text); }},
    {"node", "NAME", "The name of this node in the cluster: 1 to 32 of a-z, 0-9 and '-'.",
     [](ServerConfig& config, std::string_view text) { return set_text(config.node, text); }},
    {"insecure", "", "Allow connections without TLS from other machines.",
     set_bool<[](ServerConfig& config) -> bool& { return config.api.insecure; }>},
    {"tls-cert", "FILE", "Serve TLS with this certificate (PEM); goes with --tls-key.",
     [](ServerConfig& config, std::string_view text) {
       return set_text(config.api.tls_cert, text);
     }},
    {"tls-key", "FILE", "The certificate's private key (PEM).",
     [](ServerConfig& config, std::string_view text) {
       return set_text(config.api.tls_key, text);
     }},
    {"tls-ca", "FILE", "Clients must show a certificate signed by this authority (PEM).",
     [](ServerConfig& config, std::string_view text) { return set_text(config.api.tls_ca, text); }},
    {"keepalive-time", "DURATION", "Ping a connection that was silent for this long [2s].",
     set_keepalive_time},
    {"keepalive-timeout", "DURATION",
     "Close the connection when the answer to a ping takes longer, at least 10s [10s].",
     set_keepalive_timeout},
    {"connections-max", "N",
     "Connections taken at most [10000, but no more than half of the descriptors allowed].",
     set_connections_max},
    {"request-max", "SIZE", "The largest request, 64KiB to 256MiB [32MiB].", set_request_max},
    {"checkpoint-interval", "DURATION", "The longest time between two checkpoints [60s].",
     set_checkpoint_interval},
    {"stop-timeout", "DURATION", "How long a stop may take before the process ends anyway [10s].",
     set_stop_timeout},
    {"log-level", "LEVEL", "What to log: debug, info [default], warning or error.", set_log_level},
    {"log-json", "", "Log JSON instead of key=value.",
     set_bool<[](ServerConfig& config) -> bool& { return config.log_json; }>},
    {"ready-file", "FILE",
     "Write 'GRPC_PORT HTTP_PORT PID' to this file when ready; removed at the end.",
     [](ServerConfig& config, std::string_view text) { return set_text(config.ready_file, text); }},
});

const Setting* find_setting(std::string_view name) {
  for (const Setting& setting : kSettings) {
    if (setting.name == name) return &setting;
  }
  return nullptr;
}

/// A key and its value, with their position.
struct Entry {
  std::string key;
  int key_line = 0;
  std::string value;
  int value_line = 0;
  bool scalar = false;
};

Error at_line(std::string_view name, int line, std::string_view why) {
  return invalid_argument(fmt::format("{}:{}: {}", name, line, why));
}

/// The entries of the one document in `text`. All calls of yaml-cpp are in here, because it throws.
Result<std::vector<Entry>> read_entries(std::string_view text, std::string_view name) {
  std::vector<Entry> entries;
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.size() > 1)
      return invalid_argument(fmt::format("{}: holds more than one document", name));
    if (documents.empty() || documents[0].IsNull()) return entries;
    const YAML::Node& root = documents[0];
    if (!root.IsMap()) {
      return at_line(name, root.Mark().line + 1, "is not a list of 'name: value' lines");
    }
    for (const auto& item : root) {
      Entry entry;
      entry.key = item.first.IsScalar() ? item.first.Scalar() : std::string();
      entry.key_line = item.first.Mark().line + 1;
      entry.scalar = item.second.IsScalar();
      entry.value = entry.scalar ? item.second.Scalar() : std::string();
      entry.value_line = item.second.Mark().line + 1;
      entries.push_back(std::move(entry));
    }
  } catch (const YAML::Exception& problem) {
    return at_line(name, problem.mark.line + 1,
                   explain_yaml(text, problem.mark.line + 1, problem.msg));
  } catch (const std::exception& problem) {
    return invalid_argument(fmt::format("{}: cannot be read: {}", name, problem.what()));
  }
  return entries;
}

Status apply_entry(ServerConfig& config, const Entry& entry, std::string_view name) {
  const Setting* setting = find_setting(entry.key);
  if (setting == nullptr) {
    std::string known;
    for (const Setting& each : kSettings) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", each.name);
    }
    return at_line(
        name, entry.key_line,
        fmt::format("there is no setting '{}'; there are {}", entry.key.substr(0, 64), known));
  }
  if (!entry.scalar) {
    return at_line(name, entry.key_line, fmt::format("{}: is not a single value", setting->name));
  }
  const Status status = setting->set(config, entry.value);
  if (status) {
    config.given.insert_or_assign(entry.key, entry.value);
    return {};
  }
  return at_line(name, entry.value_line, fmt::format("{}: {}", setting->name, status.error().text));
}

}  // namespace

std::span<const Setting> server_settings() { return kSettings; }

std::vector<std::string> needs_restart(const ServerConfig& running, const ServerConfig& wanted) {
  std::vector<std::string> out;
  for (const Setting& setting : kSettings) {
    if (setting.name == "log-level") continue;
    const auto old_one = running.given.find(setting.name);
    const auto new_one = wanted.given.find(setting.name);
    const bool had = old_one != running.given.end();
    const bool has = new_one != wanted.given.end();
    // Other files are fine; whether there are files at all is decided at the start.
    if (setting.name.starts_with("tls-") && had == has) continue;
    if (had == has && (!had || old_one->second == new_one->second)) continue;
    out.emplace_back(setting.name);
  }
  return out;
}

Status apply_config(ServerConfig& config, std::string_view text, std::string_view name) {
  if (text.size() > kConfigBytesMax) {
    return invalid_argument(fmt::format("{}: is larger than {} bytes", name, kConfigBytesMax));
  }
  BATON_TRY(const std::vector<Entry> entries, read_entries(text, name));
  std::set<std::string_view> seen;
  for (const Entry& entry : entries) {
    if (!seen.insert(entry.key).second) {
      return at_line(name, entry.key_line, fmt::format("{}: is there twice", entry.key));
    }
    BATON_TRY_STATUS(apply_entry(config, entry, name));
  }
  return {};
}

Result<ServerConfig> parse_config(std::string_view text, std::string_view name) {
  ServerConfig config;
  BATON_TRY_STATUS(apply_config(config, text, name));
  return config;
}

}  // namespace baton::cli
