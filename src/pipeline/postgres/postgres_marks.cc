#include "pipeline/postgres/postgres_marks.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace baton::pipeline {
namespace {

using flow::ErrorClass;
using flow::SinkError;

constexpr const char* kWhose =
    "pipeline = $1::text AND source = $2::text AND partition = $3::bigint";

}  // namespace

PostgresParameters PostgresMarks::whose(std::uint32_t partition) const {
  PostgresParameters parameters;
  parameters.add_text(pipeline_);
  parameters.add_text(origin_);
  parameters.add_integer(std::int64_t{partition});
  return parameters;
}

PostgresMarks::MaybeError PostgresMarks::read(PostgresConnection& connection,
                                              std::uint32_t partition, bool lock,
                                              std::vector<Row>& rows) const {
  PostgresResult result;
  auto error = connection.run(
      fmt::format("SELECT lane, lanes, epoch, next_offset, done_below FROM baton_marks WHERE {} "
                  "ORDER BY lane{}",
                  kWhose, lock ? " FOR UPDATE" : ""),
      whose(partition), result);
  if (error.has_value()) return error;
  for (std::size_t i = 0; i < result.rows(); ++i) {
    rows.push_back({.lane = result.number(i, 0),
                    .lanes = result.number(i, 1),
                    .epoch = result.number(i, 2),
                    .next = result.number(i, 3),
                    .done_below = result.number(i, 4)});
  }
  return std::nullopt;
}

std::expected<SinkMarks, SinkError> PostgresMarks::claim(PostgresConnection& connection,
                                                         std::uint32_t partition,
                                                         std::int64_t next) const {
  if (auto error = connection.run("BEGIN ISOLATION LEVEL READ COMMITTED")) {
    return std::unexpected(*std::move(error));
  }
  auto marks = claim_rows(connection, partition, next);
  if (marks.has_value()) {
    // If it is unknown whether the commit succeeded, the next claim makes another epoch.
    if (auto error = connection.run("COMMIT")) marks = std::unexpected(*std::move(error));
  } else if (connection.is_open()) {
    if (connection.run("ROLLBACK").has_value()) connection.close();
  }
  return marks;
}

std::expected<SinkMarks, SinkError> PostgresMarks::claim_rows(PostgresConnection& connection,
                                                              std::uint32_t partition,
                                                              std::int64_t next) const {
  std::vector<Row> rows;
  if (auto error = read(connection, partition, true, rows)) {
    return std::unexpected(*std::move(error));
  }
  SinkMarks marks{.epoch = 1, .next = {}, .begin = next};
  MaybeError error;
  if (!rows.empty()) {
    const auto [least, most] = std::ranges::minmax(rows, {}, &Row::next);
    const std::int64_t lanes = rows.front().lanes;
    marks.begin = least.next;
    marks.epoch = static_cast<std::uint64_t>(rows.front().epoch) + 1;
    if (lanes == layout_) {
      error = take_over(connection, partition, rows, marks);
      if (error.has_value()) return std::unexpected(*std::move(error));
      return marks;
    }
    if (least.next != most.next) {
      return std::unexpected(layout_error(partition, lanes, layout_));
    }
  }
  if (error = replace(connection, partition, marks); error.has_value()) {
    return std::unexpected(*std::move(error));
  }
  return marks;
}

PostgresMarks::MaybeError PostgresMarks::take_over(PostgresConnection& connection,
                                                   std::uint32_t partition,
                                                   const std::vector<Row>& rows,
                                                   SinkMarks& marks) const {
  for (const Row& row : rows) {
    marks.next.push_back(row.next);
    marks.begin = std::max(marks.begin, row.done_below);
  }
  PostgresParameters parameters = whose(partition);
  parameters.add_integer(static_cast<std::int64_t>(marks.epoch));
  PostgresResult result;
  return connection.run(fmt::format("UPDATE baton_marks SET epoch = $4::bigint WHERE {}", kWhose),
                        parameters, result);
}

PostgresMarks::MaybeError PostgresMarks::replace(PostgresConnection& connection,
                                                 std::uint32_t partition, SinkMarks& marks) const {
  marks.next.assign(lanes_, marks.begin);
  PostgresParameters parameters = whose(partition);
  PostgresResult result;
  auto error =
      connection.run(fmt::format("DELETE FROM baton_marks WHERE {}", kWhose), parameters, result);
  if (error.has_value()) return error;
  parameters.add_integer(std::int64_t{lanes_});
  parameters.add_integer(static_cast<std::int64_t>(marks.epoch));
  parameters.add_integer(marks.begin);
  parameters.add_integer(layout_);
  error = connection.run(
      "INSERT INTO baton_marks (pipeline, source, partition, lane, lanes, epoch, next_offset, "
      "done_below) SELECT $1::text, $2::text, $3::bigint, lane, $7::bigint, $5::bigint, "
      "$6::bigint, $6::bigint FROM generate_series(0, $4::bigint - 1) AS lane",
      parameters, result);
  // Another process claimed a new partition at the same time.
  if (error.has_value() && error->code == "23505") error->error_class = ErrorClass::retry;
  return error;
}

PostgresMarks::MaybeError PostgresMarks::settle(PostgresConnection& connection,
                                                std::uint32_t partition, std::uint64_t epoch,
                                                std::int64_t next) const {
  PostgresParameters parameters = whose(partition);
  parameters.add_integer(static_cast<std::int64_t>(epoch));
  parameters.add_integer(next);
  PostgresResult result;
  return connection.run(
      fmt::format("UPDATE baton_marks SET next_offset = greatest(next_offset, $5::bigint), "
                  "done_below = greatest(done_below, $5::bigint) "
                  "WHERE {} AND epoch = $4::bigint",
                  kWhose),
      parameters, result);
}

PostgresMarks::MaybeError PostgresMarks::check_layout(PostgresConnection& connection) const {
  PostgresParameters parameters;
  parameters.add_text(pipeline_);
  parameters.add_text(origin_);
  parameters.add_integer(layout_);
  PostgresResult result;
  auto error = connection.run(
      "SELECT partition, lanes FROM baton_marks WHERE pipeline = $1::text AND source = $2::text "
      "AND lanes <> $3::bigint GROUP BY partition, lanes "
      "HAVING min(next_offset) <> max(next_offset) ORDER BY partition LIMIT 1",
      parameters, result);
  if (error.has_value() || result.rows() == 0) return error;
  return layout_error(static_cast<std::uint32_t>(result.number(0, 0)), result.number(0, 1),
                      layout_);
}

PostgresMarks::MaybeError PostgresMarks::explain(PostgresConnection& connection,
                                                 std::span<const MarkMove> moves) const {
  MaybeError why;
  for (const MarkMove& move : moves) {
    const std::uint32_t partition = move.assignment->partition();
    std::vector<Row> rows;
    if (auto error = read(connection, partition, false, rows)) return error;
    const auto row = std::ranges::find(rows, std::int64_t{move.lane}, &Row::lane);
    if (row == rows.end() ||
        row->epoch != static_cast<std::int64_t>(move.assignment->sink_epoch())) {
      move.assignment->fence();
      why = SinkError{.error_class = ErrorClass::fenced,
                      .text = fmt::format("partition {} has another owner", partition)};
      continue;
    }
    if (row->next == move.expected) continue;
    if (!why.has_value()) {
      why =
          SinkError{.error_class = ErrorClass::retry, .text = "a mark has moved and is read again"};
    }
    move.assignment->set_mark(move.lane, row->next);
  }
  return why;
}

void PostgresMarks::add_moves(std::span<const MarkMove> moves,
                              PostgresParameters& parameters) const {
  std::vector<std::int64_t> numbers(moves.size());
  const auto add = [&](auto number_of) {
    std::ranges::transform(moves, numbers.begin(), number_of);
    parameters.add_numbers(numbers);
  };
  parameters.add_text(pipeline_);
  parameters.add_text(origin_);
  add([](const MarkMove& move) { return std::int64_t{move.assignment->partition()}; });
  add([](const MarkMove& move) { return std::int64_t{move.lane}; });
  add([](const MarkMove& move) {
    return static_cast<std::int64_t>(move.assignment->sink_epoch());
  });
  add([](const MarkMove& move) { return move.expected; });
  add([](const MarkMove& move) { return move.next; });
  add([](const MarkMove& move) { return move.done_below; });
}

}  // namespace baton::pipeline
