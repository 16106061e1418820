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

/// Listens for gRPC, and hands connections over to gRPC once they have sent a byte.
///
/// gRPC 1.51 has its own listener, which stops for good once accept() finds no free descriptor.
/// This one goes on. It also keeps the number of connections below a limit, so that descriptors are
/// left for files, and closes connections that send nothing: after a timeout, or, if a new
/// connection finds the limit reached, at once, the oldest first.
///
/// Has its own thread, from start() to stop().
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

  /// Binds. An error says why it cannot. `counters` must outlive the acceptor.
  static Result<std::unique_ptr<Acceptor>> bind(const Options& options,
                                                ConnectionCounters& counters);
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;
  ~Acceptor();

  /// The bound port; 0 for a unix socket.
  [[nodiscard]] int port() const { return port_; }
  void start(HandOver hand_over);
  /// Closes the port and joins the thread. Connections that were handed over stay. Idempotent.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  /// A connection that has sent nothing yet.
  struct Silent {
    Descriptor socket;
    int listener = -1;
    Clock::time_point deadline;
  };
  /// The numbers count up, so that the first is the oldest.
  using SilentOnes = std::map<std::uint64_t, Silent>;
  /// A connection that gRPC owns. gRPC does not report its end, so the inode tells whether the
  /// descriptor still belongs to it.
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
  /// Reads what a silent connection has sent.
  void look_at(std::uint64_t number);
  void close_overdue();
  [[nodiscard]] bool is_full() const {
    return silent_.size() + handed_.size() >= options_.connections_max;
  }
  /// Forgets connections that have ended. Asks the system for each, so it is not called too often.
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

  // Only for the thread.
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
