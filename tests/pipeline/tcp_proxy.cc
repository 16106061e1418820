#include "pipeline/tcp_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>

namespace baton::pipeline {
namespace {

constexpr int kLookMilliseconds = 5;

sockaddr_in loopback(int port) {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<std::uint16_t>(port));
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return where;
}

/// False: one side has ended.
bool forward(int from, int to, bool swallow) {
  std::array<char, 65536> bytes{};
  const ssize_t got = ::recv(from, bytes.data(), bytes.size(), 0);
  if (got <= 0) return false;
  for (ssize_t sent = 0; sent < got && !swallow;) {
    const ssize_t now =
        ::send(to, bytes.data() + sent, static_cast<std::size_t>(got - sent), MSG_NOSIGNAL);
    if (now <= 0) return false;
    sent += now;
  }
  return true;
}

}  // namespace

TcpProxy::TcpProxy(int server_port) : server_port_(server_port) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in where = loopback(0);
  socklen_t size = sizeof where;
  auto* const address = reinterpret_cast<sockaddr*>(&where);
  if (::bind(listener_, address, size) != 0 || ::listen(listener_, 8) != 0) return;
  if (::getsockname(listener_, address, &size) == 0) port_ = ntohs(where.sin_port);
  thread_ = std::thread([this] { run(); });
}

TcpProxy::~TcpProxy() {
  stops_ = true;
  if (thread_.joinable()) thread_.join();
  ::close(listener_);
}

void TcpProxy::run() {
  while (!stops_) {
    pollfd waited{.fd = listener_, .events = POLLIN, .revents = 0};
    if (::poll(&waited, 1, kLookMilliseconds) <= 0) continue;
    const int client = ::accept(listener_, nullptr, nullptr);
    if (client >= 0) serve(client);
    ::close(client);
  }
}

void TcpProxy::serve(int client) const {
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in where = loopback(server_port_);
  bool goes_on = ::connect(server, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0;
  while (goes_on && !stops_ && !cuts_) {
    std::array<pollfd, 2> waited{pollfd{.fd = client, .events = POLLIN, .revents = 0},
                                 pollfd{.fd = server, .events = POLLIN, .revents = 0}};
    if (::poll(waited.data(), waited.size(), kLookMilliseconds) <= 0) continue;
    if (waited[0].revents != 0) goes_on = forward(client, server, false);
    if (goes_on && waited[1].revents != 0) goes_on = forward(server, client, swallows_);
  }
  if (cuts_) swallows_ = false;
  cuts_ = false;
  ::close(server);
}

}  // namespace baton::pipeline
