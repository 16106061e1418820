#pragma once

#include <sched.h>
#include <sys/mount.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace baton::e2e {

/// A file system that only this thread, and the processes it starts, can see: it disappears with
/// the test, however the test ends.
class PrivateDisk {
 public:
  PrivateDisk(std::string folder, const std::string& options) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", folder_.c_str(), "tmpfs", 0, options.c_str()) != 0) {
      why_not_ = std::strerror(errno);
    }
  }
  PrivateDisk(const PrivateDisk&) = delete;
  PrivateDisk& operator=(const PrivateDisk&) = delete;
  ~PrivateDisk() {
    if (why_not_.empty()) ::umount2(folder_.c_str(), MNT_DETACH);
  }

  void make_read_only() const {
    ASSERT_EQ(::mount(nullptr, folder_.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
  }
  [[nodiscard]] const std::string& why_not() const { return why_not_; }

  /// Fills the disk up to `left` bytes.
  void fill(std::uintmax_t left) {
    constexpr std::uintmax_t kPiece = std::uintmax_t{64} << 20U;
    for (auto free = free_bytes(); free > left; free = free_bytes()) {
      ballast_.push_back(folder_ + "/ballast-" + std::to_string(ballast_.size()));
      std::ofstream(ballast_.back()) << std::string(std::min(free - left, kPiece), 'b');
      if (free_bytes() >= free) return;
    }
  }
  /// Frees that space again.
  void empty() {
    for (const std::string& file : ballast_) std::filesystem::remove(file);
    ballast_.clear();
  }

 private:
  [[nodiscard]] std::uintmax_t free_bytes() const {
    return std::filesystem::space(folder_).available;
  }

  std::vector<std::string> ballast_;
  std::string folder_;
  std::string why_not_;
};

}  // namespace baton::e2e
