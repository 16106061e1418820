#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

/// A terminal without a person, for programs that behave differently on one.
namespace baton::e2e {

/// A pseudo-terminal of a given size. Give path() to a child as its standard files.
class Pty {
 public:
  Pty(std::uint16_t columns, std::uint16_t rows);
  Pty(const Pty&) = delete;
  Pty& operator=(const Pty&) = delete;
  ~Pty();

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Types `text`.
  void type(std::string_view text) const;
  /// Everything written to it so far. Line ends are "\r\n".
  [[nodiscard]] std::string output() const;

 private:
  void read();

  int master_ = -1;
  int slave_ = -1;  // Kept open, so that the output of a child that has ended can be read.
  std::string path_;
  mutable std::mutex mutex_;
  std::string output_;  // Under mutex_.
  std::atomic<bool> ending_ = false;
  std::thread reader_;
};

}  // namespace baton::e2e
