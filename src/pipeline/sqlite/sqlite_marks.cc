#include "pipeline/sqlite/sqlite_marks.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace baton::pipeline {
namespace {

using flow::ErrorClass;
using flow::SinkError;

constexpr const char* kWhose = "pipeline = ?1 AND source = ?2 AND partition = ?3";

}  // namespace

SqliteMarks::MaybeError SqliteMarks::check_layout() {
  SqliteStatement statement;
  auto error = database_.prepare(
      "SELECT partition, lanes FROM baton_marks WHERE pipeline = ?1 AND source = ?2 "
      "AND lanes <> ?3 GROUP BY partition, lanes HAVING min(next_offset) <> max(next_offset) "
      "ORDER BY partition LIMIT 1",
      statement);
  if (error.has_value()) return error;
  statement.bind(1, pipeline_);
  statement.bind(2, origin_);
  statement.bind(3, layout_);
  bool row = false;
  error = statement.step(row);
  if (error.has_value() || !row) return error;
  return layout_error(static_cast<std::uint32_t>(statement.number(0)), statement.number(1),
                      layout_);
}

SqliteMarks::MaybeError SqliteMarks::read(std::uint32_t partition, std::int64_t lane,
                                          std::vector<Row>& rows) {
  SqliteStatement statement;
  auto error = database_.prepare(
      fmt::format("SELECT epoch, lanes, next_offset, done_below FROM baton_marks WHERE {} AND "
                  "(?4 < 0 OR lane = ?4) ORDER BY lane",
                  kWhose),
      statement);
  if (error.has_value()) return error;
  statement.bind(1, pipeline_);
  statement.bind(2, origin_);
  statement.bind(3, std::int64_t{partition});
  statement.bind(4, lane);
  for (bool row = true;;) {
    error = statement.step(row);
    if (error.has_value() || !row) return error;
    rows.push_back({.epoch = static_cast<std::uint64_t>(statement.number(0)),
                    .lanes = statement.number(1),
                    .next = statement.number(2),
                    .done_below = statement.number(3)});
  }
}

/// Replaces all lanes' marks, at one offset.
SqliteMarks::MaybeError SqliteMarks::replace(std::uint32_t partition, std::uint64_t epoch,
                                             std::int64_t next) {
  SqliteStatement remove;
  SqliteStatement insert;
  auto error = database_.prepare(fmt::format("DELETE FROM baton_marks WHERE {}", kWhose), remove);
  if (!error.has_value()) {
    error = database_.prepare(
        "INSERT INTO baton_marks (pipeline, source, partition, lane, lanes, epoch, next_offset, "
        "done_below) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)",
        insert);
  }
  if (error.has_value()) return error;
  bool row = false;
  remove.bind(1, pipeline_);
  remove.bind(2, origin_);
  remove.bind(3, std::int64_t{partition});
  error = remove.step(row);
  for (std::uint32_t lane = 0; lane < lanes_ && !error.has_value(); ++lane) {
    insert.bind(1, pipeline_);
    insert.bind(2, origin_);
    insert.bind(3, std::int64_t{partition});
    insert.bind(4, std::int64_t{lane});
    insert.bind(5, layout_);
    insert.bind(6, static_cast<std::int64_t>(epoch));
    insert.bind(7, next);
    error = insert.step(row);
    insert.reset();
  }
  return error;
}

std::expected<SinkMarks, SinkError> SqliteMarks::claim(std::uint32_t partition, std::int64_t next) {
  if (auto error = database_.run("BEGIN IMMEDIATE")) return std::unexpected(*std::move(error));
  auto marks = claim_rows(partition, next);
  if (marks.has_value()) {
    if (auto error = database_.run("COMMIT")) marks = std::unexpected(*std::move(error));
  }
  if (database_.in_transaction()) (void)database_.run("ROLLBACK");
  return marks;
}

std::expected<SinkMarks, SinkError> SqliteMarks::claim_rows(std::uint32_t partition,
                                                            std::int64_t next) {
  std::vector<Row> rows;
  if (auto error = read(partition, -1, rows)) return std::unexpected(*std::move(error));
  SinkMarks marks{.epoch = rows.empty() ? 1 : rows.front().epoch + 1, .next = {}, .begin = next};
  const bool same_lanes = !rows.empty() && rows.front().lanes == layout_;
  const auto [least, most] = std::ranges::minmax_element(rows, {}, &Row::next);
  if (!same_lanes) {
    if (!rows.empty() && least->next != most->next) {
      return std::unexpected(layout_error(partition, rows.front().lanes, layout_));
    }
    if (!rows.empty()) marks.begin = least->next;
    marks.next.assign(lanes_, marks.begin);
    if (auto error = replace(partition, marks.epoch, marks.begin)) {
      return std::unexpected(*std::move(error));
    }
    return marks;
  }
  marks.begin = least->next;
  for (const Row& row : rows) {
    marks.next.push_back(row.next);
    marks.begin = std::max(marks.begin, row.done_below);
  }
  SqliteStatement update;
  auto error =
      database_.prepare(fmt::format("UPDATE baton_marks SET epoch = ?4 WHERE {}", kWhose), update);
  if (error.has_value()) return std::unexpected(*std::move(error));
  update.bind(1, pipeline_);
  update.bind(2, origin_);
  update.bind(3, std::int64_t{partition});
  update.bind(4, static_cast<std::int64_t>(marks.epoch));
  bool row = false;
  if (error = update.step(row); error.has_value()) return std::unexpected(*std::move(error));
  return marks;
}

SqliteMarks::MaybeError SqliteMarks::settle(std::uint32_t partition, std::uint64_t epoch,
                                            std::int64_t next) {
  SqliteStatement update;
  auto error =
      database_.prepare(fmt::format("UPDATE baton_marks SET next_offset = max(next_offset, ?5), "
                                    "done_below = max(done_below, ?5) WHERE {} AND epoch = ?4",
                                    kWhose),
                        update);
  if (error.has_value()) return error;
  update.bind(1, pipeline_);
  update.bind(2, origin_);
  update.bind(3, std::int64_t{partition});
  update.bind(4, static_cast<std::int64_t>(epoch));
  update.bind(5, next);
  bool row = false;
  return update.step(row);
}

SqliteMarks::MaybeError SqliteMarks::move(std::span<const MarkMove> moves,
                                          const MarkMove*& missed) {
  missed = nullptr;
  if (moves.empty()) return std::nullopt;
  SqliteStatement update;
  auto error = database_.prepare(
      fmt::format("UPDATE baton_marks SET next_offset = ?6, done_below = max(done_below, ?8) "
                  "WHERE {} AND lane = ?4 AND epoch = ?5 AND next_offset = ?7",
                  kWhose),
      update);
  for (const MarkMove& move : moves) {
    if (error.has_value()) return error;
    update.bind(1, pipeline_);
    update.bind(2, origin_);
    update.bind(3, std::int64_t{move.assignment->partition()});
    update.bind(4, std::int64_t{move.lane});
    update.bind(5, static_cast<std::int64_t>(move.assignment->sink_epoch()));
    update.bind(6, move.next);
    update.bind(7, move.expected);
    update.bind(8, move.done_below);
    bool row = false;
    error = update.step(row);
    if (!error.has_value() && database_.changes() == 0) {
      missed = &move;
      return std::nullopt;
    }
    update.reset();
  }
  return error;
}

SinkError SqliteMarks::explain(const MarkMove& missed) {
  std::vector<Row> rows;
  const std::uint32_t partition = missed.assignment->partition();
  if (auto error = read(partition, std::int64_t{missed.lane}, rows)) return *std::move(error);
  if (rows.empty() || rows.front().epoch != missed.assignment->sink_epoch()) {
    missed.assignment->fence();
    return {.error_class = ErrorClass::fenced,
            .text = fmt::format("partition {} has another owner", partition)};
  }
  missed.assignment->set_mark(missed.lane, rows.front().next);
  return {.error_class = ErrorClass::retry,
          .text = fmt::format("the mark of partition {} is ahead of this process", partition)};
}

}  // namespace baton::pipeline
