#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pipeline/flow/error_class.h"

struct sqlite3;
struct sqlite3_stmt;

namespace baton::pipeline {

/// A prepared statement. Bound values must live until the next step.
class SqliteStatement {
 public:
  SqliteStatement() = default;  // Empty until SqliteDatabase::prepare().
  explicit SqliteStatement(sqlite3_stmt* statement) : statement_(statement) {}

  /// `place` counts from 1. A string_view without data is NULL.
  void bind(int place, std::string_view text);
  void bind(int place, std::int64_t number);
  /// `row` is true if there is a row. The error's class tells what an error means.
  std::optional<flow::SinkError> step(bool& row);
  [[nodiscard]] std::string_view text(int column) const;
  [[nodiscard]] std::int64_t number(int column) const;
  void reset();

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

/// A connection. For one thread at a time.
class SqliteDatabase {
 public:
  enum class Open : std::uint8_t { existing, or_create };
  enum class Sync : std::uint8_t {
    every_commit,
    checkpoints,  // A power cut may lose the last commits, each of them entirely.
  };

  /// Opens a file, in WAL mode. By default only an existing one: a file that was moved away is an
  /// outage, and must not be replaced by an empty one.
  std::optional<flow::SinkError> open(const std::string& path, Open how, Sync sync);
  void close() { database_.reset(); }
  [[nodiscard]] bool is_open() const { return database_ != nullptr; }

  std::optional<flow::SinkError> run(const std::string& sql);
  std::optional<flow::SinkError> prepare(const std::string& sql, SqliteStatement& statement);
  /// Rows that the last statement changed.
  [[nodiscard]] std::int64_t changes() const;
  [[nodiscard]] bool in_transaction() const;
  /// Whether the file is no longer at the path where it was opened.
  [[nodiscard]] bool has_moved() const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace baton::pipeline
