#pragma once

// For tests only.

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace baton {

/// A new folder that is removed, with its content, at the end of the test. In memory if there is
/// such a place and TEST_TMPDIR does not say otherwise: the tests open some hundred stores, and
/// waiting for a disk proves nothing, as none of them cuts the power.
class TempFolder {
 public:
  TempFolder() : path_(parent() + "baton-store-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "cannot make " << path_;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  /// The path of `name` in the folder.
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  static std::string parent() {
    const char* memory = "/dev/shm";
    const bool usable = ::access(memory, W_OK) == 0 && ::getenv("TEST_TMPDIR") == nullptr;
    return usable ? std::string(memory) + "/" : testing::TempDir();
  }

  std::string path_;
};

}  // namespace baton
