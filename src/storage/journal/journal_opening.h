#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "storage/journal/segment.h"

namespace baton {

/// Suffixes of files that are not live segments: a prepared one, and one that is being prepared.
inline constexpr std::string_view kSpareSuffix = ".spare";
inline constexpr std::string_view kUnfinishedSuffix = ".new";

/// "00000000000000000007.spare".
std::string spare_name(std::uint64_t number, std::string_view suffix);

/// What a journal's folder holds once its torn tail is cut. All of it is durable.
struct OpenedJournal {
  std::vector<std::shared_ptr<Segment>> segments;  // In order, without gaps.
  std::vector<std::string> spares;                 // Names; their content is unknown.
  Position next{1};
  std::uint64_t spare_number = 1;  // Greater than that of any spare.
};

/// Opens the folder, creates it if needed, cuts a torn tail, and makes the rest durable.
/// Crash-safe: when it is interrupted, the next call reaches the same result.
Result<OpenedJournal> open_journal_folder(Disk& disk, const std::string& folder);

}  // namespace baton
