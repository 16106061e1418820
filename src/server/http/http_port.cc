#include "server/http/http_port.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>

#include <fmt/format.h>

#include "server/http/http_request.h"

namespace baton {
namespace {

constexpr std::chrono::milliseconds kTick{100};
constexpr std::chrono::milliseconds kAcceptRest{100};
constexpr std::chrono::milliseconds kEndTimeout{1000};
constexpr int kAcceptsAtOnce = 64;
constexpr std::uint64_t kWake = 0;
constexpr std::uint64_t kFirstListener = 1;
constexpr std::uint64_t kFirstConnection = 1000;
constexpr std::uint32_t kIn = EPOLLIN | EPOLLRDHUP;
constexpr const char* kText = "text/plain; charset=utf-8";

std::string_view reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 431: return "Request Header Fields Too Large";
    default: return "Service Unavailable";
  }
}

bool would_block() { return errno == EAGAIN || errno == EINTR; }

}  // namespace

HttpPort::HttpPort(const Options& options, Listening listening, std::vector<Route> routes)
    : options_(options),
      routes_(std::move(routes)),
      listeners_(std::move(listening.sockets)),
      port_(listening.port),
      poll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      next_number_(kFirstConnection),
      slow_(std::make_unique<Background>(1, [] { return Instant{0}; })) {}

HttpPort::~HttpPort() { stop(); }

Result<std::unique_ptr<HttpPort>> HttpPort::start(const Options& options,
                                                  std::vector<Route> routes) {
  BATON_TRY(Listening listening, listen_on(options.address));
  std::unique_ptr<HttpPort> out(new HttpPort(options, std::move(listening), std::move(routes)));
  if (!out->poll_.is_open() || !out->wake_.is_open()) {
    return Error{Errc::unavailable, fmt::format("cannot listen on {}: {}",
                                                options.address.to_string(), std::strerror(errno))};
  }
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kWake}};
  ::epoll_ctl(out->poll_.number(), EPOLL_CTL_ADD, out->wake_.number(), &event);
  event.data.u64 = kFirstListener;
  for (const Descriptor& listener : out->listeners_) {
    ::epoll_ctl(out->poll_.number(), EPOLL_CTL_ADD, listener.number(), &event);
    ++event.data.u64;
  }
  out->thread_ = std::thread([port = out.get()] { port->run(); });
  return out;
}

void HttpPort::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ::eventfd_write(wake_.number(), 1);
  thread_.join();
  slow_->stop();
  connections_.clear();
  listeners_.clear();
}

void HttpPort::run() {
  std::array<epoll_event, 64> events{};
  while (true) {
    const int count =
        ::epoll_wait(poll_.number(), events.data(), events.size(), static_cast<int>(kTick.count()));
    for (const epoll_event& event : std::span(events).first(std::max(count, 0))) {
      const std::uint64_t number = event.data.u64;
      if (number == kWake) {
        take_slow_answers();
      } else if (number < kFirstConnection) {
        accept_from(listeners_.at(number - kFirstListener).number());
      } else if (const auto found = connections_.find(number);
                 found != connections_.end() && !go_on(number, found->second)) {
        connections_.erase(found);
      }
    }
    close_overdue();
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
  }
}

void HttpPort::accept_from(int listener) {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    Descriptor socket(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.is_open()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      // No descriptor is free. The listener would report the connection again at once.
      if (errno != EAGAIN) std::this_thread::sleep_for(kAcceptRest);
      return;
    }
    if (connections_.size() >= options_.connections_max) make_room();
    const std::uint64_t number = next_number_++;
    Connection& taken = connections_[number];
    taken.socket = std::move(socket);
    taken.deadline = Clock::now() + options_.request_timeout;
    watch(number, taken, kIn, EPOLL_CTL_ADD);
  }
}

void HttpPort::make_room() {
  auto victim = std::ranges::find_if(
      connections_, [](const auto& each) { return each.second.stage == Stage::request; });
  if (victim == connections_.end()) victim = connections_.begin();
  connections_.erase(victim);
}

void HttpPort::watch(std::uint64_t number, const Connection& connection, std::uint32_t events,
                     int how) {
  epoll_event event{.events = events, .data = {.u64 = number}};
  ::epoll_ctl(poll_.number(), how, connection.socket.number(), &event);
}

bool HttpPort::go_on(std::uint64_t number, Connection& connection) {
  switch (connection.stage) {
    case Stage::request: return read_request(number, connection);
    case Stage::waiting: return false;  // The client left before its answer was made.
    case Stage::answer: return send_answer(number, connection);
    case Stage::end: return read_to_end(connection);
  }
  return false;
}

bool HttpPort::read_request(std::uint64_t number, Connection& connection) {
  std::array<char, 4096> bytes{};
  const ssize_t count = ::recv(connection.socket.number(), bytes.data(), bytes.size(), 0);
  if (count < 0 && would_block()) return true;
  if (count <= 0) return false;
  connection.bytes.append(bytes.data(), static_cast<std::size_t>(count));
  return take_request(number, connection);
}

bool HttpPort::take_request(std::uint64_t number, Connection& connection) {
  const HttpRequest request = parse_http_head(connection.bytes);
  if (request.state == HttpRequest::State::incomplete) return true;
  if (request.state != HttpRequest::State::complete) {
    const bool large = request.state == HttpRequest::State::too_large;
    begin_answer(
        connection,
        {.status = large ? 431 : 400,
         .body = large ? "the request's head is too large\n" : "this is not an HTTP request\n"},
        kText);
    return send_answer(number, connection);
  }
  connection.head_only = request.method == "HEAD";
  if (request.method != "GET" && request.method != "HEAD") {
    begin_answer(connection, {.status = 405, .body = "only GET and HEAD are served\n"}, kText);
    return send_answer(number, connection);
  }
  const auto route = std::ranges::find(routes_, request.path, &Route::path);
  if (route == routes_.end()) {
    std::string paths = "there is only:\n";
    for (const Route& each : routes_) paths += each.path + "\n";
    begin_answer(connection, {.status = 404, .body = std::move(paths)}, kText);
    return send_answer(number, connection);
  }
  if (route->slow) {
    connection.stage = Stage::waiting;
    connection.deadline = Clock::time_point::max();
    watch(number, connection, 0, EPOLL_CTL_MOD);  // Hang-ups and errors are always reported.
    post_slow(number, *route);
    return true;
  }
  begin_answer(connection, route->answer(), route->content_type);
  return send_answer(number, connection);
}

void HttpPort::begin_answer(Connection& connection, const HttpAnswer& answer,
                            const std::string& type) {
  connection.stage = Stage::answer;
  connection.deadline = Clock::now() + options_.answer_timeout;
  connection.bytes = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Connection: "
      "close\r\n\r\n",
      answer.status, reason_of(answer.status), type, answer.body.size(),
      answer.status == 405 ? "Allow: GET, HEAD\r\n" : "");
  if (!connection.head_only) connection.bytes += answer.body;
  connection.sent = 0;
}

bool HttpPort::send_answer(std::uint64_t number, Connection& connection) {
  while (connection.sent < connection.bytes.size()) {
    const std::string_view rest = std::string_view(connection.bytes).substr(connection.sent);
    const ssize_t count =
        ::send(connection.socket.number(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count < 0) {
      if (!would_block()) return false;
      watch(number, connection, EPOLLOUT, EPOLL_CTL_MOD);
      return true;
    }
    connection.sent += static_cast<std::size_t>(count);
  }
  // Closing now would discard what the client has not read yet, if it has sent more than was read
  // here.
  connection.stage = Stage::end;
  connection.deadline = Clock::now() + kEndTimeout;
  connection.bytes.clear();
  ::shutdown(connection.socket.number(), SHUT_WR);
  watch(number, connection, kIn, EPOLL_CTL_MOD);
  return true;
}

bool HttpPort::read_to_end(Connection& connection) {
  std::array<char, 4096> bytes{};
  const ssize_t count = ::recv(connection.socket.number(), bytes.data(), bytes.size(), 0);
  return count > 0 || (count < 0 && would_block());
}

void HttpPort::post_slow(std::uint64_t number, const Route& route) {
  slow_->post([this, number, &route] {
    Made made{.connection = number, .answer = route.answer(), .content_type = route.content_type};
    {
      const std::lock_guard lock(mutex_);
      made_.push_back(std::move(made));
    }
    ::eventfd_write(wake_.number(), 1);
  });
}

void HttpPort::take_slow_answers() {
  eventfd_t ignored = 0;
  ::eventfd_read(wake_.number(), &ignored);
  std::vector<Made> made;
  {
    const std::lock_guard lock(mutex_);
    made.swap(made_);
  }
  for (const Made& each : made) {
    const auto found = connections_.find(each.connection);
    if (found == connections_.end()) continue;
    begin_answer(found->second, each.answer, each.content_type);
    if (!send_answer(found->first, found->second)) connections_.erase(found);
  }
}

void HttpPort::close_overdue() {
  const auto now = Clock::now();
  std::erase_if(connections_, [&](const auto& each) { return each.second.deadline <= now; });
}

}  // namespace baton
