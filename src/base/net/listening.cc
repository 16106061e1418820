#include "base/net/listening.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace baton {
namespace {

constexpr int kBacklog = 1024;

Error cannot_listen(const ListenAddress& address, std::string_view why) {
  return {Errc::unavailable, fmt::format("cannot listen on {}: {}", address.to_string(), why)};
}

const sockaddr* generic(const auto& address) {
  return reinterpret_cast<const sockaddr*>(&address);  // NOLINT: what the sockets' API wants.
}
sockaddr* generic(auto& address) {
  return reinterpret_cast<sockaddr*>(&address);  // NOLINT
}

Result<sockaddr_un> unix_address(const ListenAddress& address) {
  sockaddr_un out{};
  out.sun_family = AF_UNIX;
  if (address.host.size() >= sizeof out.sun_path) {
    return cannot_listen(address,
                         fmt::format("the path is longer than {} bytes, the system's limit",
                                     sizeof out.sun_path - 1));
  }
  std::memcpy(out.sun_path, address.host.data(), address.host.size());
  return out;
}

/// Removes a socket file that a former process left behind.
Status remove_stale(const ListenAddress& address, const sockaddr_un& where) {
  struct stat found{};
  if (::lstat(address.host.c_str(), &found) != 0) return {};
  if (!S_ISSOCK(found.st_mode)) return cannot_listen(address, "there is a file of that name");
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(probe.number(), generic(where), sizeof where) == 0) {
    return cannot_listen(address, "another process listens there");
  }
  ::unlink(address.host.c_str());
  return {};
}

Result<Listening> listen_unix(const ListenAddress& address) {
  BATON_TRY(const sockaddr_un where, unix_address(address));
  BATON_TRY_STATUS(remove_stale(address, where));
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_open() || ::bind(socket.number(), generic(where), sizeof where) != 0 ||
      ::listen(socket.number(), kBacklog) != 0) {
    return cannot_listen(address, std::strerror(errno));
  }
  Listening out;
  out.sockets.push_back(std::move(socket));
  return out;
}

int port_of(int socket) {
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  ::getsockname(socket, generic(own), &length);
  sockaddr_in v4{};
  std::memcpy(&v4, &own, sizeof v4);  // The port is at the same place in both families.
  return ntohs(v4.sin_port);
}

/// A socket that listens on `where`, with `port` in place of its own; an empty Descriptor, with
/// errno set, on failure.
Descriptor listen_at(const addrinfo& where, int port, bool alone) {
  Descriptor socket(
      ::socket(where.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, where.ai_protocol));
  if (!socket.is_open()) return {};
  sockaddr_storage address{};
  std::memcpy(&address, where.ai_addr, where.ai_addrlen);
  if (where.ai_family == AF_INET6) {
    auto* const v6 = reinterpret_cast<sockaddr_in6*>(&address);  // NOLINT
    v6->sin6_port = htons(static_cast<std::uint16_t>(port));
    // The wildcard takes both families; if a name has two addresses, each gets a socket of its own.
    const int only = alone ? 0 : 1;
    ::setsockopt(socket.number(), IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
  } else {
    auto* const v4 = reinterpret_cast<sockaddr_in*>(&address);  // NOLINT
    v4->sin_port = htons(static_cast<std::uint16_t>(port));
  }
  const int yes = 1;
  ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(socket.number(), generic(address), where.ai_addrlen) != 0 ||
      ::listen(socket.number(), kBacklog) != 0) {
    const int problem = errno;
    socket = Descriptor();
    errno = problem;
    return {};
  }
  return socket;
}

}  // namespace

Result<Listening> listen_on(const ListenAddress& address) {
  if (address.unix_socket) return listen_unix(address);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int problem = ::getaddrinfo(address.host.c_str(), nullptr, &hints, &found);
  if (problem != 0) {
    return cannot_listen(address,
                         fmt::format("host {}: {}", address.host, ::gai_strerror(problem)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  Listening out;
  out.port = address.port;
  int failure = 0;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    Descriptor socket = listen_at(*each, out.port, found->ai_next == nullptr);
    if (!socket.is_open()) {
      failure = errno;
      // A name may have an address of a family that this machine does not have.
      if (failure == EADDRINUSE || failure == EACCES) break;
      continue;
    }
    failure = 0;
    out.port = port_of(socket.number());
    out.sockets.push_back(std::move(socket));
  }
  if (out.sockets.empty() || failure == EADDRINUSE || failure == EACCES) {
    return cannot_listen(address, std::strerror(failure));
  }
  return out;
}

std::string peer_of(int socket) {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  if (::getpeername(socket, generic(peer), &length) != 0) return "unknown";
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (peer.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &peer, sizeof v4);
    ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    return fmt::format("ipv4:{}:{}", text.data(), ntohs(v4.sin_port));
  }
  if (peer.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &peer, sizeof v6);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    return fmt::format("ipv6:[{}]:{}", text.data(), ntohs(v6.sin6_port));
  }
  return "unix";
}

}  // namespace baton
