#include "pipeline/app/parts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include <baton/queue_client.h>

#include "pipeline/app/config_check.h"
#include "pipeline/app/dead_letter_stores.h"
#include "pipeline/app/example.h"
#include "pipeline/kafka/kafka_dead_letters.h"
#include "pipeline/kafka/kafka_source.h"
#include "pipeline/schema/json_schema.h"
#include "pipeline/schema/orders.h"
#include "pipeline/sinks/file_dead_letters.h"
#include "pipeline/sinks/http_sink.h"
#include "pipeline/sinks/postgres_sink.h"
#include "pipeline/sinks/queue_dead_letters.h"
#include "pipeline/sinks/sqlite_sink.h"
#include "pipeline/sinks/stdout_sink.h"
#include "pipeline/sources/client_errors.h"
#include "pipeline/sources/nats_source.h"
#include "pipeline/sources/queue_source.h"
#include "pipeline/sources/stream_source.h"

namespace baton::pipeline {
namespace {

constexpr std::chrono::seconds kBrokerDeadline{5};

client::ConnectionOptions hasty_connection_to(const Endpoint& endpoint) {
  client::ConnectionOptions connection = connection_to(endpoint);
  connection.deadline = kBrokerDeadline;
  return connection;
}

Result<std::optional<schema::Schema>> compile_schema(const PipelineConfig& config,
                                                     const std::string& text) {
  if (config.schema_file.empty()) return std::nullopt;
  auto schema = schema::Schema::compile(text);
  if (!schema.has_value()) {
    return wrong_at(config, "schema",
                    fmt::format("{}: {}", config.schema_file, schema.error().text));
  }
  return *std::move(schema);
}

Result<std::unique_ptr<Sink>> make_sql_sink(const PipelineConfig& config, const std::string& source,
                                            schema::Schema schema) {
  BATON_TRY(schema::Mapping mapping, schema::Mapping::compile(config.rows));
  std::string part;
  const Status possible = mapping.check(schema, &part);
  if (!possible.has_value()) return wrong_at(config, part, possible.error().text);
  const Endpoint& to = config.sink.endpoint;
  if (to.kind == "postgres") {
    return std::make_unique<PostgresSink>(
        PostgresSinkOptions{.url = to.url,
                            .pipeline = config.name,
                            .source = source,
                            .lanes = config.engine.lanes,
                            .by_partition = config.engine.order == Order::partition,
                            .exactly_once = config.engine.exactly_once,
                            .statement_timeout = config.sink.timeout,
                            .document_bytes_max = config.record_bytes_max},
        std::move(schema), std::move(mapping));
  }
  return std::make_unique<SqliteSink>(
      SqliteSinkOptions{.path = to.name,
                        .pipeline = config.name,
                        .source = source,
                        .lanes = config.engine.lanes,
                        .by_partition = config.engine.order == Order::partition,
                        .exactly_once = config.engine.exactly_once,
                        .document_bytes_max = config.record_bytes_max},
      std::move(schema), std::move(mapping));
}

std::unique_ptr<Source> make_stream_source(const PipelineConfig& config) {
  StreamSourceOptions options;
  options.connection = hasty_connection_to(config.source.endpoint);
  options.stream = config.source.endpoint.name;
  options.group = config.source.group;
  if (config.source.from == "next") options.from = client::StartFrom::next();
  return std::make_unique<StreamSource>(std::move(options));
}

std::unique_ptr<Source> make_queue_source(const PipelineConfig& config) {
  QueueSourceOptions options;
  options.connection = hasty_connection_to(config.source.endpoint);
  options.queue = config.source.endpoint.name;
  options.log = config.engine.log;
  return std::make_unique<QueueSource>(std::move(options));
}

std::unique_ptr<Source> make_kafka_source(const PipelineConfig& config) {
  KafkaSourceOptions options;
  options.brokers = config.source.endpoint.address;
  options.topic = config.source.endpoint.name;
  options.group = config.source.group;
  if (!config.source.from.empty()) options.from = config.source.from;
  options.properties = config.source.properties;
  options.security = config.source.endpoint.security;
  options.session_timeout = config.source.session_timeout;
  options.instance = config.id;
  options.drain = config.engine.drain;
  options.log = config.engine.log;
  return std::make_unique<KafkaSource>(std::move(options));
}

Result<std::unique_ptr<Source>> make_nats_source(const PipelineConfig& config) {
  const std::string& name = config.source.endpoint.name;
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos) {
    return Error{Errc::invalid_argument,
                 fmt::format("source.url: {} has no SUBJECT behind the stream's name",
                             config.source.endpoint.url)};
  }
  NatsSourceOptions options;
  options.servers = config.source.endpoint.address;
  options.security = config.source.endpoint.security;
  options.stream = name.substr(0, slash);
  options.subject = name.substr(slash + 1);
  options.partitions = config.source.partitions;
  options.group = config.source.group;
  options.from_next = config.source.from == "next";
  options.log = config.engine.log;
  return std::make_unique<NatsSource>(std::move(options));
}

Result<bool> has_queue(const Endpoint& endpoint) {
  auto client = client::QueueClient::connect(hasty_connection_to(endpoint));
  if (!client.has_value()) return from_client(client.error());
  const auto queue = client->describe_queue(endpoint.name);
  if (queue.has_value()) return true;
  if (queue.error().code == client::Code::queue_not_found) return false;
  return from_client(connection_to(endpoint), queue.error());
}

KafkaDeadLetterOptions letter_topic(const PipelineConfig& config) {
  const Endpoint& to = config.dead_letters.endpoint;
  return {.brokers = to.address,
          .topic = to.name,
          .properties = letter_properties(to, config.source.endpoint, config.source.properties),
          .security = to.security};
}

Result<bool> has_file(const std::filesystem::path& path) {
  std::error_code unknown;  // Then it is as if it were not there.
  if (std::filesystem::exists(path, unknown)) return true;
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (::access(folder.c_str(), W_OK) == 0) return false;
  return Error{Errc::failed_precondition, fmt::format("cannot create {}: {}", path.string(),
                                                      std::generic_category().message(errno))};
}

}  // namespace

Result<std::unique_ptr<Source>> make_source(const PipelineConfig& config) {
  const std::string& kind = config.source.endpoint.kind;
  if (kind == "baton-queue") return make_queue_source(config);
  if (kind == "kafka") return make_kafka_source(config);
  if (kind == "nats") return make_nats_source(config);
  return make_stream_source(config);
}

Result<std::string> read_schema(const PipelineConfig& config) {
  const std::string& path = config.schema_file;
  if (path.empty()) return std::string();
  if (path == kOrderSchema) return std::string(schema::order_schema());
  constexpr std::string_view kBuiltin = "builtin:";
  if (path.starts_with(kBuiltin)) {
    return wrong_at(config, "schema", fmt::format("there is no {}, only {}", path, kOrderSchema));
  }
  std::error_code unknown;  // Then it cannot be opened either.
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  const bool is_folder = std::filesystem::is_directory(path, unknown);
  if (!file.is_open() || is_folder) {
    return wrong_at(config, "schema",
                    fmt::format("{} cannot be read: {}", path,
                                std::generic_category().message(is_folder ? EISDIR : errno)));
  }
  return std::string{std::istreambuf_iterator<char>(file), {}};
}

Result<std::unique_ptr<Sink>> make_sink(const PipelineConfig& config, const std::string& source,
                                        const std::string& schema_text) {
  BATON_TRY(std::optional<schema::Schema> schema, compile_schema(config, schema_text));
  const Endpoint& to = config.sink.endpoint;
  if (config.is_sql() && schema.has_value()) {
    return make_sql_sink(config, source, *std::move(schema));
  }
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

Result<std::string> missing_dead_letters(const PipelineConfig& config) {
  const Endpoint& to = config.dead_letters.endpoint;
  if (to.kind == "kafka") {
    BATON_TRY(const bool there, KafkaDeadLetters::has_topic(letter_topic(config)));
    return there ? std::string() : fmt::format("the topic {}", to.name);
  }
  const bool is_file = to.kind == "file";
  BATON_TRY(const bool there, is_file ? has_file(to.name) : has_queue(to));
  return there ? std::string() : fmt::format("the {} {}", is_file ? "file" : "queue", to.name);
}

Result<std::unique_ptr<DeadLetterTarget>> open_dead_letters(const PipelineConfig& config) {
  const Endpoint& to = config.dead_letters.endpoint;
  if (to.kind == "file") {
    BATON_TRY(std::unique_ptr<DeadLetterTarget> target, FileDeadLetters::open(to.name));
    return target;
  }
  if (to.kind == "kafka") {
    BATON_TRY(std::unique_ptr<DeadLetterTarget> target,
              KafkaDeadLetters::open(letter_topic(config)));
    return target;
  }
  BATON_TRY(std::unique_ptr<DeadLetterTarget> target,
            QueueDeadLetters::open({.connection = hasty_connection_to(to), .queue = to.name}));
  return target;
}

}  // namespace baton::pipeline
