#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/secure/settings.h"
#include "pipeline/ends/endpoint.h"
#include "pipeline/engine/engine.h"
#include "pipeline/schema/mapping.h"

namespace baton::pipeline {

/// All settings of a pipeline.
struct PipelineConfig {
  std::string name{};
  EngineOptions engine{};
  std::string http = "127.0.0.1:7472";  // Or "off".
  std::string id{};  // kafka: a name for this process, which keeps its partitions across a restart.

  struct Source {
    Endpoint endpoint{};
    std::string group{};           // Empty: the pipeline's name.
    std::string from{};            // first, next; empty: the source's default.
    std::uint32_t partitions = 0;  // nats.
    Duration session_timeout = std::chrono::seconds(10);  // kafka.
    Properties properties{};                              // kafka: librdkafka's.
    secure::Settings security{};
  } source{};

  std::string schema_file{};
  std::size_t record_bytes_max = std::size_t{1} << 20U;

  struct Sink {
    Endpoint endpoint{};
    Duration timeout = std::chrono::seconds(30);  // Of one statement or request.
    Properties headers{};                         // http.
  } sink{};
  schema::RowMapping rows{};

  struct DeadLetters {
    Endpoint endpoint{};
    std::uint32_t redrives_max = 3;
    secure::Settings security{};  // If not given, on the source's servers: the source's settings.
  } dead_letters{};

  /// A value and where it was given: in a line of the file, or by a variable.
  struct Given {
    std::string value{};
    int line = 0;
    std::string variable{};
  };
  std::map<std::string, Given> given{};  // By path.
  std::string file{};                    // The name that errors show.
};

/// Where the setting `path`, or the first setting below it, was given; null if none was.
const PipelineConfig::Given* find_given(const PipelineConfig& config, std::string_view path);

/// An error about `path`: "config.yaml:12: PATH: why", with the nearest line, or the variable that
/// sets it.
Error wrong_at(const PipelineConfig& config, std::string_view path, std::string_view why);

/// The same error with the place of `path` in front.
Error with_place(const PipelineConfig& config, std::string_view path, const Error& error);

/// Properties for the client library of the dead letters. If the letters are at the source's
/// address, the source's properties apply, because the same servers ask for the same credentials.
Properties letter_properties(const PipelineConfig& config);

/// Fails if `value`, of the setting `path`, is empty.
Status need(const PipelineConfig& config, const std::string& value, std::string_view path,
            std::string_view because);

}  // namespace baton::pipeline
