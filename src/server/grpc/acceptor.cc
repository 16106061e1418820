#include "server/grpc/acceptor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/logging/log.h"

namespace baton {
namespace {

constexpr std::chrono::milliseconds kTick{200};
constexpr std::chrono::seconds kSweepInterval{1};
constexpr std::chrono::milliseconds kSweepIntervalWhenFull{50};
// How long accept() pauses after it found no descriptor.
constexpr std::chrono::milliseconds kAcceptRest{100};
constexpr std::chrono::seconds kLogInterval{10};
constexpr int kAcceptsAtOnce = 64;
constexpr std::size_t kGreetingBytes = 24;
// What an epoll event is for: the eventfd, a listener, or a silent connection.
constexpr std::uint64_t kWake = 0;
constexpr std::uint64_t kFirstListener = 1;
constexpr std::uint64_t kFirstSilent = 1000;

Instant to_instant(std::chrono::steady_clock::time_point now) {
  return {std::chrono::nanoseconds(now.time_since_epoch()).count()};
}

void add_to(const Descriptor& poll, int descriptor, std::uint64_t number) {
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {.u64 = number}};
  ::epoll_ctl(poll.number(), EPOLL_CTL_ADD, descriptor, &event);
}

/// 0 if the descriptor is not open, or not a socket.
std::uint64_t inode_of(int descriptor) {
  struct stat found{};
  if (::fstat(descriptor, &found) != 0 || !S_ISSOCK(found.st_mode)) return 0;
  return found.st_ino;
}

}  // namespace

Acceptor::Acceptor(const Options& options, Listening listening, ConnectionCounters& counters)
    : options_(options),
      counters_(counters),
      listeners_(std::move(listening.sockets)),
      port_(listening.port),
      poll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      next_number_(kFirstSilent),
      full_gate_(kLogInterval),
      failed_gate_(kLogInterval),
      foreign_gate_(kLogInterval),
      silent_gate_(kLogInterval) {
  counters_.max = options_.connections_max;
}

Acceptor::~Acceptor() { stop(); }

Result<std::unique_ptr<Acceptor>> Acceptor::bind(const Options& options,
                                                 ConnectionCounters& counters) {
  BATON_TRY(Listening listening, listen_on(options.address));
  std::unique_ptr<Acceptor> out(new Acceptor(options, std::move(listening), counters));
  if (!out->poll_.is_open() || !out->wake_.is_open()) {
    return Error{Errc::unavailable, fmt::format("cannot listen on {}: {}",
                                                options.address.to_string(), std::strerror(errno))};
  }
  return out;
}

void Acceptor::start(HandOver hand_over) {
  hand_over_ = std::move(hand_over);
  add_to(poll_, wake_.number(), kWake);
  set_listening(true);
  thread_ = std::thread([this] { run(); });
}

void Acceptor::stop() {
  if (thread_.joinable()) {
    ::eventfd_write(wake_.number(), 1);
    thread_.join();
  }
  silent_.clear();
  if (options_.address.unix_socket && !listeners_.empty()) {
    ::unlink(options_.address.host.c_str());
  }
  listeners_.clear();
}

void Acceptor::set_listening(bool listening) {
  if (listening_ == listening) return;
  listening_ = listening;
  std::uint64_t number = kFirstListener;
  for (const Descriptor& listener : listeners_) {
    if (listening) {
      add_to(poll_, listener.number(), number++);
    } else {
      ::epoll_ctl(poll_.number(), EPOLL_CTL_DEL, listener.number(), nullptr);
    }
  }
}

void Acceptor::run() {
  std::array<epoll_event, 64> events{};
  while (true) {
    const int count =
        ::epoll_wait(poll_.number(), events.data(), events.size(), static_cast<int>(kTick.count()));
    for (const epoll_event& event : std::span(events).first(std::max(count, 0))) {
      const std::uint64_t number = event.data.u64;
      if (number == kWake) return;
      if (number >= kFirstSilent) {
        look_at(number);
      } else {
        accept_from(listeners_.at(number - kFirstListener).number());
      }
    }
    close_overdue();
    const auto now = Clock::now();
    if (now - swept_ >= kSweepInterval) sweep();
    if (now >= accept_again_) set_listening(true);
    counters_.open = silent_.size() + handed_.size();
  }
}

void Acceptor::accept_from(int listener) {
  for (int i = 0; i < kAcceptsAtOnce && listening_; ++i) {
    Descriptor socket(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.is_open()) {
      counters_.accepted_total.fetch_add(1, std::memory_order_relaxed);
      take(std::move(socket), listener);
      continue;
    }
    if (errno == EAGAIN) return;
    if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO || errno == EPERM) continue;
    // No descriptor, or no memory. The connection waits in the system's queue meanwhile.
    const int problem = errno;
    const auto now = Clock::now();
    set_listening(false);
    accept_again_ = now + kAcceptRest;
    if (const auto more = failed_gate_.pass(to_instant(now))) {
      spdlog::error("event=accept_failed error={} retry_ms={} suppressed={}",
                    log_value(std::strerror(problem)), kAcceptRest.count(), *more);
    }
  }
}

void Acceptor::take(Descriptor socket, int listener) {
  if (is_full() && Clock::now() - swept_ >= kSweepIntervalWhenFull) sweep();
  if (is_full()) {
    tell_full(socket.number());
    counters_.refused_full_total.fetch_add(1, std::memory_order_relaxed);
    // A silent connection is closed to make room for the new one.
    if (silent_.empty()) return;
    silent_.erase(silent_.begin());
  }
  prepare(socket.number());
  const std::uint64_t number = next_number_++;
  add_to(poll_, socket.number(), number);
  silent_.emplace(number, Silent{.socket = std::move(socket),
                                 .listener = listener,
                                 .deadline = Clock::now() + options_.greeting_timeout});
}

void Acceptor::prepare(int socket) const {
  if (options_.address.unix_socket) return;
  const int yes = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  const auto unacked = static_cast<unsigned>(options_.unacked_timeout.count());
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked, sizeof unacked);
}

void Acceptor::look_at(std::uint64_t number) {
  const auto found = silent_.find(number);
  if (found == silent_.end()) return;  // Closed a moment ago, in the same round.
  Silent& silent = found->second;
  std::array<char, kGreetingBytes> bytes{};
  const ssize_t length = ::recv(silent.socket.number(), bytes.data(), bytes.size(), MSG_PEEK);
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (length <= 0) {
    // Closed without a byte, for example by the probe of a load balancer.
    silent_.erase(found);
    return;
  }
  const std::string_view wrong =
      wrong_greeting({bytes.data(), static_cast<std::size_t>(length)}, options_.tls);
  if (!wrong.empty()) {
    counters_.refused_foreign_total.fetch_add(1, std::memory_order_relaxed);
    if (const auto more = foreign_gate_.pass(to_instant(Clock::now()))) {
      spdlog::warn("event=handshake_refused peer={} reason={} suppressed={}",
                   log_value(peer_of(silent.socket.number())), log_value(wrong), *more);
    }
    // gRPC refuses the connection in terms of its protocol.
  }
  ::epoll_ctl(poll_.number(), EPOLL_CTL_DEL, silent.socket.number(), nullptr);
  const int listener = silent.listener;
  const int descriptor = silent.socket.release();
  silent_.erase(found);
  handed_.push_back({.descriptor = descriptor, .inode = inode_of(descriptor)});
  hand_over_(listener, descriptor);
}

void Acceptor::close_overdue() {
  const auto now = Clock::now();
  while (!silent_.empty() && silent_.begin()->second.deadline <= now) {
    const Silent& oldest = silent_.begin()->second;
    counters_.refused_silent_total.fetch_add(1, std::memory_order_relaxed);
    if (const auto more = silent_gate_.pass(to_instant(now))) {
      spdlog::warn("event=handshake_refused peer={} reason={} suppressed={}",
                   log_value(peer_of(oldest.socket.number())),
                   log_value(fmt::format("the client sent nothing within {} ms",
                                         options_.greeting_timeout.count())),
                   *more);
    }
    silent_.erase(silent_.begin());
  }
}

void Acceptor::sweep() {
  swept_ = Clock::now();
  std::erase_if(handed_,
                [](const Handed& handed) { return inode_of(handed.descriptor) != handed.inode; });
}

void Acceptor::tell_full(int socket) {
  const auto more = full_gate_.pass(to_instant(Clock::now()));
  if (!more.has_value()) return;
  spdlog::error("event=connections_exhausted open={} max={} peer={} suppressed={}",
                silent_.size() + handed_.size(), options_.connections_max,
                log_value(peer_of(socket)), *more);
}

}  // namespace baton
