#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "e2e/process.h"

namespace baton::e2e {

/// A TCP connection of a client that sends whatever the test wants, or nothing at all.
class RawConnection {
 public:
  explicit RawConnection(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(static_cast<std::uint16_t>(port));
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // NOLINTNEXTLINE: what the sockets' API wants.
    connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0;
  }
  RawConnection(RawConnection&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), connected_(other.connected_) {}
  RawConnection& operator=(RawConnection&&) = delete;
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;
  ~RawConnection() {
    if (socket_ >= 0) ::close(socket_);
  }

  [[nodiscard]] bool connected() const { return connected_; }
  /// False if the other side has closed.
  bool send(std::string_view bytes) const {
    return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  /// Everything up to the end of the connection; nullopt if that does not come in time.
  [[nodiscard]] std::optional<std::string> read_to_end(milliseconds within) const {
    const auto deadline = Clock::now() + within;
    std::string out;
    while (true) {
      const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now()).count();
      pollfd wait{.fd = socket_, .events = POLLIN, .revents = 0};
      if (left <= 0 || ::poll(&wait, 1, static_cast<int>(left)) <= 0) return std::nullopt;
      std::array<char, 4096> bytes{};
      const ssize_t count = ::recv(socket_, bytes.data(), bytes.size(), 0);
      if (count <= 0) return out;
      out.append(bytes.data(), static_cast<std::size_t>(count));
    }
  }

 private:
  int socket_ = -1;
  bool connected_ = false;
};

}  // namespace baton::e2e
