#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/flow/offset_tracker.h"

namespace baton::pipeline {

class OwnedPartition;

/// A record as it came from the source, byte for byte.
struct Record {
  std::uint32_t partition = 0;
  std::int64_t offset = 0;
  std::string key{};
  std::string value{};
  std::vector<std::pair<std::string, std::string>> headers{};
  std::chrono::milliseconds timestamp{};  // When the record was produced; since 1970.
  bool tombstone = false;  // There is no value, not even an empty one: nothing to write.

  [[nodiscard]] std::size_t bytes() const {
    std::size_t sum = key.size() + value.size();
    for (const auto& [name, header] : headers) sum += name.size() + header.size();
    return sum;
  }
};

/// How a record finished. Each record has exactly one of these fates, or is read again.
enum class Fate : std::uint8_t {
  open,  // Not finished. If this stays so, the record was dropped, and the next owner reads it.
  applied,
  duplicate,      // Another record with the same key was there before.
  dead_lettered,  // The dead letter is confirmed.
};

/// A record in the form that the sink writes.
struct Prepared {
  Prepared() = default;
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
  virtual ~Prepared() = default;
  /// The document's key, for log lines; empty if it has none.
  [[nodiscard]] virtual std::string_view key() const { return {}; }
};

/// Why a record can never be written.
struct Rejection {
  std::string stage{};  // "decode", "schema", "sink".
  std::string code{};
  std::string text{};
  std::string key{};  // The document's key, if the document could be read.
};

/// A record inside the pipeline.
struct Item {
  Record record{};
  std::shared_ptr<OwnedPartition> assignment{};
  flow::OffsetTracker::Ticket ticket = 0;
  std::uint32_t lane = 0;
  std::unique_ptr<Prepared> prepared{};  // Null if rejected.
  Rejection rejection{};
  std::uint32_t attempts = 0;
  Fate fate = Fate::open;  // Set by the sink when it wrote the record.
};
using Items = std::vector<Item>;

}  // namespace baton::pipeline
