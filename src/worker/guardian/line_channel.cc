#include "worker/guardian/line_channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace baton::worker {
namespace {

constexpr std::size_t kLineBytesMax = 4096;

bool is_later(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

LineChannel::LineChannel(int fd) : fd_(fd) {
  ::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) | O_NONBLOCK);
  ::fcntl(fd_, F_SETFD, FD_CLOEXEC);
}

LineChannel::~LineChannel() { ::close(fd_); }

void LineChannel::send(std::string_view line) {
  out_.append(line);
  out_.push_back('\n');
  flush();
}

bool LineChannel::flush() {
  while (!out_.empty()) {
    const ssize_t sent = ::send(fd_, out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent < 0) return is_later(errno);
    out_.erase(0, static_cast<std::size_t>(sent));
  }
  return true;
}

bool LineChannel::receive(std::vector<std::string>& lines) {
  std::array<char, 4096> bytes{};
  while (true) {
    const ssize_t count = ::recv(fd_, bytes.data(), bytes.size(), 0);
    if (count < 0 && is_later(errno)) break;
    if (count <= 0) return false;
    in_.append(bytes.data(), static_cast<std::size_t>(count));
    std::size_t begin = 0;
    for (std::size_t end = in_.find('\n'); end != std::string::npos; end = in_.find('\n', begin)) {
      lines.push_back(in_.substr(begin, end - begin));
      begin = end + 1;
    }
    in_.erase(0, begin);
    if (in_.size() > kLineBytesMax) return false;
  }
  return true;
}

short LineChannel::events() const {
  return static_cast<short>(out_.empty() ? POLLIN : POLLIN | POLLOUT);
}

}  // namespace baton::worker
