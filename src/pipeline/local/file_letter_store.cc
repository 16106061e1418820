#include "pipeline/local/file_letter_store.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "pipeline/local/file_letter.h"

namespace baton::pipeline {
namespace {

// "Cancel" in ASCII: no line of JSON, or of text that people write, begins with it.
constexpr char kCrossedOut = '\x18';
constexpr off_t kChunk = off_t{1} << 20U;

bool is_crossed_out(const LetterLines::Line& line) { return line.text.starts_with(kCrossedOut); }

/// The end of the file at a moment when no process is writing a line.
Result<off_t> settled_end(LetterFile& file) {
  BATON_TRY_STATUS(file.lock(LetterFile::Lock::appending));
  auto end = file.size();
  file.unlock(LetterFile::Lock::appending);
  return end;
}

struct Range {
  off_t begin = 0;
  off_t end = 0;
};

Status copy(const LetterFile& from, Range range, LetterFile& to) {
  for (off_t at = range.begin; at < range.end; at += kChunk) {
    const off_t bytes = std::min(kChunk, range.end - at);
    BATON_TRY(const std::string part, from.read(at, static_cast<std::size_t>(bytes)));
    BATON_TRY_STATUS(to.append(part));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<FileLetterStore>> FileLetterStore::open(const std::string& path) {
  BATON_TRY_STATUS(LetterFile::open(path, LetterFile::Use::read));
  std::error_code ignored;
  const std::filesystem::path whole = std::filesystem::canonical(path, ignored);
  return std::unique_ptr<FileLetterStore>(
      new FileLetterStore(whole.empty() ? path : whole.string()));
}

std::optional<FoundLetter> FileLetterStore::letter_of(const LetterLines::Line& line) const {
  if (line.text.empty() || is_crossed_out(line)) return std::nullopt;
  FoundLetter letter = line.too_long ? Error{Errc::malformed, "not a dead letter: too long"}
                                     : from_json_line(line.text);
  if (letter.has_value()) return letter;
  return Error{Errc::malformed,
               fmt::format("{}, line {}: {}", path_, line.number, letter.error().text)};
}

Status FileLetterStore::read(const std::function<bool(FoundLetter)>& see) {
  BATON_TRY(LetterFile file, LetterFile::open(path_, LetterFile::Use::read));
  BATON_TRY(const off_t end, settled_end(file));
  LetterLines lines(file, end);
  while (true) {
    BATON_TRY(const std::optional<LetterLines::Line> line, lines.next());
    if (!line.has_value()) return {};
    auto letter = letter_of(*line);
    if (letter.has_value() && !see(*std::move(letter))) return {};
  }
}

Result<StoredLetter> FileLetterStore::find(const std::string& id) {
  std::optional<StoredLetter> found;
  BATON_TRY_STATUS(read([&](FoundLetter letter) {
    if (letter.has_value() && letter->id == id) found = *std::move(letter);
    return !found.has_value();
  }));
  if (found.has_value()) return *std::move(found);
  return Error{Errc::not_found, fmt::format("{} has no dead letter {}", path_, id)};
}

Result<LetterFile> FileLetterStore::open_to_take() const {
  while (true) {
    BATON_TRY(LetterFile file, LetterFile::open(path_, LetterFile::Use::take));
    BATON_TRY_STATUS(file.lock(LetterFile::Lock::taking));
    if (file.is_current()) return file;
  }
}

Result<std::uint64_t> FileLetterStore::take(LetterTaker& taker) {
  BATON_TRY(LetterFile file, open_to_take());
  BATON_TRY_STATUS(offer_all(file, taker));
  if (has_crossed_out_) BATON_TRY_STATUS(sweep(file));
  return 0;
}

Status FileLetterStore::offer_all(LetterFile& file, LetterTaker& taker) {
  BATON_TRY(const off_t end, settled_end(file));
  LetterLines lines(file, end);
  while (taker.wants_more()) {
    BATON_TRY(const std::optional<LetterLines::Line> line, lines.next());
    if (!line.has_value()) break;
    has_crossed_out_ = has_crossed_out_ || is_crossed_out(*line);
    auto letter = letter_of(*line);
    if (!letter.has_value()) continue;
    BATON_TRY(const bool taken, taker.offer(*std::move(letter)));
    if (taken) taken_.push_back(line->at);
    if (taker.is_due()) BATON_TRY_STATUS(cross_out(file, taker));
  }
  return cross_out(file, taker);
}

Status FileLetterStore::cross_out(LetterFile& file, LetterTaker& taker) {
  BATON_TRY(const auto refused, taker.confirm());
  const std::vector<off_t> taken = std::exchange(taken_, {});
  if (taken.size() == refused.size()) return {};
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (!refused.contains(i)) BATON_TRY_STATUS(file.overwrite(taken[i], kCrossedOut));
  }
  has_crossed_out_ = true;
  return file.sync();
}

Status FileLetterStore::sweep(LetterFile& file) const {
  const std::string fresh_path = path_ + ".redriving";
  (void)::unlink(fresh_path.c_str());  // Left by a killed run.
  BATON_TRY(LetterFile fresh, LetterFile::open(fresh_path, LetterFile::Use::append));
  BATON_TRY_STATUS(file.lock(LetterFile::Lock::appending));
  Status status = copy_rest(file, fresh);
  if (status.has_value()) status = file.replace_by(fresh);
  file.unlock(LetterFile::Lock::appending);
  if (!status.has_value()) (void)::unlink(fresh_path.c_str());
  return status;
}

Status FileLetterStore::copy_rest(const LetterFile& from, LetterFile& to) {
  BATON_TRY(const off_t end, from.size());
  LetterLines lines(from, end);
  off_t rest = 0;  // Nothing from here on is copied yet.
  while (true) {
    BATON_TRY(const std::optional<LetterLines::Line> line, lines.next());
    if (!line.has_value()) return copy(from, {rest, end}, to);
    if (!is_crossed_out(*line)) continue;
    BATON_TRY_STATUS(copy(from, {rest, line->at}, to));
    rest = line->at + line->bytes;
  }
}

}  // namespace baton::pipeline
