#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "pipeline/engine/dead_letter.h"
#include "pipeline/local/letter_file.h"

namespace baton::pipeline {

/// Dead letters as lines of JSON at the end of a file, synced before they count as written. A
/// letter that is written again is stored twice, under one id. Other processes may append to the
/// same file, and FileLetterStore may remove lines from it.
class FileDeadLetters : public DeadLetterTarget {
 public:
  static Result<std::unique_ptr<FileDeadLetters>> open(const std::string& path);

  Status write(std::span<const DeadLetter> letters) override;
  [[nodiscard]] std::string name() const override { return "file:" + file_.path(); }

 private:
  explicit FileDeadLetters(LetterFile file) : file_(std::move(file)) {}
  /// Lines begin with a newline, which is left out if the last line is complete.
  Status append(std::string_view lines);

  std::mutex mutex_;
  LetterFile file_;
};

}  // namespace baton::pipeline
