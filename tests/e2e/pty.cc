#include "e2e/pty.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <stdexcept>

namespace baton::e2e {

Pty::Pty(std::uint16_t columns, std::uint16_t rows)
    : master_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
  std::array<char, 128> name{};
  const bool there = master_ >= 0 && ::grantpt(master_) == 0 && ::unlockpt(master_) == 0 &&
                     ::ptsname_r(master_, name.data(), name.size()) == 0;
  if (!there) throw std::runtime_error("no terminal for the test");
  path_ = name.data();
  slave_ = ::open(path_.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
  const winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  ::ioctl(master_, TIOCSWINSZ, &size);
  reader_ = std::thread([this] { read(); });
}

Pty::~Pty() {
  ending_ = true;
  reader_.join();
  ::close(slave_);
  ::close(master_);
}

void Pty::type(std::string_view text) const {
  if (::write(master_, text.data(), text.size()) < 0) throw std::runtime_error("cannot type");
}

std::string Pty::output() const {
  const std::lock_guard lock(mutex_);
  return output_;
}

void Pty::read() {
  std::array<char, 4096> bytes{};
  while (!ending_) {
    pollfd wait{.fd = master_, .events = POLLIN, .revents = 0};
    if (::poll(&wait, 1, 20) <= 0) continue;
    const ssize_t got = ::read(master_, bytes.data(), bytes.size());
    if (got <= 0) continue;
    const std::lock_guard lock(mutex_);
    output_.append(bytes.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace baton::e2e
