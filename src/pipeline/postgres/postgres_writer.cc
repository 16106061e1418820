#include "pipeline/postgres/postgres_writer.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "pipeline/ends/sql_rows.h"
#include "pipeline/postgres/postgres_sql.h"

namespace baton::pipeline {
namespace {

using flow::ErrorClass;
using flow::SinkError;

constexpr const char* kBatch = "baton_batch";
constexpr const char* kRaised = "22P02";  // Raised by a cast of a text that is not an integer.

/// A source that redelivers may have the same record twice in a batch.
bool has_a_record_twice(std::span<const Item> items) {
  std::vector<std::pair<std::uint32_t, std::int64_t>> places;
  places.reserve(items.size());
  for (const Item& item : items) places.emplace_back(item.record.partition, item.record.offset);
  std::ranges::sort(places);
  return std::ranges::adjacent_find(places) != places.end();
}

}  // namespace

bool is_set(std::string_view flags, std::size_t place) {
  const std::size_t at = (2 * place) + 1;
  return at < flags.size() && flags[at] == 't';
}

PostgresWriter::PostgresWriter(PostgresWriterOptions options, schema::Mapping mapping)
    : options_(std::move(options)),
      mapping_(std::move(mapping)),
      batch_(mapping_.columns_of_tables()) {}

PostgresWriter::MaybeError PostgresWriter::connect() {
  if (connection_.is_open()) return std::nullopt;
  if (auto error = connection_.open(options_.connection)) return error;
  auto error =
      connection_.prepare(kBatch, postgres_batch_sql(mapping_, options_.marks.has_value()));
  if (!error.has_value()) return std::nullopt;
  connection_.close();
  return flow::while_connecting(*std::move(error));
}

std::optional<SinkError> PostgresWriter::write(std::span<Item> items) {
  if (items.empty()) return std::nullopt;
  if (has_a_record_twice(items)) {
    // It could not be told which of the two was inserted, so they are written one after the other.
    return SinkError{.error_class = ErrorClass::retry,
                     .text = "a record is in the batch twice",
                     .halve_batch = true};
  }
  if (auto error = connect()) return error;
  const std::vector<MarkMove> moves =
      options_.marks.has_value() ? moves_of(items) : std::vector<MarkMove>{};
  add_rows(items);
  if (options_.marks.has_value()) options_.marks->add_moves(moves, parameters_);
  PostgresResult result;
  if (auto error = connection_.run_prepared(kBatch, parameters_, result)) {
    return explain(*std::move(error), result.message(), moves);
  }
  moved(moves);
  std::vector<Item*> known;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (mapping_.key().empty() || is_set(result.text(0, 0), i)) {
      items[i].fate = Fate::applied;
    } else {
      known.push_back(&items[i]);
    }
  }
  return known.empty() ? std::nullopt : look_up(known);
}

SinkError PostgresWriter::explain(SinkError error, std::string_view message,
                                  std::span<const MarkMove> moves) {
  // A trigger may raise the same text: then the marks are unchanged.
  if (!options_.marks.has_value() || error.code != kRaised) return error;
  if (message.contains(kRowNotTaken)) return row_not_taken();
  if (!message.contains(kMarkMissed)) return error;
  return options_.marks->explain(connection_, moves).value_or(std::move(error));
}

void PostgresWriter::add_column(const schema::ColumnMapping& column,
                                std::span<const schema::Cell> cells) {
  if (travels_as_integers(column.type)) {
    parameters_.add_integers(cells);
  } else {
    parameters_.add_texts(cells);
  }
}

void PostgresWriter::add_rows(std::span<const Item> items) {
  batch_.clear();
  for (const Item& item : items) batch_.add(rows_of(item));
  parameters_.clear();
  parameters_.add_text(options_.source);
  numbers_.clear();
  for (const Item& item : items) numbers_.push_back(std::int64_t{item.record.partition});
  parameters_.add_numbers(numbers_);
  numbers_.clear();
  for (const Item& item : items) numbers_.push_back(item.record.offset);
  parameters_.add_numbers(numbers_);
  for (std::size_t i = 0; i < batch_.tables(); ++i) {
    const schema::TableRows::Table& table = batch_.table(i);
    const schema::TableMapping& shape = mapping_.tables()[i];
    if (i > 0) {
      numbers_.clear();
      for (const std::uint32_t document : table.documents) {
        numbers_.push_back(std::int64_t{document} + 1);
      }
      parameters_.add_numbers(numbers_);
    }
    for (std::size_t j = 0; j < shape.columns.size(); ++j) {
      add_column(shape.columns[j], table.columns[j]);
    }
  }
}

PostgresWriter::MaybeError PostgresWriter::look_up(std::span<Item* const> items) {
  std::vector<schema::Cell> keys;
  for (Item* const item : items) keys.push_back(rows_of(*item).key());
  parameters_.clear();
  add_column(mapping_.tables().front().columns[mapping_.key_column()], keys);
  PostgresResult result;
  auto error = connection_.run(postgres_holders_sql(mapping_), parameters_, result);
  // With marks no record is written twice, so these are duplicates of other records; the batch,
  // which has found them, is committed.
  if (error.has_value() && !options_.marks.has_value()) return error;
  if (options_.marks.has_value()) {
    for (Item* const item : items) item->fate = Fate::duplicate;
  }
  if (error.has_value()) return std::nullopt;
  for (std::size_t i = 0; i < result.rows(); ++i) {
    const auto place = static_cast<std::size_t>(result.number(i, 0)) - 1;
    BATON_ASSERT(place < items.size());
    const Record& record = items[place]->record;
    const bool same = result.text(i, 1) == options_.source &&
                      result.number(i, 2) == std::int64_t{record.partition} &&
                      result.number(i, 3) == record.offset;
    items[place]->fate = same ? Fate::applied : Fate::duplicate;
  }
  const bool all_found =
      std::ranges::none_of(items, [](const Item* item) { return item->fate == Fate::open; });
  return all_found ? std::nullopt : MaybeError(row_not_taken());
}

}  // namespace baton::pipeline
