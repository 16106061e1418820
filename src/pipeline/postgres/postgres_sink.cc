#include "pipeline/postgres/postgres_sink.h"

#include <utility>

#include <fmt/format.h>

#include "pipeline/ends/sql_rows.h"
#include "pipeline/ends/start_error.h"
#include "pipeline/postgres/postgres_tables.h"
#include "pipeline/postgres/postgres_writer.h"

namespace baton::pipeline {

using flow::SinkError;

PostgresSink::PostgresSink(PostgresSinkOptions options, schema::Schema schema,
                           schema::Mapping mapping)
    : SqlSink(std::move(schema), std::move(mapping), options.document_bytes_max),
      options_(std::move(options)),
      marks_(options_) {}

PostgresConnectionOptions PostgresSink::connection_options() const {
  return {.url = options_.url,
          .connect_timeout = options_.connect_timeout,
          .statement_timeout = options_.statement_timeout};
}

std::unique_ptr<LaneWriter> PostgresSink::writer(std::uint32_t /*lane*/) {
  return std::make_unique<PostgresWriter>(
      PostgresWriterOptions{.connection = connection_options(),
                            .source = options_.source,
                            .marks = options_.exactly_once ? std::optional(marks_) : std::nullopt},
      mapping());
}

std::optional<SinkError> PostgresSink::connect() {
  // This connection is used rarely, and the server may have been restarted since.
  if (connection_.is_quiet()) return std::nullopt;
  return connection_.open(connection_options());
}

std::optional<SinkError> PostgresSink::probe() {
  const std::scoped_lock lock(mutex_);
  if (auto error = connect()) return error;
  return connection_.ask("SELECT 1", options_.connect_timeout);
}

std::expected<SinkMarks, SinkError> PostgresSink::claim(std::uint32_t partition,
                                                        std::int64_t next) {
  const std::scoped_lock lock(mutex_);
  if (auto error = connect()) return std::unexpected(*std::move(error));
  return marks_.claim(connection_, partition, next);
}

std::optional<SinkError> PostgresSink::settle(std::uint32_t partition, std::uint64_t epoch,
                                              std::int64_t next) {
  const std::scoped_lock lock(mutex_);
  if (auto error = connect()) return error;
  return marks_.settle(connection_, partition, epoch, next);
}

Result<Findings> PostgresSink::check(bool apply) {
  const std::scoped_lock lock(mutex_);
  if (const auto error = connect()) return start_error(name(), *error);
  BATON_TRY(TablesCheck tables,
            check_postgres_tables(connection_, mapping(), options_.exactly_once, apply));
  if (tables.has_marks) {
    if (const auto error = marks_.check_layout(connection_)) return start_error(name(), *error);
  }
  return std::move(tables.missing);
}

}  // namespace baton::pipeline
