#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace baton::worker {

/// Lines over a stream socket, both ways, without ever blocking: what the other side does not read
/// yet is kept. Owns the descriptor. Not thread-safe.
class LineChannel {
 public:
  /// Makes `fd` non-blocking, and ours alone: no program that we start inherits it.
  explicit LineChannel(int fd);
  LineChannel(const LineChannel&) = delete;
  LineChannel& operator=(const LineChannel&) = delete;
  ~LineChannel();

  void send(std::string_view line);
  /// Writes what was kept. False: nobody is at the other end.
  bool flush();
  /// Appends what has come to `lines`. False: nobody is at the other end, or it talks nonsense.
  bool receive(std::vector<std::string>& lines);

  [[nodiscard]] int fd() const { return fd_; }
  /// What to poll() for.
  [[nodiscard]] short events() const;

 private:
  int fd_;
  std::string in_;
  std::string out_;
};

}  // namespace baton::worker
