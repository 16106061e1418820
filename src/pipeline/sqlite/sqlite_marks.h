#pragma once

#include <expected>
#include <optional>
#include <span>
#include <string>

#include "pipeline/ends/sql_sink.h"
#include "pipeline/engine/marks.h"
#include "pipeline/engine/sink.h"
#include "pipeline/sqlite/sqlite_database.h"

namespace baton::pipeline {

/// The marks of exactly_once_effect, in a table beside the rows:
///
///   baton_marks(pipeline, source, partition, lane, lanes, epoch, next_offset, done_below)
///
/// Used within the transactions of its owner, on the owner's connection.
class SqliteMarks : public SqlMarks {
 public:
  using MaybeError = std::optional<flow::SinkError>;

  SqliteMarks(SqliteDatabase& database, const SqlSinkOptions& options)
      : SqlMarks(options), database_(database) {}

  /// Fails if there are marks of another layout that are not settled: claim() would fail, too.
  MaybeError check_layout();
  /// Runs in its own transaction.
  std::expected<SinkMarks, flow::SinkError> claim(std::uint32_t partition, std::int64_t next);
  MaybeError settle(std::uint32_t partition, std::uint64_t epoch, std::int64_t next);
  /// Runs within the caller's transaction. `missed`: the first mark that is not where it should be.
  MaybeError move(std::span<const MarkMove> moves, const MarkMove*& missed);
  /// Called after the caller has rolled back: why, and what to do about it.
  flow::SinkError explain(const MarkMove& missed);

 private:
  struct Row {
    std::uint64_t epoch = 0;
    std::int64_t lanes = 0;
    std::int64_t next = 0;
    std::int64_t done_below = 0;
  };

  /// `lane` -1: all lanes, in their order.
  MaybeError read(std::uint32_t partition, std::int64_t lane, std::vector<Row>& rows);
  MaybeError replace(std::uint32_t partition, std::uint64_t epoch, std::int64_t next);
  std::expected<SinkMarks, flow::SinkError> claim_rows(std::uint32_t partition, std::int64_t next);

  SqliteDatabase& database_;
};

}  // namespace baton::pipeline
