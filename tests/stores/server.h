#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "e2e/process.h"

/// Real servers for tests: on loopback, at free ports, in folders of their own; each is ended with
/// the test, by its id.
namespace baton::stores {

enum class Kind : std::uint8_t { broker, nats, etcd };
std::string_view name_of(Kind kind);

/// One process. It keeps its port and its data from one life to the next.
class Member {
 public:
  Member() = default;
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;
  virtual ~Member() = default;

  /// Starts it and waits until it listens. False if it ended instead, or took longer.
  virtual bool start() = 0;
  virtual void signal(int number) = 0;
  /// Waits for the end.
  virtual void wait() = 0;
  [[nodiscard]] virtual bool is_running() = 0;
  /// Whether it has all data of its cluster; true if that cannot be told.
  [[nodiscard]] virtual bool is_current() { return true; }
  virtual void pause() = 0;  // Sends SIGSTOP, and waits: it neither answers nor hangs up.
  [[nodiscard]] virtual std::string address() const = 0;  // "127.0.0.1:port"
  [[nodiscard]] virtual std::string log() const = 0;      // Of all its lives.
  [[nodiscard]] virtual std::string name() const = 0;     // As its cluster knows it.

  void stop();    // SIGTERM, and waits for the end.
  void kill();    // SIGKILL, and waits for the end.
  void resume();  // SIGCONT.
};

struct ServerOptions {
  Kind kind = Kind::broker;
  int members = 1;        // Of a broker: always 1.
  std::string program{};  // For nats: the program; empty: the newest there is.
  bool jetstream = true;  // For nats.
  bool tls = false;       // `flags` turn it on.
  std::vector<std::string> flags{};
};

/// A store: one server, or a cluster of them. Owned by one test, on the test's own thread.
class Server {
 public:
  /// Why there can be no such server here; empty if there can.
  static std::string missing(const ServerOptions& options);

  explicit Server(ServerOptions options);

  [[nodiscard]] Kind kind() const { return options_.kind; }
  /// Starts every member that is not running, and waits until they serve. A failure fails the test.
  bool start();
  void stop();
  void kill();
  void pause();
  void resume();
  /// Deletes their disks, when none is running. Not for a broker.
  void lose_disks();

  [[nodiscard]] std::size_t size() const { return members_.size(); }
  [[nodiscard]] Member& member(std::size_t number) { return *members_.at(number); }
  /// Of all members: "nats://127.0.0.1:4222,127.0.0.1:4223/bucket"; `more` follows the bucket.
  [[nodiscard]] std::string url(std::string_view bucket, std::string_view more = {}) const;

 private:
  void make_nats();
  void make_etcd();
  /// A cluster that listens may not have a leader yet.
  bool wait_for_leader();

  ServerOptions options_;
  e2e::TempFolder folder_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace baton::stores
