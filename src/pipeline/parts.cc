#include "pipeline/parts.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "pipeline/example.h"
#include "schema/json_schema.h"
#include "schema/orders.h"
#include "sink/file_dead_letters.h"
#include "sink/http_sink.h"
#include "sink/queue_dead_letters.h"
#include "sink/sqlite_sink.h"
#include "sink/stdout_sink.h"
#include "source/queue_source.h"
#include "source/stream_source.h"

namespace baton::pipeline {
namespace {

constexpr std::chrono::seconds kBrokerDeadline{5};

client::ConnectionOptions connection_to(const Endpoint& endpoint) {
  client::ConnectionOptions connection;
  connection.address = endpoint.address;
  connection.deadline = kBrokerDeadline;
  return connection;
}

Result<std::string> read_schema(const std::string& path) {
  if (path == kOrderSchema) return std::string(schema::order_schema());
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad()) {
    return Error{Errc::not_found, fmt::format("schema: {} cannot be read", path)};
  }
  return text;
}

Result<std::optional<schema::Schema>> load_schema(const PipelineConfig& config) {
  if (config.schema_file.empty()) return std::nullopt;
  BATON_TRY(const std::string text, read_schema(config.schema_file));
  auto schema = schema::Schema::compile(text);
  if (!schema.has_value()) {
    return Error{Errc::invalid_argument,
                 fmt::format("schema: {}: {}", config.schema_file, schema.error().text)};
  }
  return *std::move(schema);
}

Result<std::unique_ptr<Sink>> make_sql_sink(const PipelineConfig& config, const std::string& source,
                                            schema::Schema schema) {
  BATON_TRY(schema::Mapping mapping, schema::Mapping::compile(config.rows));
  SqliteSinkOptions options{.path = config.sink.endpoint.name,
                            .pipeline = config.name,
                            .source = source,
                            .lanes = config.engine.lanes,
                            .exactly_once = config.engine.exactly_once,
                            .document_bytes_max = config.record_bytes_max};
  return std::make_unique<SqliteSink>(std::move(options), std::move(schema), std::move(mapping));
}

}  // namespace

Result<std::unique_ptr<Source>> make_source(const PipelineConfig& config) {
  const Endpoint& from = config.source.endpoint;
  if (from.kind == "baton-queue") {
    QueueSourceOptions options;
    options.connection = connection_to(from);
    options.queue = from.name;
    return std::make_unique<QueueSource>(std::move(options));
  }
  StreamSourceOptions options;
  options.connection = connection_to(from);
  options.stream = from.name;
  options.group = config.source.group;
  if (config.source.from == "next") options.from = client::StartFrom::next();
  return std::make_unique<StreamSource>(std::move(options));
}

Result<std::unique_ptr<Sink>> make_sink(const PipelineConfig& config, const std::string& source) {
  BATON_TRY(std::optional<schema::Schema> schema, load_schema(config));
  const Endpoint& to = config.sink.endpoint;
  if (config.is_sql()) return make_sql_sink(config, source, *std::move(schema));
  if (to.kind == "http") {
    BATON_TRY(std::unique_ptr<Sink> sink,
              HttpSink::open({.url = to.url,
                              .headers = config.sink.headers,
                              .timeout = config.sink.timeout,
                              .pipeline = config.name,
                              .source = source,
                              .schema = std::move(schema),
                              .document_bytes_max = config.record_bytes_max}));
    return sink;
  }
  return std::make_unique<StdoutSink>(StdoutSinkOptions{
      .schema = std::move(schema), .document_bytes_max = config.record_bytes_max});
}

Result<std::unique_ptr<DeadLetterTarget>> open_dead_letters(const PipelineConfig& config) {
  const Endpoint& to = config.dead_letters.endpoint;
  if (to.kind == "file") {
    BATON_TRY(std::unique_ptr<DeadLetterTarget> target, FileDeadLetters::open(to.name));
    return target;
  }
  BATON_TRY(std::unique_ptr<DeadLetterTarget> target,
            QueueDeadLetters::open({.connection = connection_to(to), .queue = to.name}));
  return target;
}

}  // namespace baton::pipeline
