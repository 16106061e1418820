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
  std::string url{};  // As libpq takes it: an address or a list of settings.
  Duration connect_timeout = std::chrono::seconds(5);
  Duration statement_timeout = std::chrono::seconds(30);
};

/// What a statement answered, as text.
class PostgresResult {
 public:
  PostgresResult() = default;
  explicit PostgresResult(pg_result* result) : result_(result) {}

  [[nodiscard]] std::size_t rows() const;
  [[nodiscard]] bool is_null(std::size_t row, std::size_t column) const;
  [[nodiscard]] std::string_view text(std::size_t row, std::size_t column) const;
  /// Of a column that holds integers.
  [[nodiscard]] std::int64_t number(std::size_t row, std::size_t column) const;
  /// Of one that failed: what the server says first, without details, which quote records.
  [[nodiscard]] std::string_view message() const;
  [[nodiscard]] pg_result* get() const { return result_.get(); }

 private:
  struct Clear {
    void operator()(pg_result* result) const;
  };
  std::unique_ptr<pg_result, Clear> result_;
};

/// A connection, used by one thread at a time. No call waits longer than a little more than the
/// time-outs: a server that is there and does not answer is out, like one that is not there.
///
/// Invariant: after an outage it is closed, so that whoever goes on begins by opening it.
class PostgresConnection {
 public:
  using MaybeError = std::optional<flow::SinkError>;

  MaybeError open(const PostgresConnectionOptions& options);
  void close() { connection_.reset(); }
  [[nodiscard]] bool is_open() const { return connection_ != nullptr; }
  /// Open, and nothing has come on it that nobody asked for: the end of the session, most likely.
  [[nodiscard]] bool is_quiet() const;

  MaybeError prepare(const std::string& name, const std::string& sql);
  /// A statement that was prepared, in a transaction of its own.
  MaybeError run_prepared(const std::string& name, const PostgresParameters& parameters,
                          PostgresResult& result);
  /// Any other statement; a transaction that it begins goes on with the next one.
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
  /// Why it could not be made.
  [[nodiscard]] flow::SinkError connect_error() const;
  MaybeError set_up_session();
  /// What was just sent: to its end. `sent` is what libpq said of sending it.
  MaybeError finish(int sent, Instant deadline, PostgresResult& result);
  MaybeError flush(Instant deadline);
  /// Waits for the next result; an empty one is the end.
  MaybeError next_result(Instant deadline, PostgresResult& result);
  MaybeError wait(bool to_write, Instant deadline);
  /// Closes the connection if it is worth nothing after `error`.
  flow::SinkError failed(flow::SinkError error);
  [[nodiscard]] flow::SinkError lost() const;
  [[nodiscard]] Instant answer_deadline() const;

  PostgresConnectionOptions options_;
  std::unique_ptr<pg_conn, Finish> connection_;
};

/// "host:port/database", without what is secret.
std::string postgres_name(const std::string& url);

/// The SQLSTATE in a verbose message about a connection that could not be made, which libpq gives
/// in no other way; of several servers that were tried, the one that leaves the most hope.
std::string sqlstate_in(std::string_view message);

}  // namespace baton::pipeline
