#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "pipeline/engine/record.h"

namespace baton::pipeline {

/// A dead letter as read from a store.
struct StoredLetter {
  std::string id{};                            // The id that the store finds the letter by.
  Record record{};                             // As it came from the source.
  std::map<std::string, std::string> about{};  // The letter's own headers: baton-class, ...

  /// The value of a header; empty if the letter does not have it.
  [[nodiscard]] std::string_view what(const std::string& name) const;
  /// How often the record was sent back before.
  [[nodiscard]] std::uint32_t redrives() const;
};

/// Splits a letter that is stored as a record, with the letter's headers among the record's own.
/// Fails with malformed if `kept` is not a letter.
Result<StoredLetter> to_letter(Record kept);
/// Sets the record's place in its source from the letter's headers.
void take_place(StoredLetter& letter);

/// How often a record was sent back before, by its own header.
std::uint32_t redrives_of(const Record& record);

}  // namespace baton::pipeline
