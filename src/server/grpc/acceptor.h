#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "base/logging/gate.h"
#include "base/net/connections.h"
#include "base/net/descriptor.h"
#include "base/net/listen.h"
#include "base/net/listening.h"
#include "base/result.h"

namespace baton {

/// Listens for gRPC, and hands over to gRPC the connections that have begun to speak.
///
/// gRPC 1.51 has a listener of its own, which stops for good once accept() finds no free
/// descriptor. This one goes on; it also holds the number of connections below a limit, so that
/// descriptors are left for files, and closes those that say nothing: at once the oldest of them,
/// when a new one finds the limit reached.
///
/// One thread of its own, from start() to stop().
class Acceptor {
 public:
  struct Options {
    ListenAddress address;
    bool tls = false;
    std::size_t connections_max = 0;
    std::chrono::milliseconds greeting_timeout{0};  // Until the first byte.
    std::chrono::milliseconds unacked_timeout{0};   // As TCP_USER_TIMEOUT.
  };
  /// Takes a connected, non-blocking socket and owns it.
  using HandOver = std::function<void(int listener, int connection)>;

  /// Binds. An error says what stands in the way. `counters` must outlive the acceptor.
  static Result<std::unique_ptr<Acceptor>> bind(const Options& options,
                                                ConnectionCounters& counters);
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;
  ~Acceptor();

  /// The port bound, 0 for a unix socket.
  [[nodiscard]] int port() const { return port_; }
  void start(HandOver hand_over);
  /// Closes the port and joins the thread. Connections that were handed over stay. Idempotent.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  /// A connection that has said nothing yet.
  struct Silent {
    Descriptor socket;
    int listener = -1;
    Clock::time_point deadline;
  };
  /// Their numbers count up, so that the first is the oldest.
  using SilentOnes = std::map<std::uint64_t, Silent>;
  /// A connection that gRPC owns, and whose end nobody tells us: the inode says whether the
  /// descriptor still stands for it.
  struct Handed {
    int descriptor = -1;
    std::uint64_t inode = 0;
  };

  Acceptor(const Options& options, Listening listening, ConnectionCounters& counters);

  void run();
  void set_listening(bool listening);
  void accept_from(int listener);
  void take(Descriptor socket, int listener);
  void prepare(int socket) const;
  /// Looks what a silent connection has to say.
  void look_at(std::uint64_t number);
  void close_overdue();
  [[nodiscard]] bool is_full() const {
    return silent_.size() + handed_.size() >= options_.connections_max;
  }
  /// Forgets connections that have ended. Asks the system for each, so not too often.
  void sweep();
  void tell_full(int socket);

  Options options_;
  ConnectionCounters& counters_;
  HandOver hand_over_;
  std::vector<Descriptor> listeners_;
  int port_ = 0;
  Descriptor poll_;
  Descriptor wake_;
  std::thread thread_;

  // The thread's own.
  SilentOnes silent_;
  std::uint64_t next_number_ = 0;
  std::vector<Handed> handed_;
  Clock::time_point swept_;
  Clock::time_point accept_again_;  // After a failure of accept().
  bool listening_ = false;
  LogGate full_gate_;
  LogGate failed_gate_;
  LogGate foreign_gate_;
  LogGate silent_gate_;
};

}  // namespace baton
