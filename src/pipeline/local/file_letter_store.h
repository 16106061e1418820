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
/// A letter that was taken is crossed out where it stands, by its first byte: that costs the same
/// however long the file is, and no crash can do it by halves. At the end of a run the lines that
/// are left are copied into a new file, which takes the place of the old one. What is no letter
/// stays, and so does whatever comes meanwhile.
class FileLetterStore : public DeadLetterStore {
 public:
  /// Fails with not_found if there is no such file.
  static Result<std::unique_ptr<FileLetterStore>> open(const std::string& path);

  Status read(const std::function<bool(FoundLetter)>& see) override;
  Result<StoredLetter> find(const std::string& id) override;
  Result<std::uint64_t> take(LetterTaker& taker) override;

 private:
  explicit FileLetterStore(std::string path) : path_(std::move(path)) {}

  /// Nothing for a line that is empty or crossed out.
  [[nodiscard]] std::optional<FoundLetter> letter_of(const LetterLines::Line& line) const;
  /// To take letters from, with nobody else who does.
  [[nodiscard]] Result<LetterFile> open_to_take() const;
  Status offer_all(LetterFile& file, LetterTaker& taker);
  Status cross_out(LetterFile& file, LetterTaker& taker);
  /// Puts a file without the lines that are crossed out into the place of this one.
  Status sweep(LetterFile& file) const;
  static Status copy_rest(const LetterFile& from, LetterFile& to);

  std::string path_;  // Behind all links: a file is replaced, not a link.
  std::vector<off_t> taken_;
  bool has_crossed_out_ = false;
};

}  // namespace baton::pipeline
