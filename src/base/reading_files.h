#pragma once

#include <string>

namespace baton {

/// What a process ends with when files of its data folder disagree (docs/operating.md).
inline constexpr int kExitDamaged = 10;

/// While one lives, an assertion that fails in its thread says that what was read from the disk is
/// not what any broker wrote: the process does not abort, it names `what` and ends with
/// kExitDamaged.
class ReadingFiles {
 public:
  explicit ReadingFiles(std::string what);
  ReadingFiles(const ReadingFiles&) = delete;
  ReadingFiles& operator=(const ReadingFiles&) = delete;
  ~ReadingFiles();

  /// What this thread reads now; null when it reads nothing.
  static const std::string* now();

 private:
  std::string what_;
  const ReadingFiles* before_;
};

}  // namespace baton
