#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "pipeline/engine/record.h"

namespace baton::pipeline {

/// A dead letter as it was found where dead letters are kept.
struct StoredLetter {
  std::string id{};                            // By which it is found there.
  Record record{};                             // As it came from the source.
  std::map<std::string, std::string> about{};  // The letter's own headers: baton-class, ...

  /// Of a header that is not there: empty.
  [[nodiscard]] std::string_view what(const std::string& name) const;
  /// How often it was sent back before.
  [[nodiscard]] std::uint32_t redrives() const;
};

/// Of a letter that stands as a record among others, with its own headers beside the record's:
/// parts them again. Fails with malformed when it is none.
Result<StoredLetter> to_letter(Record kept);
/// The record's place in its source, as the letter tells.
void take_place(StoredLetter& letter);

/// How often a record was sent back before, as it says itself.
std::uint32_t redrives_of(const Record& record);

}  // namespace baton::pipeline
