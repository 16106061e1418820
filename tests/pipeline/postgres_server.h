#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "e2e/process.h"

namespace baton::pipeline {

/// A PostgreSQL for the test, on a free port of 127.0.0.1, every commit synced. It refuses to run
/// as root, and then runs as another user.
class PostgresServer {
 public:
  /// Why there is no PostgreSQL here; empty if there is.
  static std::string missing();

  /// For a disk that must belong to the user that runs it.
  static std::string mount_options();

  /// `initdb`: further options for it.
  explicit PostgresServer(std::vector<std::string> initdb = {});
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;
  ~PostgresServer();

  /// Starts on the same port and data as before. A failure fails the test.
  bool start();
  void stop_fast();
  /// Like a crash: clients are not told, and it recovers when it starts.
  void stop_immediate();
  /// SIGKILL, all of its processes.
  void kill();
  /// SIGSTOP and SIGCONT, all of its processes.
  void pause();
  void resume();
  [[nodiscard]] bool is_running();

  [[nodiscard]] int port() const { return port_; }
  /// Without a password. The user that needs one is kGuarded.
  [[nodiscard]] std::string url(std::string_view database = "postgres") const {
    return url_at(port_, database);
  }
  [[nodiscard]] static std::string url_at(int port, std::string_view database = "postgres");
  static constexpr const char* kGuarded = "guarded";
  static constexpr const char* kPassword = "right";
  [[nodiscard]] std::string guarded_url(std::string_view password) const;

  using Rows = std::vector<std::vector<std::string>>;
  /// Runs on a connection of its own. NULL is "NULL". A failure fails the test.
  Rows query(const std::string& sql) const;
  /// The first column of the first row.
  std::string value(const std::string& sql) const;
  /// Every backend except the one that asks.
  void terminate_backends() const;
  void set_read_only(bool read_only) const;
  [[nodiscard]] std::string log() const { return e2e::read_file(folder_ / "log"); }

 private:
  [[nodiscard]] std::vector<std::string> as_user(std::vector<std::string> command) const;
  bool make_data();
  void signal_all(int number) const;
  void stop(int number);

  const std::vector<std::string> initdb_;
  e2e::TempFolder folder_;
  int port_;
  bool has_data_ = false;
  bool is_paused_ = false;
  std::unique_ptr<e2e::ChildProcess> child_;
};

/// A session that a test keeps open, in a transaction for example.
class PostgresSession {
 public:
  explicit PostgresSession(const std::string& url);
  PostgresSession(const PostgresSession&) = delete;
  PostgresSession& operator=(const PostgresSession&) = delete;
  ~PostgresSession();

  /// The SQLSTATE; empty if it succeeded.
  std::string run(const std::string& sql);

 private:
  void* connection_;
};

/// A statement that takes the key of an order, as another client would.
std::string insert_sql(const std::string& order_uid);

}  // namespace baton::pipeline
