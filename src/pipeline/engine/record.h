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

/// As it came from the source, byte for byte.
struct Record {
  std::uint32_t partition = 0;
  std::int64_t offset = 0;
  std::string key{};
  std::string value{};
  std::vector<std::pair<std::string, std::string>> headers{};
  std::chrono::milliseconds timestamp{};  // Since 1970; when it was produced.
  bool tombstone = false;  // There is no value, not even an empty one: nothing to write.

  [[nodiscard]] std::size_t bytes() const {
    std::size_t sum = key.size() + value.size();
    for (const auto& [name, header] : headers) sum += name.size() + header.size();
    return sum;
  }
};

/// How a record ended. Each one ends in exactly one of these, or comes again.
enum class Fate : std::uint8_t {
  open,  // Not yet. Still so at the end: it was dropped, and comes again, to somebody.
  applied,
  duplicate,      // Another record had put it in before.
  dead_lettered,  // And that is confirmed.
};

/// What a sink made of a record, ready to be written.
struct Prepared {
  Prepared() = default;
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
  virtual ~Prepared() = default;
  /// Of the document, by which people know it; empty: it has none.
  [[nodiscard]] virtual std::string_view key() const { return {}; }
};

/// Why a record cannot be written, whatever the sink's state.
struct Rejection {
  std::string stage{};  // "decode", "schema", "sink".
  std::string code{};
  std::string text{};
  std::string key{};  // Of the document, if it came as far as having one.
};

/// A record on its way.
struct Item {
  Record record{};
  std::shared_ptr<OwnedPartition> assignment{};
  flow::OffsetTracker::Ticket ticket = 0;
  std::uint32_t lane = 0;
  std::unique_ptr<Prepared> prepared{};  // Null: rejected.
  Rejection rejection{};
  std::uint32_t attempts = 0;
  Fate fate = Fate::open;  // Set by the sink when it wrote it.
};
using Items = std::vector<Item>;

}  // namespace baton::pipeline
