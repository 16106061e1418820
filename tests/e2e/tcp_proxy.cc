#include "e2e/tcp_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include <fmt/format.h>

namespace baton::e2e {
namespace {

constexpr int kLookMilliseconds = 2;
// How much is read ahead of a receiver that does not read.
constexpr std::size_t kChunksMax = 64;

sockaddr_in loopback(int port) {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<std::uint16_t>(port));
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return where;
}

}  // namespace

TcpProxy::TcpProxy(int server_port, milliseconds latency)
    : server_port_(server_port), latency_(latency) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in where = loopback(0);
  socklen_t size = sizeof where;
  auto* const address = reinterpret_cast<sockaddr*>(&where);
  if (::bind(listener_, address, size) != 0 || ::listen(listener_, 64) != 0) return;
  if (::getsockname(listener_, address, &size) == 0) port_ = ntohs(where.sin_port);
  thread_ = std::thread([this] { run(); });
}

TcpProxy::~TcpProxy() {
  stops_ = true;
  if (thread_.joinable()) thread_.join();
  for (Connection& connection : connections_) close(connection);
  ::close(listener_);
}

std::string TcpProxy::address() const { return fmt::format("127.0.0.1:{}", port_); }

void TcpProxy::run() {
  while (!stops_) {
    std::vector<pollfd> waited{{.fd = listener_, .events = POLLIN, .revents = 0}};
    for (const Connection& connection : connections_) {
      if (!freeze_up_) waited.push_back({.fd = connection.up.from, .events = POLLIN, .revents = 0});
      if (!freeze_down_) {
        waited.push_back({.fd = connection.down.from, .events = POLLIN, .revents = 0});
      }
    }
    ::poll(waited.data(), waited.size(), kLookMilliseconds);
    const bool resets = resets_.exchange(false);
    if (resets) swallows_ = false;
    for (auto at = connections_.begin(); at != connections_.end();) {
      if (!resets) {
        if (!freeze_up_) carry(at->up);
        if (!freeze_down_) carry(at->down);
      }
      if (resets || at->up.closed || at->down.closed) {
        close(*at);
        at = connections_.erase(at);
      } else {
        ++at;
      }
    }
    // After that, a client that reconnects is not reset again.
    if ((waited[0].revents & POLLIN) != 0) accept_one();
  }
}

void TcpProxy::accept_one() {
  const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in where = loopback(server_port_);
  if (::connect(server, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0) {
    ::close(client);
    ::close(server);
    return;
  }
  for (const int socket : {client, server}) ::fcntl(socket, F_SETFL, O_NONBLOCK);
  connections_.push_back({.up = {.from = client, .to = server, .up = true, .under_way = {}},
                          .down = {.from = server, .to = client, .up = false, .under_way = {}}});
}

void TcpProxy::carry(Half& half) const {
  std::array<char, 65536> bytes{};
  while (!half.ended && half.under_way.size() < kChunksMax) {
    const ssize_t got = ::recv(half.from, bytes.data(), bytes.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (got <= 0) {
      half.ended = true;
      break;
    }
    if (!half.up && swallows_) continue;
    half.under_way.emplace_back(Clock::now() + latency_,
                                std::string(bytes.data(), static_cast<std::size_t>(got)));
  }
  while (!half.under_way.empty() && half.under_way.front().first <= Clock::now()) {
    std::string& chunk = half.under_way.front().second;
    const ssize_t sent = ::send(half.to, chunk.data(), chunk.size(), MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (sent < 0) {
      half.closed = true;
      return;
    }
    chunk.erase(0, static_cast<std::size_t>(sent));
    if (!chunk.empty()) return;
    half.under_way.pop_front();
  }
  if (half.ended && half.under_way.empty()) half.closed = true;
}

/// Closes with a reset, so that both ends notice at once.
void TcpProxy::close(Connection& connection) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  for (const int socket : {connection.up.from, connection.up.to}) {
    ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ::close(socket);
  }
}

}  // namespace baton::e2e
