#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/secure/settings.h"
#include "pipeline/app/endpoint.h"
#include "pipeline/engine/engine.h"
#include "pipeline/schema/mapping.h"

namespace baton::pipeline {

/// Everything that can be said about a pipeline.
struct PipelineConfig {
  std::string name{};
  EngineOptions engine{};
  std::string http = "127.0.0.1:7472";  // Or "off".
  std::string id{};  // kafka: of this process, which has its partitions back after a restart.

  struct Source {
    Endpoint endpoint{};
    std::string group{};           // Empty: the pipeline's name.
    std::string from{};            // first, next; empty: what is usual for the source.
    std::uint32_t partitions = 0;  // nats.
    Duration session_timeout = std::chrono::seconds(10);            // kafka.
    std::vector<std::pair<std::string, std::string>> properties{};  // kafka: librdkafka's.
    secure::Settings security{};
  } source{};

  std::string schema_file{};
  std::size_t record_bytes_max = std::size_t{1} << 20U;

  struct Sink {
    Endpoint endpoint{};
    Duration timeout = std::chrono::seconds(30);                 // Of one statement or request.
    std::vector<std::pair<std::string, std::string>> headers{};  // http.
  } sink{};
  schema::RowMapping rows{};

  struct DeadLetters {
    Endpoint endpoint{};
    std::uint32_t redrives_max = 3;
    secure::Settings security{};  // Nothing given, on the source's servers: as the source.
  } dead_letters{};

  /// A value as it was given: in a line of the file, or by a variable.
  struct Given {
    std::string value{};
    int line = 0;
    std::string variable{};
  };
  std::map<std::string, Given> given{};  // By path.
  std::string file{};                    // As errors name it.

  /// Whether records become rows of tables.
  [[nodiscard]] bool is_sql() const {
    return sink.endpoint.kind == "sqlite" || sink.endpoint.kind == "postgres";
  }
};

/// Reads YAML, lays `environment` over it (BATON_PIPELINE__SINK__URL is sink.url; other names are
/// passed over), and checks that all of it fits together. Pure. Errors name the file and line, or
/// the variable.
Result<PipelineConfig> parse_config(std::string_view text, std::string_view name,
                                    const std::map<std::string, std::string>& environment);

/// Sets `id`, over the config's: letters, digits and . _ -. Fails for a source without members.
Status set_id(PipelineConfig& config, std::string_view id);

/// Paths in a config begin at its file's folder, wherever a command is given.
void resolve_paths(PipelineConfig& config, const std::string& folder);

/// Reads what TLS and logins need from the files that the config names. Errors name the setting.
Status load_security(PipelineConfig& config, const secure::Environment& environment);

/// What a running pipeline can take over; the error names what it cannot.
Status check_reload(const PipelineConfig& running, const PipelineConfig& fresh);

}  // namespace baton::pipeline
