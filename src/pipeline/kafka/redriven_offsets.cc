#include "pipeline/kafka/redriven_offsets.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/parse.h"

namespace baton::pipeline {
namespace {

constexpr std::string_view kHead = "redriven1";
constexpr std::size_t kNoteBytesMax = 4096;
constexpr std::size_t kRangeBytesMax = 42;  // Two numbers and their separators.

std::optional<std::int64_t> parse_count(std::string_view text) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40U;
  const auto count = parse_number(text, 1, kMost);
  if (!count.has_value()) return std::nullopt;
  return static_cast<std::int64_t>(*count);
}

/// Removes and returns the word at the beginning of `text`.
std::string_view take_word(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(word.size() + 1, text.size()));
  return word;
}

}  // namespace

RedrivenOffsets RedrivenOffsets::of(std::int64_t next, std::string_view note) {
  RedrivenOffsets offsets(next);
  if (take_word(note) != kHead) return RedrivenOffsets(next);
  std::int64_t at = next;
  while (!note.empty()) {
    const std::string_view word = take_word(note);
    const std::size_t dot = std::min(word.find('.'), word.size());
    const auto open = parse_count(word.substr(0, dot));
    const auto done =
        dot == word.size() ? std::optional<std::int64_t>(1) : parse_count(word.substr(dot + 1));
    if (!open.has_value() || !done.has_value()) return RedrivenOffsets(next);
    offsets.add(at + *open, at + *open + *done);
    at += *open + *done;
  }
  return offsets;
}

bool RedrivenOffsets::contains(std::int64_t offset) const {
  if (offset < next_) return true;
  const auto behind = ranges_.upper_bound(offset);
  return behind != ranges_.begin() && offset < std::prev(behind)->second;
}

void RedrivenOffsets::add(std::int64_t begin, std::int64_t end) {
  begin = std::max(begin, next_);
  if (begin >= end) return;
  auto range = ranges_.upper_bound(begin);
  if (range != ranges_.begin() && std::prev(range)->second >= begin) --range;
  // Ranges that touch the new one become part of it.
  while (range != ranges_.end() && range->first <= end) {
    begin = std::min(begin, range->first);
    end = std::max(end, range->second);
    range = ranges_.erase(range);
  }
  if (begin == next_) {
    next_ = end;
  } else {
    ranges_.emplace(begin, end);
  }
}

std::string RedrivenOffsets::note() const {
  if (ranges_.empty()) return "";
  std::string result(kHead);
  std::int64_t at = next_;
  for (const auto& [begin, end] : ranges_) {
    result += fmt::format(" {}", begin - at);
    if (end - begin > 1) result += fmt::format(".{}", end - begin);
    at = end;
  }
  return result;
}

bool RedrivenOffsets::has_room_for(std::int64_t begin, std::int64_t end) const {
  if (begin <= next_ || ranges_.size() < (kNoteBytesMax / kRangeBytesMax) - 1) return true;
  if (note().size() + kRangeBytesMax <= kNoteBytesMax) return true;
  RedrivenOffsets then = *this;
  then.add(begin, end);
  return then.note().size() <= kNoteBytesMax;
}

}  // namespace baton::pipeline
