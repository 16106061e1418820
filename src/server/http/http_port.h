#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/net/descriptor.h"
#include "base/net/listen.h"
#include "base/net/listening.h"
#include "base/result.h"
#include "server/session/background.h"

namespace baton {

struct HttpAnswer {
  int status = 200;
  std::string body;
};

/// A small HTTP/1.1 server for GET and HEAD: one request per connection, no body.
///
/// No client can block others. One thread serves all connections and never waits for one of them.
/// Each connection has a time limit for its whole request, and one for taking the answer. If too
/// many are open, the oldest one with an unfinished request is closed. A second thread makes slow
/// answers.
class HttpPort {
 public:
  struct Route {
    std::string path;
    std::string content_type;
    bool slow = false;
    std::function<HttpAnswer()> answer;
  };
  struct Options {
    ListenAddress address;
    std::size_t connections_max = 64;
    std::chrono::milliseconds request_timeout{5000};
    std::chrono::milliseconds answer_timeout{15'000};
  };

  static Result<std::unique_ptr<HttpPort>> start(const Options& options, std::vector<Route> routes);
  HttpPort(const HttpPort&) = delete;
  HttpPort& operator=(const HttpPort&) = delete;
  ~HttpPort();

  [[nodiscard]] int port() const { return port_; }
  /// Closes the port and joins the threads. Idempotent.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  enum class Stage : std::uint8_t { request, waiting, answer, end };
  struct Connection {
    Descriptor socket;
    Stage stage = Stage::request;
    Clock::time_point deadline;
    bool head_only = false;
    std::string bytes{};  // Of the request, then of the answer.
    std::size_t sent = 0;
  };
  // The numbers count up, so that the first is the oldest.
  using Connections = std::map<std::uint64_t, Connection>;

  HttpPort(const Options& options, Listening listening, std::vector<Route> routes);

  void run();
  void accept_from(int listener);
  void make_room();
  /// Each of these returns false if the connection must be closed.
  bool go_on(std::uint64_t number, Connection& connection);
  bool read_request(std::uint64_t number, Connection& connection);
  bool take_request(std::uint64_t number, Connection& connection);
  bool send_answer(std::uint64_t number, Connection& connection);
  bool read_to_end(Connection& connection);
  void begin_answer(Connection& connection, const HttpAnswer& answer, const std::string& type);
  void post_slow(std::uint64_t number, const Route& route);
  void take_slow_answers();
  void close_overdue();
  void watch(std::uint64_t number, const Connection& connection, std::uint32_t events, int how);

  Options options_;
  std::vector<Route> routes_;
  std::vector<Descriptor> listeners_;
  int port_ = 0;
  Descriptor poll_;
  Descriptor wake_;
  std::thread thread_;

  // Only for the thread.
  Connections connections_;
  std::uint64_t next_number_ = 0;

  // An answer that the slow thread has made.
  struct Made {
    std::uint64_t connection = 0;
    HttpAnswer answer;
    std::string content_type;
  };
  std::mutex mutex_;
  std::vector<Made> made_;
  bool stopping_ = false;
  std::unique_ptr<Background> slow_;  // Last, because its thread uses the other members.
};

}  // namespace baton
