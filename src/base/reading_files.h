#pragma once

#include <string>

namespace baton {

/// Exit code of a process whose data folder has files that disagree (docs/operating.md).
inline constexpr int kExitDamaged = 10;

/// While an instance lives, an assertion that fails in its thread means that what was read from the
/// disk is not what any broker wrote: the process does not abort, but names `what` and exits with
/// kExitDamaged.
class ReadingFiles {
 public:
  explicit ReadingFiles(std::string what);
  ReadingFiles(const ReadingFiles&) = delete;
  ReadingFiles& operator=(const ReadingFiles&) = delete;
  ~ReadingFiles();

  /// What this thread is reading; null when it reads nothing.
  static const std::string* now();

 private:
  std::string what_;
  const ReadingFiles* before_;
};

}  // namespace baton
