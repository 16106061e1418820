#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "pipeline/ends/record_output.h"
#include "pipeline/engine/dead_letter_store.h"

namespace baton::pipeline {

/// Which letters: each field must be as said ("class", "code", "stage", "source", "partition").
using LetterFilter = std::vector<std::pair<std::string, std::string>>;
bool matches(const StoredLetter& letter, const LetterFilter& filter);

struct RedriveRequest {
  std::string pipeline{};  // Letters of others stay.
  LetterFilter where{};
  std::uint64_t limit = 0;  // 0: all that are there now.
  double rate = 0;          // A second; 0: as fast as it goes.
  std::uint32_t redrives_max = 3;
  bool dry_run = false;
  std::function<bool()> give_up{};
  /// After each letter that was looked at.
  std::function<void(std::uint64_t looked_at)> progress{};
};

struct RedriveCounts {
  std::uint64_t redriven = 0;  // Or would be.
  std::uint64_t other = 0;     // Did not match.
  std::uint64_t worn_out = 0;  // Were redriven too often.
  std::uint64_t unreadable = 0;
  std::uint64_t refused = 0;                    // By where they came from, for good.
  std::uint64_t not_reached = 0;                // The store could not go through all in one run.
  std::vector<std::string> unreadable_texts{};  // Of the first ones.
  std::vector<std::string> refused_texts{};     // Likewise, "ID: why".
};

/// Sends letters back to where they came from, as the records they were; each is confirmed there
/// before it is gone from `store`.
Result<RedriveCounts> redrive(DeadLetterStore& store, const RedriveRequest& request,
                              RecordOutput& output);

}  // namespace baton::pipeline
