#pragma once

#include <atomic>
#include <chrono>
#include <list>
#include <thread>

#include "e2e/process.h"

namespace baton::e2e {

/// Stands between clients and a server on 127.0.0.1, and carries any number of connections, so that
/// a test can lose an answer or a connection at a moment of its choice. It can also stop forwarding
/// without closing anything, as a firewall does that has forgotten a connection; bytes sent
/// meanwhile wait, and arrive when it thaws. It works on its own thread.
class TcpProxy {
 public:
  explicit TcpProxy(int server_port, milliseconds latency = milliseconds{0});
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;
  ~TcpProxy();

  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] std::string address() const;
  /// Nothing passes any more, in either direction. New connections are accepted, but silent.
  void freeze() { freeze_up_ = freeze_down_ = true; }
  void freeze_up() { freeze_up_ = true; }      // What clients send.
  void freeze_down() { freeze_down_ = true; }  // What the server sends.
  void thaw() { freeze_up_ = freeze_down_ = false; }
  /// From now on what the server sends is lost; what clients send still arrives.
  void swallow_answers() { swallows_ = true; }
  /// Resets every connection, at both ends. Answers on later ones are not swallowed.
  void reset() { resets_ = true; }

 private:
  struct Half {
    int from = -1;
    int to = -1;
    bool up = false;
    std::list<std::pair<Clock::time_point, std::string>> under_way;
    bool ended = false;  // At the end of the stream.
    bool closed = false;
  };
  struct Connection {
    Half up;
    Half down;
  };

  void run();
  void accept_one();
  void carry(Half& half) const;
  void close(Connection& connection);

  const int server_port_;
  const milliseconds latency_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stops_{false};
  std::atomic<bool> freeze_up_{false};
  std::atomic<bool> freeze_down_{false};
  std::atomic<bool> swallows_{false};
  std::atomic<bool> resets_{false};
  std::list<Connection> connections_;
  std::thread thread_;
};

}  // namespace baton::e2e
