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
};

/// Where the setting `path` was given, or else the first of what it holds; null if it was not.
const PipelineConfig::Given* find_given(const PipelineConfig& config, std::string_view path);

/// That what stands at `path`, or should, is wrong: "config.yaml:12: PATH: why", with the line of
/// what is nearest to it, or the variable that sets it.
Error wrong_at(const PipelineConfig& config, std::string_view path, std::string_view why);

/// The same error, of what stands at `path`: with the place in front.
Error with_place(const PipelineConfig& config, std::string_view path, const Error& error);

/// What the client library of the dead letters is told. Servers that ask for credentials ask both
/// times: they are the source's, if that is at the same address.
Properties letter_properties(const PipelineConfig& config);

/// Fails when `value`, of the setting `path`, is empty.
Status need(const PipelineConfig& config, const std::string& value, std::string_view path,
            std::string_view because);

}  // namespace baton::pipeline
