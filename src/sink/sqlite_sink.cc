#include "sink/sqlite_sink.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "sink/sql_rows.h"

namespace baton::pipeline {
namespace {

using flow::SinkError;
using schema::ColumnType;

std::string_view sql_type(ColumnType type) {
  switch (type) {
    case ColumnType::integer:
    case ColumnType::boolean: return "INTEGER";
    case ColumnType::real: return "REAL";
    case ColumnType::text:
    case ColumnType::json:
    case ColumnType::timestamp: break;
  }
  return "TEXT";
}

/// SQLite has no booleans of its own.
std::string_view stored(ColumnType type, schema::Cell cell) {
  if (type != ColumnType::boolean || schema::is_null(cell)) return cell;
  return cell == "true" ? "1" : "0";
}

std::string insert_sql(const schema::TableMapping& table, bool is_first, const std::string& key) {
  std::vector<std::string> names;
  names.reserve(table.columns.size() + 3);
  for (const schema::ColumnMapping& column : table.columns) names.push_back(sql_name(column.name));
  if (is_first) {
    for (const char* name : {kSourceColumn, kPartitionColumn, kOffsetColumn}) {
      names.push_back(sql_name(name));
    }
  }
  const std::vector<std::string> places(names.size(), "?");
  return fmt::format(
      "INSERT INTO {} ({}) VALUES ({}){}", sql_name(table.name), fmt::join(names, ", "),
      fmt::join(places, ", "),
      !is_first || key.empty() ? "" : fmt::format(" ON CONFLICT ({}) DO NOTHING", sql_name(key)));
}

}  // namespace

class SqliteSink::Writer : public LaneWriter {
 public:
  explicit Writer(SqliteSink& sink) : sink_(sink) {}
  std::optional<SinkError> write(std::span<Item> items) override { return sink_.write(items); }

 private:
  SqliteSink& sink_;
};

SqliteSink::SqliteSink(SqliteSinkOptions options, schema::Schema schema, schema::Mapping mapping)
    : options_(std::move(options)),
      schema_(std::move(schema)),
      mapping_(std::move(mapping)),
      marks_(database_, options_.pipeline, options_.source, options_.lanes, options_.by_partition) {
}

std::unique_ptr<Preparer> SqliteSink::preparer() {
  return sql_preparer(schema_, mapping_, options_.document_bytes_max);
}

std::unique_ptr<LaneWriter> SqliteSink::writer(std::uint32_t /*lane*/) {
  return std::make_unique<Writer>(*this);
}

/// What a power cut takes of a file, it takes of its marks as well, and the source gives it again.
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
  // One would go on writing to a file that nobody can open any more.
  if (database_.is_open() && database_.has_moved()) disconnect();
  if (database_.is_open()) return std::nullopt;
  auto error = database_.open(options_.path, SqliteDatabase::Open::existing, sync());
  if (!error.has_value()) error = prepare_statements();
  if (error.has_value()) disconnect();
  return error;
}

SqliteSink::MaybeError SqliteSink::prepare_statements() {
  const auto& tables = mapping_.tables();
  inserts_.resize(tables.size());
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const std::string sql = insert_sql(tables[i], i == 0, mapping_.key());
    if (auto error = database_.prepare(sql, inserts_[i])) return error;
  }
  if (mapping_.key().empty()) return std::nullopt;
  return database_.prepare(
      fmt::format("SELECT {}, {}, {} FROM {} WHERE {} = ?", kSourceColumn, kPartitionColumn,
                  kOffsetColumn, sql_name(tables.front().name), sql_name(mapping_.key())),
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
  // After an error of the disk the connection is worth nothing.
  if (error->error_class == flow::ErrorClass::outage) disconnect();
  // The key's own conflicts are no errors here: this is about another column.
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
  const int mapped = static_cast<int>(mapping_.tables().front().columns.size());
  first.bind(mapped + 1, options_.source);
  first.bind(mapped + 2, std::int64_t{item.record.partition});
  first.bind(mapped + 3, item.record.offset);
  bool is_first = true;
  for (const schema::DocumentRows::Row& row : rows.rows()) {
    if (auto error = insert(rows, row)) return error;
    // Somebody had put it in before; then its other rows are there as well.
    if (std::exchange(is_first, false) && database_.changes() == 0) return look_up(item);
  }
  item.fate = Fate::applied;
  return std::nullopt;
}

SqliteSink::MaybeError SqliteSink::insert(const schema::DocumentRows& rows,
                                          const schema::DocumentRows::Row& row) {
  SqliteStatement& statement = inserts_[row.table];
  const auto& columns = mapping_.tables()[row.table].columns;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    statement.bind(static_cast<int>(i) + 1, stored(columns[i].type, rows.cell(row, i)));
  }
  bool has_row = false;
  auto error = statement.step(has_row);
  statement.reset();
  return error;
}

/// Was it this very record, in a former attempt?
SqliteSink::MaybeError SqliteSink::look_up(Item& item) {
  look_up_.bind(1, rows_of(item).key());
  bool has_row = false;
  auto error = look_up_.step(has_row);
  if (!error.has_value()) {
    const bool same = has_row && look_up_.text(0) == options_.source &&
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

std::string SqliteSink::create_table(std::size_t table) const {
  const schema::TableMapping& shape = mapping_.tables()[table];
  std::vector<std::string> columns;
  for (const schema::ColumnMapping& column : shape.columns) {
    const bool key = table == 0 && column.name == mapping_.key();
    columns.push_back(fmt::format("{} {}{}{}", sql_name(column.name), sql_type(column.type),
                                  column.optional ? "" : " NOT NULL", key ? " UNIQUE" : ""));
  }
  if (table == 0) {
    columns.push_back(fmt::format("{} TEXT NOT NULL", kSourceColumn));
    columns.push_back(fmt::format("{} INTEGER NOT NULL", kPartitionColumn));
    columns.push_back(fmt::format("{} INTEGER NOT NULL", kOffsetColumn));
  }
  return fmt::format("CREATE TABLE {} ({})", sql_name(shape.name), fmt::join(columns, ", "));
}

Result<std::vector<std::string>> SqliteSink::columns_there(std::size_t table) {
  SqliteStatement statement;
  std::vector<std::string> names;
  auto error = database_.prepare("SELECT name FROM pragma_table_info(?)", statement);
  if (!error.has_value()) statement.bind(1, mapping_.tables()[table].name);
  for (bool row = true; row && !error.has_value();) {
    error = statement.step(row);
    if (row) names.emplace_back(statement.text(0));
  }
  if (error.has_value()) {
    return Error{Errc::failed_precondition, fmt::format("{}: {}", options_.path, error->text)};
  }
  return names;
}

Status SqliteSink::check_columns(std::size_t table, const std::vector<std::string>& there) const {
  const schema::TableMapping& shape = mapping_.tables()[table];
  std::vector<std::string> wanted;
  wanted.reserve(shape.columns.size() + 3);
  for (const schema::ColumnMapping& column : shape.columns) wanted.push_back(column.name);
  if (table == 0) wanted.insert(wanted.end(), {kSourceColumn, kPartitionColumn, kOffsetColumn});
  for (const std::string& column : wanted) {
    if (std::ranges::find(there, column) != there.end()) continue;
    return Error{Errc::failed_precondition,
                 fmt::format("table {} has no column {}; it has {}", shape.name, column,
                             fmt::join(there, ", "))};
  }
  return {};
}

Result<std::vector<std::string>> SqliteSink::check_tables(bool apply) {
  std::vector<std::string> done;
  for (std::size_t i = 0; i < mapping_.tables().size(); ++i) {
    const std::string& table = mapping_.tables()[i].name;
    BATON_TRY(const std::vector<std::string> there, columns_there(i));
    if (!there.empty()) {
      BATON_TRY_STATUS(check_columns(i, there));
      continue;
    }
    done.push_back(fmt::format("{} table {}", apply ? "made" : "would make", table));
    if (!apply) continue;
    if (auto error = database_.run(create_table(i))) {
      return Error{Errc::failed_precondition,
                   fmt::format("table {} cannot be made: {}", table, error->text)};
    }
  }
  if (options_.exactly_once && apply) {
    if (auto error = marks_.create_table()) {
      return Error{Errc::failed_precondition,
                   fmt::format("table baton_marks cannot be made: {}", error->text)};
    }
  }
  return done;
}

Result<std::vector<std::string>> SqliteSink::check(bool apply) {
  const std::scoped_lock lock(mutex_);
  disconnect();
  std::vector<std::string> done;
  std::error_code unknown;  // Then it is as if it were not there.
  if (!std::filesystem::exists(options_.path, unknown)) {
    const auto folder = std::filesystem::path(options_.path).parent_path();
    if (!folder.empty() && !std::filesystem::is_directory(folder, unknown)) {
      return Error{Errc::unavailable, fmt::format("{}: there is no such folder", options_.path)};
    }
    done.push_back(fmt::format("{} {}", apply ? "made" : "would make", options_.path));
    if (!apply) return done;
  }
  if (auto error = database_.open(options_.path, SqliteDatabase::Open::or_create, sync())) {
    return Error{Errc::unavailable, fmt::format("{}: {}", options_.path, error->text)};
  }
  auto tables = check_tables(apply);
  disconnect();
  BATON_TRY(const std::vector<std::string> made, std::move(tables));
  done.insert(done.end(), made.begin(), made.end());
  return done;
}

}  // namespace baton::pipeline
