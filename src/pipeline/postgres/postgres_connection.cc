#include "pipeline/postgres/postgres_connection.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <libpq-fe.h>

#include "pipeline/engine/gate.h"
#include "pipeline/postgres/postgres_errors.h"

namespace baton::pipeline {
namespace {

using flow::ErrorClass;
using flow::SinkError;
using std::chrono::milliseconds;

// The server ends a statement at its own timeout; only a dead or stopped server exceeds this.
constexpr Duration kAnswerMargin = std::chrono::seconds(2);
constexpr std::size_t kSqlstateSize = 5;

std::int64_t to_milliseconds(Duration time) {
  return std::max<std::int64_t>(1, std::chrono::duration_cast<milliseconds>(time).count());
}

/// The text on one line: libpq puts its advice on a second line, after a tab. Spaces are kept,
/// because sqlstate_in() finds a code by the two spaces before it.
std::string trimmed(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool is_break = c == '\n' || c == '\t' || c == '\r';
    if (!is_break) {
      line.push_back(c);
    } else if (!line.empty() && line.back() != ' ') {
      line.push_back(' ');
    }
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string_view field(const PGresult* result, int which) {
  const char* text = PQresultErrorField(result, which);
  return text == nullptr ? std::string_view{} : text;
}

/// nullopt if the statement succeeded.
std::optional<SinkError> error_of(const PGresult* result) {
  const ExecStatusType status = PQresultStatus(result);
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return std::nullopt;
  const std::string_view code = field(result, PG_DIAG_SQLSTATE);
  const std::string_view detail = field(result, PG_DIAG_MESSAGE_DETAIL);
  const std::string_view message = field(result, PG_DIAG_MESSAGE_PRIMARY);
  std::string text(message);
  if (message.empty()) text = trimmed(PQresultErrorMessage(result));
  if (!detail.empty()) text += fmt::format(" ({})", detail);
  return SinkError{.error_class = class_of_postgres(code),
                   .code = std::string(code),
                   .text = std::move(text),
                   .halve_batch = is_statement_timeout(code)};
}

bool is_sqlstate(std::string_view text) {
  return text.size() == kSqlstateSize && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z');
         });
}

struct FreeOptions {
  void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};
using ParsedUrl = std::unique_ptr<PQconninfoOption, FreeOptions>;

ParsedUrl parse_url(const std::string& url) {
  char* message = nullptr;
  ParsedUrl parsed(PQconninfoParse(url.c_str(), &message));
  PQfreemem(message);  // The message may quote the password.
  return parsed;
}

}  // namespace

std::string sqlstate_in(std::string_view message) {
  constexpr std::string_view kBefore = ":  ";  // "FATAL:  28P01: password authentication failed".
  std::string found;
  for (std::size_t at = message.find(kBefore); at != std::string_view::npos;
       at = message.find(kBefore, at + 1)) {
    const std::string_view code = message.substr(at + kBefore.size(), kSqlstateSize);
    const std::size_t after = at + kBefore.size() + kSqlstateSize;
    if (!is_sqlstate(code) || after >= message.size() || message[after] != ':') continue;
    if (!found.empty() && class_of_postgres(found) != ErrorClass::config) continue;
    found = code;
  }
  return found;
}

std::string postgres_name(const std::string& url) {
  std::string host = "localhost";
  std::string port = "5432";
  std::string database;
  const ParsedUrl parsed = parse_url(url);
  for (const PQconninfoOption* option = parsed.get();
       option != nullptr && option->keyword != nullptr; ++option) {
    if (option->val == nullptr) continue;
    const std::string_view keyword = option->keyword;
    if (keyword == "host") host = option->val;
    if (keyword == "port") port = option->val;
    if (keyword == "dbname") database = option->val;
  }
  return fmt::format("postgres:{}:{}/{}", host, port, database);
}

void PostgresResult::Clear::operator()(pg_result* result) const { PQclear(result); }

std::size_t PostgresResult::rows() const {
  return static_cast<std::size_t>(PQntuples(result_.get()));
}

bool PostgresResult::is_null(std::size_t row, std::size_t column) const {
  return PQgetisnull(result_.get(), static_cast<int>(row), static_cast<int>(column)) != 0;
}

std::string_view PostgresResult::text(std::size_t row, std::size_t column) const {
  const int at_row = static_cast<int>(row);
  const int at_column = static_cast<int>(column);
  return {PQgetvalue(result_.get(), at_row, at_column),
          static_cast<std::size_t>(PQgetlength(result_.get(), at_row, at_column))};
}

std::int64_t PostgresResult::number(std::size_t row, std::size_t column) const {
  const std::string_view digits = text(row, column);
  std::int64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

std::string_view PostgresResult::message() const {
  return field(result_.get(), PG_DIAG_MESSAGE_PRIMARY);
}

void PostgresConnection::Finish::operator()(pg_conn* connection) const { PQfinish(connection); }

PostgresConnection::MaybeError PostgresConnection::open(const PostgresConnectionOptions& options) {
  close();
  options_ = options;
  if (parse_url(options.url) == nullptr) {
    return SinkError{.error_class = ErrorClass::config,
                     .text = "the url is not a PostgreSQL URL: postgresql://user@host:port/name"};
  }
  const Instant deadline = boot_time() + options.connect_timeout;
  const std::string user_timeout =
      std::to_string(to_milliseconds(options.statement_timeout + kAnswerMargin));
  // The URL overrides the settings before it.
  const std::array<const char*, 8> names{"keepalives_idle",           "keepalives_interval",
                                         "keepalives_count",          "tcp_user_timeout",
                                         "fallback_application_name", "dbname",
                                         "client_encoding",           nullptr};
  const std::array<const char*, 8> values{
      "10", "5", "3", user_timeout.c_str(), "baton", options.url.c_str(), "UTF8", nullptr};
  connection_.reset(PQconnectStartParams(names.data(), values.data(), 1));
  if (connection_ == nullptr) return lost();
  // So that messages contain the SQLSTATE.
  PQsetErrorVerbosity(connection_.get(), PQERRORS_VERBOSE);
  // Otherwise notices go to standard error, for every row if a trigger raises one.
  PQsetNoticeReceiver(connection_.get(), [](void*, const PGresult*) {}, nullptr);
  if (auto error = connect(deadline)) return flow::while_connecting(failed(*std::move(error)));
  PQsetErrorVerbosity(connection_.get(), PQERRORS_DEFAULT);
  // Otherwise sending, or closing with unsent data, blocks if the server does not read.
  PQsetnonblocking(connection_.get(), 1);
  auto error = set_up_session();
  if (!error.has_value()) return std::nullopt;
  close();
  return flow::while_connecting(*std::move(error));
}

bool PostgresConnection::is_quiet() const {
  if (!is_open()) return false;
  pollfd looked_at{.fd = PQsocket(connection_.get()), .events = POLLIN, .revents = 0};
  return ::poll(&looked_at, 1, 0) == 0;
}

PostgresConnection::MaybeError PostgresConnection::connect(Instant deadline) {
  if (PQstatus(connection_.get()) == CONNECTION_BAD) return connect_error();
  for (PostgresPollingStatusType next = PGRES_POLLING_WRITING; next != PGRES_POLLING_OK;
       next = PQconnectPoll(connection_.get())) {
    if (next == PGRES_POLLING_FAILED) return connect_error();
    if (auto error = wait(next == PGRES_POLLING_WRITING, deadline)) return error;
  }
  return std::nullopt;
}

SinkError PostgresConnection::connect_error() const {
  const std::string message = trimmed(PQerrorMessage(connection_.get()));
  std::string code = sqlstate_in(message);
  // The server asks for a password and none is given: libpq's own error has no code.
  if (code.empty() && PQconnectionNeedsPassword(connection_.get()) != 0) code = "28P01";
  return {.error_class = class_of_postgres(code),
          .code = code,
          .text = message.substr(0, message.find("\nLOCATION:"))};
}

PostgresConnection::MaybeError PostgresConnection::set_up_session() {
  PostgresParameters parameters;
  parameters.add_text(std::to_string(to_milliseconds(options_.statement_timeout)));
  PostgresResult result;
  // A worker that stops during a transaction must not keep its locks, and rows that are reported as
  // written must be on the disk.
  return run(
      "SELECT set_config('statement_timeout', $1::text, false), "
      "set_config('idle_in_transaction_session_timeout', $1::text, false), "
      "set_config('synchronous_commit', CASE current_setting('synchronous_commit') "
      "WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)",
      parameters, result);
}

Instant PostgresConnection::answer_deadline() const {
  return boot_time() + options_.statement_timeout + kAnswerMargin;
}

/// Parameters in the form that libpq takes.
struct PostgresConnection::Arguments {
  explicit Arguments(const PostgresParameters& parameters)
      : count(static_cast<int>(parameters.size())), formats(parameters.size(), 1) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      values.push_back(parameters.bytes(i).data());
      lengths.push_back(static_cast<int>(parameters.bytes(i).size()));
    }
  }

  int count;
  std::vector<const char*> values{};
  std::vector<int> lengths{};
  std::vector<int> formats;
};

PostgresConnection::MaybeError PostgresConnection::prepare(const std::string& name,
                                                           const std::string& sql) {
  PostgresResult result;
  const int sent = PQsendPrepare(connection_.get(), name.c_str(), sql.c_str(), 0, nullptr);
  return finish(sent, answer_deadline(), result);
}

PostgresConnection::MaybeError PostgresConnection::run_prepared(
    const std::string& name, const PostgresParameters& parameters, PostgresResult& result) {
  const Arguments all(parameters);
  const int sent =
      PQsendQueryPrepared(connection_.get(), name.c_str(), all.count, all.values.data(),
                          all.lengths.data(), all.formats.data(), 0);
  return finish(sent, answer_deadline(), result);
}

PostgresConnection::MaybeError PostgresConnection::run(const std::string& sql,
                                                       const PostgresParameters& parameters,
                                                       PostgresResult& result) {
  const Arguments all(parameters);
  const int sent = PQsendQueryParams(connection_.get(), sql.c_str(), all.count, nullptr,
                                     all.values.data(), all.lengths.data(), all.formats.data(), 0);
  return finish(sent, answer_deadline(), result);
}

PostgresConnection::MaybeError PostgresConnection::run(const std::string& sql) {
  PostgresResult result;
  return run(sql, {}, result);
}

PostgresConnection::MaybeError PostgresConnection::ask(const std::string& sql, Duration within) {
  PostgresResult result;
  const int sent = PQsendQuery(connection_.get(), sql.c_str());
  return finish(sent, boot_time() + within, result);
}

PostgresConnection::MaybeError PostgresConnection::finish(int sent, Instant deadline,
                                                          PostgresResult& result) {
  if (sent == 0) return failed(lost());
  if (auto error = flush(deadline)) return failed(*std::move(error));
  MaybeError error;
  while (true) {
    PostgresResult next;
    if (auto broken = next_result(deadline, next)) {
      // An error from before the connection broke is more specific.
      close();
      return error.has_value() ? error : broken;
    }
    if (next.get() == nullptr) break;
    if (!error.has_value()) error = error_of(next.get());
    result = std::move(next);
    // On a broken connection libpq may return errors without end, and only the end of the results
    // proves that the transaction is committed.
    if (PQstatus(connection_.get()) == CONNECTION_BAD) return failed(error.value_or(lost()));
  }
  if (error.has_value()) return failed(*std::move(error));
  return std::nullopt;
}

PostgresConnection::MaybeError PostgresConnection::flush(Instant deadline) {
  while (true) {
    const int left = PQflush(connection_.get());
    if (left == 0) return std::nullopt;
    if (left < 0) return lost();
    if (auto error = wait(true, deadline)) return error;
    // A server that has unsent data may stop reading until that data is read.
    if (PQconsumeInput(connection_.get()) == 0) return lost();
  }
}

PostgresConnection::MaybeError PostgresConnection::next_result(Instant deadline,
                                                               PostgresResult& result) {
  while (PQisBusy(connection_.get()) != 0) {
    if (auto error = wait(false, deadline)) return error;
    if (PQconsumeInput(connection_.get()) == 0) return lost();
  }
  result = PostgresResult(PQgetResult(connection_.get()));
  return std::nullopt;
}

PostgresConnection::MaybeError PostgresConnection::wait(bool to_write, Instant deadline) {
  while (true) {
    const Duration left = deadline - boot_time();
    if (left <= Duration::zero()) {
      return SinkError{.error_class = ErrorClass::outage, .text = "the server does not answer"};
    }
    pollfd waited{.fd = PQsocket(connection_.get()),
                  .events = static_cast<short>(to_write ? POLLIN | POLLOUT : POLLIN),
                  .revents = 0};
    // While connecting, only writability is awaited.
    if (to_write && PQstatus(connection_.get()) != CONNECTION_OK) waited.events = POLLOUT;
    const int ready = ::poll(&waited, 1, static_cast<int>(to_milliseconds(left)));
    if (ready > 0) return std::nullopt;
    if (ready < 0 && errno != EINTR) return lost();
  }
}

SinkError PostgresConnection::failed(SinkError error) {
  const bool lost_it = PQstatus(connection_.get()) == CONNECTION_BAD;
  if (lost_it || error.error_class == ErrorClass::outage) close();
  return error;
}

SinkError PostgresConnection::lost() const {
  const std::string message = connection_ == nullptr ? "" : PQerrorMessage(connection_.get());
  return {.error_class = ErrorClass::outage,
          .text = message.empty() ? "the connection is lost" : trimmed(message)};
}

}  // namespace baton::pipeline
