#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace baton::pipeline {

/// A file of lines that several processes append to, while one removes lines. Owns a descriptor.
///
/// It has two locks, on bytes far behind its end, which last as long as the open file and so at
/// most as long as the process: `appending` is held for a moment by each process that appends, and
/// while lines are swept out; `taking` is held for a whole run by the process that removes lines.
/// Sweeping replaces the file, so a lock is valid only if the path still names the locked file.
class LetterFile {
 public:
  enum class Use : std::uint8_t { read, take, append };
  enum class Lock : std::uint8_t { appending, taking };

  /// With `append` the file is created if it does not exist.
  static Result<LetterFile> open(const std::string& path, Use use);
  LetterFile(LetterFile&& other) noexcept;
  LetterFile& operator=(LetterFile&& other) noexcept;
  LetterFile(const LetterFile&) = delete;
  LetterFile& operator=(const LetterFile&) = delete;
  ~LetterFile();

  /// Waits for `appending`; `taking` fails with failed_precondition if another process has it.
  Status lock(Lock lock);
  void unlock(Lock lock);
  /// Whether the path still names this file.
  [[nodiscard]] bool is_current() const;

  Status append(std::string_view bytes);
  Status overwrite(off_t at, char byte);
  Status sync();
  [[nodiscard]] Result<off_t> size() const;
  /// Returns fewer bytes than asked for only at the end.
  [[nodiscard]] Result<std::string> read(off_t at, std::size_t bytes) const;
  /// Durably replaces this file by `other`, which has another name in the same folder.
  Status replace_by(LetterFile& other);

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  LetterFile(std::string path, int file, Use use)
      : path_(std::move(path)), file_(file), use_(use) {}
  [[nodiscard]] Error failure(std::string_view what) const;

  std::string path_;
  int file_ = -1;
  Use use_ = Use::read;
};

/// The lines of a file, up to `end`.
class LetterLines {
 public:
  struct Line {
    off_t at = 0;
    off_t bytes = 0;  // Including its newline, if it has one.
    std::uint64_t number = 0;
    std::string text{};     // Without its newline.
    bool too_long = false;  // The text is only its beginning then.
  };

  LetterLines(const LetterFile& file, off_t end) : file_(file), end_(end) {}
  /// nullopt at the end.
  Result<std::optional<Line>> next();

 private:
  const LetterFile& file_;
  const off_t end_;
  off_t at_ = 0;  // The file offset of the buffer from used_ on.
  std::uint64_t number_ = 0;
  std::string buffer_;
  std::size_t used_ = 0;
};

}  // namespace baton::pipeline
