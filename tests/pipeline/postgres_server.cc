#include "pipeline/postgres_server.h"

#include <pwd.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <libpq-fe.h>

#include "e2e/free_port.h"

namespace baton::pipeline {
namespace {

constexpr e2e::seconds kWithin{30};

std::string program(std::string_view name) {
  std::string newest;
  std::error_code none;
  for (const auto& version : std::filesystem::directory_iterator("/usr/lib/postgresql", none)) {
    const std::string path = (version.path() / "bin" / name).string();
    if (::access(path.c_str(), X_OK) == 0 && path > newest) newest = path;
  }
  return newest;
}

/// The user that runs it if we are root.
const passwd* other_user() {
  const passwd* user = ::getpwnam("postgres");           // NOLINT(concurrency-mt-unsafe)
  return user != nullptr ? user : ::getpwnam("nobody");  // NOLINT(concurrency-mt-unsafe)
}

std::string sqlstate_of(const PGresult* result) {
  const ExecStatusType status = PQresultStatus(result);
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return {};
  const char* code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  return code == nullptr ? "none" : code;
}

}  // namespace

std::string PostgresServer::missing() {
  if (program("postgres").empty() || program("initdb").empty()) {
    return "PostgreSQL is not installed: apt-get install postgresql";
  }
  if (::getuid() == 0 && other_user() == nullptr) return "there is no user to run PostgreSQL";
  return {};
}

std::string PostgresServer::mount_options() {
  if (::getuid() != 0) return "mode=0700";
  return fmt::format("mode=0700,uid={},gid={}", other_user()->pw_uid, other_user()->pw_gid);
}

PostgresServer::PostgresServer(std::vector<std::string> initdb)
    : initdb_(std::move(initdb)), port_(e2e::free_port()) {}

PostgresServer::~PostgresServer() {
  if (is_paused_) resume();
  if (is_running()) stop_immediate();
}

std::vector<std::string> PostgresServer::as_user(std::vector<std::string> command) const {
  if (::getuid() != 0) return command;
  // The server ends with the test; a change of user resets that setting, so it is set again.
  std::vector<std::string> all{"/usr/bin/setpriv",
                               fmt::format("--reuid={}", other_user()->pw_uid),
                               fmt::format("--regid={}", other_user()->pw_gid),
                               "--clear-groups",
                               "--pdeathsig=QUIT",
                               "--"};
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

bool PostgresServer::make_data() {
  if (::getuid() == 0 &&
      ::chown(folder_.path().c_str(), other_user()->pw_uid, other_user()->pw_gid) != 0) {
    return false;
  }
  std::vector<std::string> initdb{
      program("initdb"), "-D",           folder_ / "data", "-U",
      "baton",           "--auth=trust", "--no-sync",      "--encoding=UTF8",
      "--locale=C.UTF-8"};
  initdb.insert(initdb.end(), initdb_.begin(), initdb_.end());
  const auto made = e2e::run_command(as_user(std::move(initdb)));
  if (made.exit_code != 0) {
    ADD_FAILURE() << "initdb: " << made.err;
    return false;
  }
  e2e::write_file(folder_ / "data/pg_hba.conf",
                  fmt::format("host all {} 127.0.0.1/32 scram-sha-256\n"
                              "host all all 127.0.0.1/32 trust\nlocal all all trust\n",
                              kGuarded));
  e2e::write_file(folder_ / "data/postgresql.conf",
                  fmt::format("listen_addresses = '127.0.0.1'\nport = {}\n"
                              "unix_socket_directories = '{}'\nfsync = on\n"
                              "shared_buffers = 64MB\nmax_connections = 40\n"
                              "deadlock_timeout = 500ms\nautovacuum = on\n",
                              port_, folder_.path().string()));
  return true;
}

bool PostgresServer::start() {
  const bool is_new = !has_data_;
  if (is_new && !make_data()) return false;
  has_data_ = true;
  child_ = std::make_unique<e2e::ChildProcess>(
      e2e::ChildProcess::Options{.command = as_user({program("postgres"), "-D", folder_ / "data"}),
                                 .err_file = folder_ / "log"});
  e2e::eventually([&] { return !is_running() || PQping(url().c_str()) == PQPING_OK; }, kWithin);
  if (!is_running() || PQping(url().c_str()) != PQPING_OK) {
    ADD_FAILURE() << "PostgreSQL did not start: " << log();
    return false;
  }
  if (is_new) query(fmt::format("CREATE ROLE {} LOGIN PASSWORD '{}'", kGuarded, kPassword));
  return true;
}

bool PostgresServer::is_running() { return child_ != nullptr && !child_->exit_code(); }

void PostgresServer::stop(int number) {
  child_->signal(number);
  EXPECT_TRUE(child_->wait(kWithin).has_value()) << "PostgreSQL does not end: " << log();
}

void PostgresServer::stop_fast() { stop(SIGINT); }
void PostgresServer::stop_immediate() { stop(SIGQUIT); }

void PostgresServer::kill() {
  pause();  // Otherwise those that see the first one end would still say goodbye.
  signal_all(SIGKILL);
  is_paused_ = false;
  EXPECT_TRUE(child_->wait(kWithin).has_value());
}

/// Its processes are each in a session of their own.
void PostgresServer::signal_all(int number) const {
  // Looked up while it lives: orphans have another parent.
  std::istringstream children(
      e2e::read_file(fmt::format("/proc/{0}/task/{0}/children", child_->pid())));
  // The first process first: it would restart others, or react to their end.
  child_->signal(number);
  for (pid_t pid = 0; children >> pid;) ::kill(pid, number);
}

void PostgresServer::pause() {
  is_paused_ = true;
  signal_all(SIGSTOP);
}

void PostgresServer::resume() {
  is_paused_ = false;
  signal_all(SIGCONT);
}

std::string PostgresServer::url_at(int port, std::string_view database) {
  return fmt::format("postgresql://baton@127.0.0.1:{}/{}?sslmode=disable", port, database);
}

std::string PostgresServer::guarded_url(std::string_view password) const {
  const std::string secret = password.empty() ? "" : fmt::format(":{}", password);
  return fmt::format("postgresql://{}{}@127.0.0.1:{}/postgres?sslmode=disable", kGuarded, secret,
                     port_);
}

PostgresServer::Rows PostgresServer::query(const std::string& sql) const {
  Rows rows;
  PGconn* const connection = PQconnectdb(url().c_str());
  PGresult* const result = PQexec(connection, sql.c_str());
  EXPECT_EQ(sqlstate_of(result), "") << sql << ": " << PQerrorMessage(connection);
  for (int row = 0; row < PQntuples(result); ++row) {
    auto& cells = rows.emplace_back();
    for (int i = 0; i < PQnfields(result); ++i) {
      cells.emplace_back(PQgetisnull(result, row, i) != 0 ? "NULL" : PQgetvalue(result, row, i));
    }
  }
  PQclear(result);
  PQfinish(connection);
  return rows;
}

std::string PostgresServer::value(const std::string& sql) const {
  const Rows rows = query(sql);
  return rows.empty() || rows.front().empty() ? "" : rows.front().front();
}

void PostgresServer::terminate_backends() const {
  query(
      "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
      "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'");
}

void PostgresServer::set_read_only(bool read_only) const {
  query(fmt::format("ALTER SYSTEM SET default_transaction_read_only = {}", read_only));
  query("SELECT pg_reload_conf()");
  EXPECT_TRUE(e2e::eventually(
      [&] { return value("SHOW default_transaction_read_only") == (read_only ? "on" : "off"); }));
}

PostgresSession::PostgresSession(const std::string& url) : connection_(PQconnectdb(url.c_str())) {}

PostgresSession::~PostgresSession() { PQfinish(static_cast<PGconn*>(connection_)); }

std::string PostgresSession::run(const std::string& sql) {
  PGresult* const result = PQexec(static_cast<PGconn*>(connection_), sql.c_str());
  std::string code = sqlstate_of(result);
  PQclear(result);
  return code;
}

std::string insert_sql(const std::string& order_uid) {
  return fmt::format(
      "INSERT INTO orders VALUES ('{}', 't', 'e', 'en', NULL, 'c', 'd', '1', 1, now(), '1', "
      "'somebody', 0, 0)",
      order_uid);
}

}  // namespace baton::pipeline
