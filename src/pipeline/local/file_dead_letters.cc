#include "pipeline/local/file_dead_letters.h"

#include <string_view>
#include <utility>

#include "pipeline/local/file_letter.h"

namespace baton::pipeline {

Result<std::unique_ptr<FileDeadLetters>> FileDeadLetters::open(const std::string& path) {
  BATON_TRY(LetterFile file, LetterFile::open(path, LetterFile::Use::append));
  return std::unique_ptr<FileDeadLetters>(new FileDeadLetters(std::move(file)));
}

Status FileDeadLetters::write(std::span<const DeadLetter> letters) {
  std::string lines = "\n";
  for (const DeadLetter& letter : letters) lines += to_json_line(letter);
  const std::scoped_lock lock(mutex_);
  BATON_TRY_STATUS(file_.lock(LetterFile::Lock::appending));
  // Another process that swept the file or moved it away has left this descriptor on a file without
  // a name.
  while (!file_.is_current()) {
    BATON_TRY(file_, LetterFile::open(file_.path(), LetterFile::Use::append));
    BATON_TRY_STATUS(file_.lock(LetterFile::Lock::appending));
  }
  const Status appended = append(lines);
  file_.unlock(LetterFile::Lock::appending);
  return appended;
}

Status FileDeadLetters::append(std::string_view lines) {
  // An incomplete line, of a failed write or a dead process, is not continued.
  BATON_TRY(const off_t end, file_.size());
  BATON_TRY(const std::string last, file_.read(end - 1, end > 0 ? 1 : 0));
  if (last.empty() || last == "\n") lines.remove_prefix(1);
  BATON_TRY_STATUS(file_.append(lines));
  return file_.sync();
}

}  // namespace baton::pipeline
