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

/// Selects letters: each field must have this value ("class", "code", "stage", "source",
/// "partition").
using LetterFilter = std::vector<std::pair<std::string, std::string>>;
bool matches(const StoredLetter& letter, const LetterFilter& filter);

struct RedriveRequest {
  std::string pipeline{};  // Letters of other pipelines stay.
  LetterFilter where{};
  std::uint64_t limit = 0;  // 0: all letters that exist now.
  double rate = 0;          // Letters per second; 0: no limit.
  std::uint32_t redrives_max = 3;
  bool dry_run = false;
  std::function<bool()> give_up{};
  /// Called after each letter that was examined.
  std::function<void(std::uint64_t looked_at)> progress{};
};

struct RedriveCounts {
  std::uint64_t redriven = 0;  // Or would be redriven, in a dry run.
  std::uint64_t other = 0;     // Letters that did not match.
  std::uint64_t worn_out = 0;  // Letters that were redriven too often.
  std::uint64_t unreadable = 0;
  std::uint64_t refused = 0;  // Letters that their source refused permanently.
  // Letters that the store could not offer in this run.
  std::uint64_t not_reached = 0;
  std::vector<std::string> unreadable_texts{};  // Errors of the first unreadable letters.
  std::vector<std::string> refused_texts{};     // Errors of the first refused letters: "ID: why".
};

/// Sends letters back to their source, as the original records. Each letter is removed from `store`
/// only after the source has confirmed it.
Result<RedriveCounts> redrive(DeadLetterStore& store, const RedriveRequest& request,
                              RecordOutput& output);

}  // namespace baton::pipeline
