#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/logging/log.h"
#include "base/result.h"
#include "server/app/server.h"
#include "server/shard/broker.h"

namespace baton::cli {

inline constexpr std::size_t kConfigBytesMax = limits::kMiB;

/// Everything that flags or a config file can set for a server.
struct ServerConfig {
  std::string data;
  ServerOptions api;
  std::size_t connections_max = 0;  // 0 = the default, or fewer if there are too few descriptors.
  FsyncMode fsync;
  std::size_t shards = 0;  // For a new data folder; 0 = half the cores.
  std::string cluster;     // The URL of the engine that has the shards' logs; empty: none.
  std::string join = "baton";
  std::string node;
  Duration checkpoint_interval = limits::kCheckpointInterval;
  LogLevel log_level = LogLevel::info;
  bool log_json = false;
  std::chrono::milliseconds stop_timeout{10'000};
  std::string ready_file;
  // The values as given, by name: a reload compares them.
  std::map<std::string, std::string, std::less<>> given;
};

/// One line of a config file, which is also one flag: the names are the same.
struct Setting {
  std::string_view name;
  std::string_view value;  // What the help calls its value; empty for a switch.
  std::string_view help;
  /// Reads a value. An error says what is allowed, and leaves the config unchanged.
  Status (*set)(ServerConfig& config, std::string_view text);
};
std::span<const Setting> server_settings();

/// Settings that differ and that a running broker cannot change. Pure.
std::vector<std::string> needs_restart(const ServerConfig& running, const ServerConfig& wanted);

/// Applies the settings in `text`, which is YAML, to `config`. Pure. `name` is the file's, for
/// errors: "config.yaml:3: shards: 'many' is not a whole number from 1 to 256".
Status apply_config(ServerConfig& config, std::string_view text, std::string_view name);
/// The same, starting from the defaults.
Result<ServerConfig> parse_config(std::string_view text, std::string_view name);

}  // namespace baton::cli
