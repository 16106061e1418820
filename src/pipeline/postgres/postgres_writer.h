#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/engine/marks.h"
#include "pipeline/engine/sink.h"
#include "pipeline/postgres/postgres_connection.h"
#include "pipeline/postgres/postgres_marks.h"
#include "pipeline/schema/mapping.h"
#include "pipeline/schema/table_rows.h"

namespace baton::pipeline {

struct PostgresWriterOptions {
  PostgresConnectionOptions connection{};
  std::string source{};
  std::optional<PostgresMarks> marks{};  // With exactly_once_effect.
};

/// One lane's connection. Each batch is one statement.
class PostgresWriter : public LaneWriter {
 public:
  PostgresWriter(PostgresWriterOptions options, schema::Mapping mapping);

  std::optional<flow::SinkError> write(std::span<Item> items) override;

 private:
  using MaybeError = std::optional<flow::SinkError>;

  MaybeError connect();
  void add_rows(std::span<const Item> items);
  void add_column(const schema::ColumnMapping& column, std::span<const schema::Cell> cells);
  /// The meaning of a batch's failure: `error`, unless the statement itself raised it.
  flow::SinkError explain(flow::SinkError error, std::string_view message,
                          std::span<const MarkMove> moves);
  /// Sets the fate of items that were not new: replays of themselves, or duplicates of others.
  MaybeError look_up(std::span<Item* const> items);

  PostgresWriterOptions options_;
  schema::Mapping mapping_;
  PostgresConnection connection_;
  schema::TableRows batch_;
  PostgresParameters parameters_;
  std::vector<std::int64_t> numbers_;
};

/// Whether the flag at `place` is true in `flags`, a PostgreSQL array of booleans ('{t,f}').
bool is_set(std::string_view flags, std::size_t place);

}  // namespace baton::pipeline
