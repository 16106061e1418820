#include "pipeline/sqlite/sqlite_database.h"

#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <sqlite3.h>

#include "pipeline/sqlite/sqlite_errors.h"

namespace baton::pipeline {
namespace {

using flow::SinkError;

constexpr std::chrono::milliseconds kBusyPause{2};
constexpr int kBusyMilliseconds = 2000;

std::optional<SinkError> error_of(sqlite3* database, int code) {
  if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE) return std::nullopt;
  const int extended = database != nullptr ? sqlite3_extended_errcode(database) : code;
  return SinkError{.error_class = class_of_sqlite(extended),
                   .code = std::to_string(extended),
                   .text = database != nullptr ? sqlite3_errmsg(database) : sqlite3_errstr(code)};
}

}  // namespace

void SqliteStatement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

void SqliteStatement::bind(int place, std::string_view text) {
  if (text.data() == nullptr) {
    sqlite3_bind_null(statement_.get(), place);
    return;
  }
  sqlite3_bind_text64(statement_.get(), place, text.data(), text.size(), SQLITE_STATIC,
                      SQLITE_UTF8);
}

void SqliteStatement::bind(int place, std::int64_t number) {
  sqlite3_bind_int64(statement_.get(), place, number);
}

std::optional<SinkError> SqliteStatement::step(bool& row) {
  const int code = sqlite3_step(statement_.get());
  row = code == SQLITE_ROW;
  return error_of(sqlite3_db_handle(statement_.get()), code);
}

std::string_view SqliteStatement::text(int column) const {
  const unsigned char* bytes = sqlite3_column_text(statement_.get(), column);
  if (bytes == nullptr) return {};
  return {reinterpret_cast<const char*>(bytes),  // NOLINT: SQLite's own type of text.
          static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

std::int64_t SqliteStatement::number(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

void SqliteStatement::reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
}

void SqliteDatabase::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

std::optional<SinkError> SqliteDatabase::open(const std::string& path, Open how, Sync sync) {
  sqlite3* database = nullptr;
  const int create = how == Open::or_create ? SQLITE_OPEN_CREATE : 0;
  const int code = sqlite3_open_v2(path.c_str(), &database,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | create, nullptr);
  database_.reset(database);
  if (auto error = error_of(database, code)) {
    database_.reset();
    return error;
  }
  sqlite3_extended_result_codes(database, 1);
  sqlite3_busy_timeout(database, kBusyMilliseconds);
  const std::string begin =
      fmt::format("PRAGMA journal_mode=WAL; PRAGMA synchronous={}; PRAGMA foreign_keys=ON",
                  sync == Sync::every_commit ? "FULL" : "NORMAL");
  // SQLite does not wait by itself while another process creates the file.
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kBusyMilliseconds);
  auto error = run(begin);
  while (error.has_value() && (sqlite3_errcode(database) & 0xff) == SQLITE_BUSY &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kBusyPause);
    error = run(begin);
  }
  if (error.has_value()) database_.reset();
  return error;
}

std::optional<SinkError> SqliteDatabase::run(const std::string& sql) {
  return error_of(database_.get(),
                  sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr));
}

std::optional<SinkError> SqliteDatabase::prepare(const std::string& sql,
                                                 SqliteStatement& statement) {
  sqlite3_stmt* prepared = nullptr;
  const int code = sqlite3_prepare_v3(database_.get(), sql.c_str(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &prepared, nullptr);
  statement = SqliteStatement(prepared);
  return error_of(database_.get(), code);
}

std::int64_t SqliteDatabase::changes() const { return sqlite3_changes64(database_.get()); }

bool SqliteDatabase::has_moved() const {
  int moved = 0;
  const int code = sqlite3_file_control(database_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  return code == SQLITE_OK && moved != 0;
}

bool SqliteDatabase::in_transaction() const { return sqlite3_get_autocommit(database_.get()) == 0; }

}  // namespace baton::pipeline
