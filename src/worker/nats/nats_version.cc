#include "worker/nats/nats_version.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace baton::coord {
namespace {

// The line is a few hundred bytes; a cluster's lists its members.
constexpr std::size_t kInfoBytesMax = 64UL * 1024;

/// A connection that is closed with its owner.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }

  [[nodiscard]] bool connect(const addrinfo& address, const Deadline& deadline) const {
    if (fd_ < 0) return false;
    if (::connect(fd_, address.ai_addr, address.ai_addrlen) == 0) return true;
    if (errno != EINPROGRESS || !wait(POLLOUT, deadline)) return false;
    int problem = 0;
    socklen_t size = sizeof problem;
    return ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &problem, &size) == 0 && problem == 0;
  }

  /// Everything up to the first line's end.
  [[nodiscard]] std::optional<std::string> read_line(const Deadline& deadline) const {
    std::string line;
    std::array<char, 4096> bytes{};
    while (line.size() < kInfoBytesMax && wait(POLLIN, deadline)) {
      const ssize_t count = ::recv(fd_, bytes.data(), bytes.size(), 0);
      if (count <= 0) return std::nullopt;
      line.append(bytes.data(), static_cast<std::size_t>(count));
      if (const auto end = line.find('\n'); end != std::string::npos) return line.substr(0, end);
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] bool wait(short events, const Deadline& deadline) const {
    pollfd waiting{.fd = fd_, .events = events, .revents = 0};
    return ::poll(&waiting, 1, static_cast<int>(deadline.left().count())) == 1;
  }

  int fd_;
};

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses resolve(const std::string& address) {
  const auto colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &found) != 0) {
    found = nullptr;
  }
  return {found, &::freeaddrinfo};
}

std::optional<std::string> read_greeting(const std::string& address, const Deadline& deadline) {
  const Addresses addresses = resolve(address);
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    const Socket socket(
        ::socket(each->ai_family, each->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (socket.connect(*each, deadline)) return socket.read_line(deadline);
  }
  return std::nullopt;
}

}  // namespace

std::optional<NatsVersion> parse_nats_version(std::string_view text) {
  NatsVersion version;
  const char* at = text.begin();
  for (std::uint32_t* part : {&version.major, &version.minor, &version.patch}) {
    if (part != &version.major) {
      if (at == text.end() || *at != '.') return std::nullopt;
      ++at;
    }
    const auto [end, problem] = std::from_chars(at, text.end(), *part);
    if (problem != std::errc{}) return std::nullopt;
    at = end;
  }
  return version;
}

std::string to_string(const NatsVersion& version) {
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

Result<NatsVersion> ask_nats_version(const std::string& address, const Deadline& deadline) {
  constexpr std::string_view kInfo = "INFO ";
  const std::optional<std::string> line = read_greeting(address, deadline);
  if (!line) {
    return Error{Errc::unavailable, fmt::format("the NATS server at {} does not answer", address)};
  }
  if (line->starts_with(kInfo)) {
    const auto info = nlohmann::json::parse(line->substr(kInfo.size()), nullptr, false);
    if (info.is_object() && info.contains("version") && info["version"].is_string()) {
      const auto version = parse_nats_version(info["version"].get<std::string>());
      if (version) return *version;
    }
  }
  return Error{Errc::failed_precondition,
               fmt::format("what answers at {} is not a NATS server", address)};
}

}  // namespace baton::coord
