#include "pipeline/engine/stored_letter.h"

#include <algorithm>
#include <utility>

#include "base/parse.h"
#include "pipeline/engine/dead_letter.h"

namespace baton::pipeline {
namespace {

std::uint32_t parse_redrives(std::string_view text) {
  constexpr std::uint64_t kMost = 1'000'000;
  return static_cast<std::uint32_t>(parse_number(text, 0, kMost).value_or(0));
}

bool is_of_letter(std::string_view name) {
  static const auto kNames = [] {
    const Record nothing;
    return DeadLetter{.record = &nothing}.headers();
  }();
  return std::ranges::any_of(kNames, [&](const auto& header) { return header.first == name; });
}

}  // namespace

std::string_view StoredLetter::what(const std::string& name) const {
  const auto found = about.find(name);
  return found == about.end() ? std::string_view() : found->second;
}

std::uint32_t StoredLetter::redrives() const {
  return parse_redrives(what(std::string(kRedrivesHeader)));
}

Result<StoredLetter> to_letter(Record kept) {
  StoredLetter letter;
  for (auto& [name, value] : kept.headers) {
    if (is_of_letter(name)) {
      letter.about[name] = std::move(value);
    } else {
      letter.record.headers.emplace_back(std::move(name), std::move(value));
    }
  }
  if (letter.what("baton-pipeline").empty()) {
    return Error{Errc::malformed, "not a dead letter: it has no header baton-pipeline"};
  }
  letter.record.key = std::move(kept.key);
  letter.record.value = std::move(kept.value);
  take_place(letter);
  return letter;
}

void take_place(StoredLetter& letter) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62U;
  letter.record.partition = static_cast<std::uint32_t>(
      parse_number(letter.what("baton-partition"), 0, 0xffffffff).value_or(0));
  letter.record.offset =
      static_cast<std::int64_t>(parse_number(letter.what("baton-offset"), 0, kMost).value_or(0));
}

std::uint32_t redrives_of(const Record& record) {
  const auto header = std::ranges::find(record.headers, kRedrivesHeader,
                                        &std::pair<std::string, std::string>::first);
  return header == record.headers.end() ? 0 : parse_redrives(header->second);
}

}  // namespace baton::pipeline
