#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/ends/sql_sink.h"
#include "pipeline/engine/marks.h"
#include "pipeline/engine/sink.h"
#include "pipeline/postgres/postgres_connection.h"

namespace baton::pipeline {

/// The marks of exactly_once_effect, in the table baton_marks. The statement of a batch moves them
/// (see postgres_batch_sql()); this class does everything else with them, on the caller's
/// connection.
class PostgresMarks : public SqlMarks {
 public:
  using MaybeError = std::optional<flow::SinkError>;

  explicit PostgresMarks(const SqlSinkOptions& options) : SqlMarks(options) {}

  /// See Sink::claim() and Sink::settle().
  std::expected<SinkMarks, flow::SinkError> claim(PostgresConnection& connection,
                                                  std::uint32_t partition, std::int64_t next) const;
  MaybeError settle(PostgresConnection& connection, std::uint32_t partition, std::uint64_t epoch,
                    std::int64_t next) const;
  /// Fails if there are marks of another layout that are not settled: claim() would fail, too.
  MaybeError check_layout(PostgresConnection& connection) const;
  /// Called when nothing was written: returns which of `moves` is not where it should be, and what
  /// follows.
  MaybeError explain(PostgresConnection& connection, std::span<const MarkMove> moves) const;

  /// The parameters of a batch that come after the rows.
  void add_moves(std::span<const MarkMove> moves, PostgresParameters& parameters) const;

 private:
  struct Row {
    std::int64_t lane = 0;
    std::int64_t lanes = 0;
    std::int64_t epoch = 0;
    std::int64_t next = 0;
    std::int64_t done_below = 0;
  };

  [[nodiscard]] PostgresParameters whose(std::uint32_t partition) const;
  MaybeError read(PostgresConnection& connection, std::uint32_t partition, bool lock,
                  std::vector<Row>& rows) const;
  std::expected<SinkMarks, flow::SinkError> claim_rows(PostgresConnection& connection,
                                                       std::uint32_t partition,
                                                       std::int64_t next) const;
  /// The same lanes continue from their marks.
  MaybeError take_over(PostgresConnection& connection, std::uint32_t partition,
                       const std::vector<Row>& rows, SinkMarks& marks) const;
  /// Replaces all lanes' marks, at marks.begin.
  MaybeError replace(PostgresConnection& connection, std::uint32_t partition,
                     SinkMarks& marks) const;
};

}  // namespace baton::pipeline
