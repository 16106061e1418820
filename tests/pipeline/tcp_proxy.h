#pragma once

#include <atomic>
#include <thread>

namespace baton::pipeline {

/// Stands between a client and a server on 127.0.0.1, so that a test can lose an answer, or the
/// connection, at a moment of its choice. One connection at a time.
class TcpProxy {
 public:
  explicit TcpProxy(int server_port);
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;
  ~TcpProxy();

  [[nodiscard]] int port() const { return port_; }
  /// From now on what the server says is lost; what the client says still arrives.
  void swallow_answers() { swallows_ = true; }
  /// Ends the connection, and lets answers through again.
  void cut() { cuts_ = true; }

 private:
  void run();
  void serve(int client) const;

  const int server_port_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stops_{false};
  mutable std::atomic<bool> swallows_{false};
  mutable std::atomic<bool> cuts_{false};
  std::thread thread_;
};

}  // namespace baton::pipeline
