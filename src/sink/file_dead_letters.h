#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "engine/dead_letter.h"

namespace baton::pipeline {

/// Dead letters as lines of JSON at the end of a file, synced before they count as written. A
/// letter that is written again is there twice, under one id.
class FileDeadLetters : public DeadLetterTarget {
 public:
  static Result<std::unique_ptr<FileDeadLetters>> open(const std::string& path);
  FileDeadLetters(const FileDeadLetters&) = delete;
  FileDeadLetters& operator=(const FileDeadLetters&) = delete;
  ~FileDeadLetters() override;

  Status write(std::span<const DeadLetter> letters) override;
  [[nodiscard]] std::string name() const override { return "file:" + path_; }

 private:
  FileDeadLetters(std::string path, int file) : path_(std::move(path)), file_(file) {}

  std::string path_;
  std::mutex mutex_;
  int file_;
};

/// {"id": ..., "headers": {...}, "key": base64, "value": base64}.
std::string to_json_line(const DeadLetter& letter);

}  // namespace baton::pipeline
