#include "pipeline/sqlite/sqlite_sink.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "pipeline/ends/sql_rows.h"
#include "pipeline/ends/start_error.h"
#include "pipeline/sqlite/sqlite_tables.h"

namespace baton::pipeline {
namespace {

using flow::SinkError;
using schema::ColumnType;

constexpr const char* kSqlError = "1";

/// SQLite has no boolean type.
std::string_view stored(ColumnType type, schema::Cell cell) {
  if (type != ColumnType::boolean || schema::is_null(cell)) return cell;
  return cell == "true" ? "1" : "0";
}

}  // namespace

class SqliteSink::Writer : public LaneWriter {
 public:
  explicit Writer(SqliteSink& sink) : sink_(sink) {}
  std::optional<SinkError> write(std::span<Item> items) override { return sink_.write(items); }

 private:
  SqliteSink& sink_;
};

SqliteSink::SqliteSink(std::string path, SqlSinkOptions options, schema::Schema schema,
                       schema::Mapping mapping)
    : SqlSink(std::move(schema), std::move(mapping), options.document_bytes_max),
      path_(std::move(path)),
      options_(std::move(options)),
      marks_(database_, options_) {}

std::unique_ptr<LaneWriter> SqliteSink::writer(std::uint32_t /*lane*/) {
  return std::make_unique<Writer>(*this);
}

/// If a power cut loses rows, it loses their marks as well, and the source delivers the records
/// again.
SqliteDatabase::Sync SqliteSink::sync() const {
  return options_.exactly_once ? SqliteDatabase::Sync::checkpoints
                               : SqliteDatabase::Sync::every_commit;
}

void SqliteSink::disconnect() {
  inserts_.clear();
  look_up_ = {};
  database_.close();
}

SqliteSink::MaybeError SqliteSink::connect() {
  // Otherwise the sink would go on writing to a file that cannot be opened any more.
  if (database_.is_open() && database_.has_moved()) disconnect();
  if (database_.is_open()) return std::nullopt;
  auto error = database_.open(path_, SqliteDatabase::Open::existing, sync());
  if (!error.has_value()) error = prepare_statements();
  if (!error.has_value()) return std::nullopt;
  disconnect();
  return flow::while_connecting(*std::move(error));
}

SqliteSink::MaybeError SqliteSink::prepare_statements() {
  const auto& tables = mapping().tables();
  inserts_.resize(tables.size());
  for (std::size_t i = 0; i < tables.size(); ++i) {
    if (auto error = database_.prepare(sqlite_insert_sql(mapping(), i), inserts_[i])) return error;
  }
  if (mapping().key().empty()) return std::nullopt;
  return database_.prepare(
      fmt::format("SELECT {}, {}, {} FROM {} WHERE {} = ?", kSourceColumn, kPartitionColumn,
                  kOffsetColumn, sql_name(tables.front().name), sql_name(mapping().key())),
      look_up_);
}

SqliteSink::MaybeError SqliteSink::write(std::span<Item> items) {
  const std::scoped_lock lock(mutex_);
  if (auto error = connect()) return error;
  const std::vector<MarkMove> moves = moves_of(items);
  const MarkMove* missed = nullptr;
  auto error = database_.run("BEGIN IMMEDIATE");
  if (!error.has_value()) error = marks_.move(moves, missed);
  if (!error.has_value() && missed == nullptr) error = write_rows(items);
  if (!error.has_value() && missed == nullptr) error = database_.run("COMMIT");
  if (database_.in_transaction()) (void)database_.run("ROLLBACK");
  if (missed != nullptr) error = marks_.explain(*missed);
  if (!error.has_value()) {
    moved(moves);
    return std::nullopt;
  }
  for (Item& item : items) item.fate = Fate::open;
  // After an error of the disk the connection is unusable.
  if (error->error_class == flow::ErrorClass::outage) disconnect();
  // Conflicts of the key are not errors here: this one is about another column.
  if (error->error_class == flow::ErrorClass::duplicate) {
    error->error_class = flow::ErrorClass::poison;
  }
  return error;
}

SqliteSink::MaybeError SqliteSink::write_rows(std::span<Item> items) {
  for (Item& item : items) {
    if (auto error = write_item(item)) return error;
  }
  return std::nullopt;
}

SqliteSink::MaybeError SqliteSink::write_item(Item& item) {
  const schema::DocumentRows& rows = rows_of(item);
  SqliteStatement& first = inserts_.front();
  const int mapped = static_cast<int>(mapping().tables().front().columns.size());
  first.bind(mapped + 1, options_.source);
  first.bind(mapped + 2, std::int64_t{item.record.partition});
  first.bind(mapped + 3, item.record.offset);
  bool is_first = true;
  for (const schema::DocumentRows::Row& row : rows.rows()) {
    if (auto error = insert(rows, row)) return error;
    // The row existed before, and so do its rows in other tables.
    if (std::exchange(is_first, false) && database_.changes() == 0) return look_up(item);
  }
  item.fate = Fate::applied;
  return std::nullopt;
}

SqliteSink::MaybeError SqliteSink::insert(const schema::DocumentRows& rows,
                                          const schema::DocumentRows::Row& row) {
  SqliteStatement& statement = inserts_[row.table];
  const auto& columns = mapping().tables()[row.table].columns;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    statement.bind(static_cast<int>(i) + 1, stored(columns[i].type, rows.cell(row, i)));
  }
  bool has_row = false;
  auto error = statement.step(has_row);
  statement.reset();
  if (error.has_value() && error->code == kSqlError) blame(row.table, *error);
  return error;
}

/// The error is of the statement itself, or of something computed from this row, for example for an
/// index. The code does not tell which, but a statement that can be prepared has all that it names.
void SqliteSink::blame(std::size_t table, SinkError& error) {
  SqliteStatement again;
  if (database_.prepare(sqlite_insert_sql(mapping(), table), again).has_value()) return;
  error.error_class = flow::ErrorClass::unknown;
}

/// Whether the row is of this very record, from an earlier attempt.
SqliteSink::MaybeError SqliteSink::look_up(Item& item) {
  if (mapping().key().empty()) return row_not_taken();
  look_up_.bind(1, rows_of(item).key());
  bool has_row = false;
  auto error = look_up_.step(has_row);
  if (!error.has_value() && !has_row) error = row_not_taken();
  if (!error.has_value()) {
    const bool same = look_up_.text(0) == options_.source &&
                      look_up_.number(1) == std::int64_t{item.record.partition} &&
                      look_up_.number(2) == item.record.offset;
    item.fate = same ? Fate::applied : Fate::duplicate;
  }
  look_up_.reset();
  return error;
}

std::optional<SinkError> SqliteSink::probe() {
  const std::scoped_lock lock(mutex_);
  if (auto error = connect()) return error;
  return database_.run("SELECT 1");
}

std::expected<SinkMarks, SinkError> SqliteSink::claim(std::uint32_t partition, std::int64_t next) {
  const std::scoped_lock lock(mutex_);
  if (auto error = connect()) return std::unexpected(*std::move(error));
  return marks_.claim(partition, next);
}

std::optional<SinkError> SqliteSink::settle(std::uint32_t partition, std::uint64_t epoch,
                                            std::int64_t next) {
  const std::scoped_lock lock(mutex_);
  if (auto error = connect()) return error;
  return marks_.settle(partition, epoch, next);
}

Result<Findings> SqliteSink::check_tables(bool apply) {
  BATON_TRY(TablesCheck tables,
            check_sqlite_tables(database_, mapping(), options_.exactly_once, apply));
  if (tables.has_marks) {
    if (const auto error = marks_.check_layout()) return start_error(name(), *error);
  }
  return std::move(tables.missing);
}

Result<Findings> SqliteSink::check(bool apply) {
  const std::scoped_lock lock(mutex_);
  disconnect();
  Findings done;
  std::error_code unknown;  // On an error the file counts as missing.
  if (!std::filesystem::exists(path_, unknown)) {
    const auto folder = std::filesystem::path(path_).parent_path();
    if (!folder.empty() && !std::filesystem::is_directory(folder, unknown)) {
      return Error{Errc::failed_precondition, fmt::format("{}: there is no such folder", path_)};
    }
    done.push_back(missing(apply, "", path_));
    if (!apply) {
      for (const auto& table : mapping().tables()) {
        done.push_back(missing(false, "table", table.name));
      }
      return done;
    }
  }
  if (auto error = database_.open(path_, SqliteDatabase::Open::or_create, sync())) {
    return start_error(path_, *error);
  }
  auto tables = check_tables(apply);
  disconnect();
  BATON_TRY(const Findings made, std::move(tables));
  done.insert(done.end(), made.begin(), made.end());
  return done;
}

}  // namespace baton::pipeline
