#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace baton::pipeline {

/// A file of lines that several processes append to, while one takes lines away. Owns a
/// descriptor.
///
/// Two locks on it, by bytes far behind its end, go with the open file and so with the process:
/// `appending` is held for a moment by whoever appends, and while lines are swept out; `taking` by
/// whoever takes lines away, all the time. Sweeping puts another file in the place of this one: so
/// each lock holds only if the path still names what was locked.
class LetterFile {
 public:
  enum class Use : std::uint8_t { read, take, append };
  enum class Lock : std::uint8_t { appending, taking };

  /// With `append` it is made if it is not there.
  static Result<LetterFile> open(const std::string& path, Use use);
  LetterFile(LetterFile&& other) noexcept;
  LetterFile& operator=(LetterFile&& other) noexcept;
  LetterFile(const LetterFile&) = delete;
  LetterFile& operator=(const LetterFile&) = delete;
  ~LetterFile();

  /// Waits for `appending`; `taking` fails with failed_precondition if somebody has it.
  Status lock(Lock lock);
  void unlock(Lock lock);
  /// Whether the path still names this file.
  [[nodiscard]] bool is_current() const;

  Status append(std::string_view bytes);
  Status overwrite(off_t at, char byte);
  Status sync();
  [[nodiscard]] Result<off_t> size() const;
  /// Fewer than asked for only at the end.
  [[nodiscard]] Result<std::string> read(off_t at, std::size_t bytes) const;
  /// Puts `other`, which has another name in the same folder, in the place of this one, for good.
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
    off_t bytes = 0;  // With its newline, if it has one.
    std::uint64_t number = 0;
    std::string text{};     // Without.
    bool too_long = false;  // Then the text is only its beginning.
  };

  LetterLines(const LetterFile& file, off_t end) : file_(file), end_(end) {}
  /// Nothing at the end.
  Result<std::optional<Line>> next();

 private:
  const LetterFile& file_;
  const off_t end_;
  off_t at_ = 0;  // Of what the buffer holds from used_ on.
  std::uint64_t number_ = 0;
  std::string buffer_;
  std::size_t used_ = 0;
};

}  // namespace baton::pipeline
