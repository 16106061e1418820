#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace baton::worker {

/// Lines over a stream socket, both ways, without ever blocking: what the other side does not read
/// yet is buffered. Owns the descriptor. Not thread-safe.
class LineChannel {
 public:
  /// Makes `fd` non-blocking and close-on-exec, so that no program we start inherits it.
  explicit LineChannel(int fd);
  LineChannel(const LineChannel&) = delete;
  LineChannel& operator=(const LineChannel&) = delete;
  ~LineChannel();

  void send(std::string_view line);
  /// Writes what is buffered. False if the other end is closed.
  bool flush();
  /// Appends received lines to `lines`. False if the other end is closed, or sends nonsense.
  bool receive(std::vector<std::string>& lines);

  [[nodiscard]] int fd() const { return fd_; }
  /// The events to poll() for.
  [[nodiscard]] short events() const;

 private:
  int fd_;
  std::string in_;
  std::string out_;
};

}  // namespace baton::worker
