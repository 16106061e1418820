#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "pipeline/flow/error_class.h"
#include "pipeline/postgres/postgres_parameters.h"

struct pg_conn;
struct pg_result;

namespace baton::pipeline {

struct PostgresConnectionOptions {
  std::string url{};  // In libpq's form: a URL or a list of settings.
  Duration connect_timeout = std::chrono::seconds(5);
  Duration statement_timeout = std::chrono::seconds(30);
};

/// The result of a statement, as text.
class PostgresResult {
 public:
  PostgresResult() = default;
  explicit PostgresResult(pg_result* result) : result_(result) {}

  [[nodiscard]] std::size_t rows() const;
  [[nodiscard]] bool is_null(std::size_t row, std::size_t column) const;
  [[nodiscard]] std::string_view text(std::size_t row, std::size_t column) const;
  /// The value in a column of integers.
  [[nodiscard]] std::int64_t number(std::size_t row, std::size_t column) const;
  /// The first message of a failed statement, without its details, which quote records.
  [[nodiscard]] std::string_view message() const;
  [[nodiscard]] pg_result* get() const { return result_.get(); }

 private:
  struct Clear {
    void operator()(pg_result* result) const;
  };
  std::unique_ptr<pg_result, Clear> result_;
};

/// A connection, used by one thread at a time. No call waits much longer than the timeouts: a
/// server that does not answer is unavailable, like one that cannot be reached.
///
/// Invariant: after an outage the connection is closed, so that the next user begins by opening it.
class PostgresConnection {
 public:
  using MaybeError = std::optional<flow::SinkError>;

  MaybeError open(const PostgresConnectionOptions& options);
  void close() { connection_.reset(); }
  [[nodiscard]] bool is_open() const { return connection_ != nullptr; }
  /// Whether the connection is open and has received no unexpected data, most likely the end of the
  /// session.
  [[nodiscard]] bool is_quiet() const;

  MaybeError prepare(const std::string& name, const std::string& sql);
  /// Runs a prepared statement, in a transaction of its own.
  MaybeError run_prepared(const std::string& name, const PostgresParameters& parameters,
                          PostgresResult& result);
  /// Runs any other statement; a transaction that it begins continues with the next one.
  MaybeError run(const std::string& sql, const PostgresParameters& parameters,
                 PostgresResult& result);
  MaybeError run(const std::string& sql);
  /// The same with another time to wait for the answer.
  MaybeError ask(const std::string& sql, Duration within);

 private:
  struct Finish {
    void operator()(pg_conn* connection) const;
  };
  struct Arguments;

  MaybeError connect(Instant deadline);
  /// Why the connection could not be made.
  [[nodiscard]] flow::SinkError connect_error() const;
  MaybeError set_up_session();
  /// Completes the statement that was just sent. `sent` is libpq's result of sending it.
  MaybeError finish(int sent, Instant deadline, PostgresResult& result);
  MaybeError flush(Instant deadline);
  /// Waits for the next result; an empty one means the end.
  MaybeError next_result(Instant deadline, PostgresResult& result);
  MaybeError wait(bool to_write, Instant deadline);
  /// Closes the connection if it is unusable after `error`.
  flow::SinkError failed(flow::SinkError error);
  [[nodiscard]] flow::SinkError lost() const;
  [[nodiscard]] Instant answer_deadline() const;

  PostgresConnectionOptions options_;
  std::unique_ptr<pg_conn, Finish> connection_;
};

/// "host:port/database", without secrets.
std::string postgres_name(const std::string& url);

/// The SQLSTATE in a verbose message about a failed connection, where libpq has no other way to get
/// it; if several servers were tried, the code that is most likely to pass.
std::string sqlstate_in(std::string_view message);

}  // namespace baton::pipeline
