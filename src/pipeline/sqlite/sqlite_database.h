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

/// A prepared statement. What it is bound to must live until the next step.
class SqliteStatement {
 public:
  SqliteStatement() = default;  // Of nothing, until SqliteDatabase::prepare().
  explicit SqliteStatement(sqlite3_stmt* statement) : statement_(statement) {}

  /// From 1. A string_view without data is NULL.
  void bind(int place, std::string_view text);
  void bind(int place, std::int64_t number);
  /// True: there is a row. The error's class tells what it means.
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

/// A connection. One thread at a time.
class SqliteDatabase {
 public:
  enum class Open : std::uint8_t { existing, or_create };
  enum class Sync : std::uint8_t {
    every_commit,
    checkpoints,  // After a power cut the last commits may be missing, all of them or none of each.
  };

  /// Opens a file, in WAL mode. An existing one only, unless told otherwise: one that was moved
  /// away is an outage, and not to be replaced by an empty one.
  std::optional<flow::SinkError> open(const std::string& path, Open how, Sync sync);
  void close() { database_.reset(); }
  [[nodiscard]] bool is_open() const { return database_ != nullptr; }

  std::optional<flow::SinkError> run(const std::string& sql);
  std::optional<flow::SinkError> prepare(const std::string& sql, SqliteStatement& statement);
  /// Rows that the last statement changed.
  [[nodiscard]] std::int64_t changes() const;
  [[nodiscard]] bool in_transaction() const;
  /// The file is no longer where it was opened.
  [[nodiscard]] bool has_moved() const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace baton::pipeline
