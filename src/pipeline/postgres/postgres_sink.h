#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "pipeline/ends/sql_sink.h"
#include "pipeline/postgres/postgres_connection.h"
#include "pipeline/postgres/postgres_marks.h"

namespace baton::pipeline {

struct PostgresSinkOptions : SqlSinkOptions {
  std::string url{};
  Duration statement_timeout = std::chrono::seconds(30);
  Duration connect_timeout = std::chrono::seconds(5);
};

/// Writes rows to PostgreSQL. Each lane has its own connection, and one more serves everything
/// else.
class PostgresSink : public SqlSink {
 public:
  PostgresSink(PostgresSinkOptions options, schema::Schema schema, schema::Mapping mapping);

  Result<Findings> check(bool apply) override;
  std::unique_ptr<LaneWriter> writer(std::uint32_t lane) override;
  std::optional<flow::SinkError> probe() override;
  [[nodiscard]] std::string name() const override { return postgres_name(options_.url); }
  void set_origin(std::string origin) override { marks_.set_origin(std::move(origin)); }
  std::expected<SinkMarks, flow::SinkError> claim(std::uint32_t partition,
                                                  std::int64_t next) override;
  std::optional<flow::SinkError> settle(std::uint32_t partition, std::uint64_t epoch,
                                        std::int64_t next) override;

 private:
  [[nodiscard]] PostgresConnectionOptions connection_options() const;
  std::optional<flow::SinkError> connect();

  PostgresSinkOptions options_;
  PostgresMarks marks_;

  std::mutex mutex_;  // Guards the connection.
  PostgresConnection connection_;
};

}  // namespace baton::pipeline
