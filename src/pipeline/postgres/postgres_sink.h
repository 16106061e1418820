#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/engine/sink.h"
#include "pipeline/postgres/postgres_connection.h"
#include "pipeline/postgres/postgres_marks.h"
#include "pipeline/schema/json_schema.h"
#include "pipeline/schema/mapping.h"

namespace baton::pipeline {

struct PostgresSinkOptions {
  std::string url{};
  std::string pipeline{};
  std::string source{};  // The origin that rows record.
  std::uint32_t lanes = 1;
  bool by_partition = false;  // How records are spread over lanes; for the marks.
  bool exactly_once = false;
  Duration statement_timeout = std::chrono::seconds(30);
  Duration connect_timeout = std::chrono::seconds(5);
  std::size_t document_bytes_max = std::size_t{1} << 20U;
};

/// Writes rows to PostgreSQL. Each lane has its own connection, and one more serves everything
/// else.
class PostgresSink : public Sink {
 public:
  PostgresSink(PostgresSinkOptions options, schema::Schema schema, schema::Mapping mapping);

  Result<Findings> check(bool apply) override;
  std::unique_ptr<Preparer> preparer() override;
  std::unique_ptr<LaneWriter> writer(std::uint32_t lane) override;
  std::optional<flow::SinkError> probe() override;
  [[nodiscard]] std::string name() const override { return postgres_name(options_.url); }
  void set_origin(std::string origin) override { marks_.set_origin(std::move(origin)); }
  [[nodiscard]] bool is_transactional() const override { return true; }
  std::expected<SinkMarks, flow::SinkError> claim(std::uint32_t partition,
                                                  std::int64_t next) override;
  std::optional<flow::SinkError> settle(std::uint32_t partition, std::uint64_t epoch,
                                        std::int64_t next) override;

 private:
  [[nodiscard]] PostgresConnectionOptions connection_options() const;
  std::optional<flow::SinkError> connect();

  PostgresSinkOptions options_;
  schema::Schema schema_;
  schema::Mapping mapping_;
  PostgresMarks marks_;

  std::mutex mutex_;  // Guards the connection.
  PostgresConnection connection_;
};

}  // namespace baton::pipeline
