#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/engine/dead_letter_store.h"
#include "pipeline/local/letter_file.h"

namespace baton::pipeline {

/// The dead letters that FileDeadLetters writes.
///
/// A letter that was taken is crossed out in place, by its first byte: the cost does not depend on
/// the file's length, and a crash cannot leave it half done. At the end of a run the remaining
/// lines are copied into a new file, which replaces the old one. Lines that are not letters stay,
/// and so do lines that are appended meanwhile.
class FileLetterStore : public DeadLetterStore {
 public:
  /// Fails with not_found if the file does not exist.
  static Result<std::unique_ptr<FileLetterStore>> open(const std::string& path);

  Status read(const std::function<bool(FoundLetter)>& see) override;
  Result<StoredLetter> find(const std::string& id) override;
  Result<std::uint64_t> take(LetterTaker& taker) override;

 private:
  explicit FileLetterStore(std::string path) : path_(std::move(path)) {}

  /// nullopt for a line that is empty or crossed out.
  [[nodiscard]] std::optional<FoundLetter> letter_of(const LetterLines::Line& line) const;
  /// Opens the file for taking letters, which excludes other takers.
  [[nodiscard]] Result<LetterFile> open_to_take() const;
  Status offer_all(LetterFile& file, LetterTaker& taker);
  Status cross_out(LetterFile& file, LetterTaker& taker);
  /// Replaces the file by one without the lines that are crossed out.
  Status sweep(LetterFile& file) const;
  static Status copy_rest(const LetterFile& from, LetterFile& to);

  std::string path_;  // With all links resolved, so that a file is replaced and not a link.
  std::vector<off_t> taken_;
  bool has_crossed_out_ = false;
};

}  // namespace baton::pipeline
