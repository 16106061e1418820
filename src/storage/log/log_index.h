#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/stream/record_batch.h"
#include "core/stream/types.h"

namespace baton {

/// An entry of a `.index` file: the batch that begins at `position` ends with the record
/// `base + last`.
struct OffsetEntry {
  std::int32_t last = 0;
  std::int32_t position = 0;

  bool operator==(const OffsetEntry&) const = default;
};

/// An entry of a `.timeindex` file: no record up to `base + last` is younger than `greatest`, and
/// the batch that ends there is the first that reaches it.
struct TimeEntry {
  TimestampMs greatest;
  std::int32_t last = 0;

  bool operator==(const TimeEntry&) const = default;
};

inline constexpr std::size_t kOffsetEntryBytes = 8;
inline constexpr std::size_t kTimeEntryBytes = 12;

void encode_entry(const OffsetEntry& entry, std::string& out);
void encode_entry(const TimeEntry& entry, std::string& out);
/// `bytes` holds exactly one entry.
OffsetEntry decode_offset_entry(const char* bytes);
TimeEntry decode_time_entry(const char* bytes);

/// A list that one thread appends to while others read what is there. Entries never move: the
/// blocks double in size, and the table of blocks has a fixed place.
template <class T>
class AppendOnlyList {
 public:
  void push_back(const T& entry) {
    const std::size_t size = size_.load(std::memory_order_relaxed);
    const Slot slot = slot_of(size);
    if (slot.index == 0) blocks_[slot.block] = std::make_unique<T[]>(kFirstBlock << slot.block);
    blocks_[slot.block][slot.index] = entry;
    size_.store(size + 1, std::memory_order_release);
  }
  /// A thread that saw a size may read all entries below it.
  [[nodiscard]] std::size_t size() const { return size_.load(std::memory_order_acquire); }
  [[nodiscard]] const T& operator[](std::size_t at) const {
    const Slot slot = slot_of(at);
    return blocks_[slot.block][slot.index];
  }

 private:
  struct Slot {
    std::size_t block;
    std::size_t index;
  };
  static constexpr std::size_t kFirstBlock = 64;
  static constexpr std::size_t kBlocks = 26;  // Room for more than 2^31 entries.

  static Slot slot_of(std::size_t at) {
    const std::size_t size = std::bit_floor(at / kFirstBlock + 1);  // Of the block, in first ones.
    return {static_cast<std::size_t>(std::countr_zero(size)), at - kFirstBlock * (size - 1)};
  }

  std::array<std::unique_ptr<T[]>, kBlocks> blocks_;
  std::atomic<std::size_t> size_ = 0;
};

/// The two sparse indexes of a segment, in memory.
struct MemoryIndex {
  AppendOnlyList<OffsetEntry> offsets;
  AppendOnlyList<TimeEntry> times;
};

/// Decides which batches get an entry, by Kafka's rules, whether they are being appended, recovered
/// or indexed again, so that an index does not depend on how it was made. One thread.
class IndexBuilder {
 public:
  IndexBuilder(Offset base, std::uint64_t interval_bytes)
      : base_(base), interval_bytes_(interval_bytes), index_(std::make_shared<MemoryIndex>()) {}

  /// Adds the next batch, which begins at `position`.
  void add(const BatchHeader& batch, std::uint64_t position);
  /// The entry to add when a segment is closed, so that its time index ends with the segment's
  /// greatest timestamp; nullopt when it does already.
  [[nodiscard]] std::optional<TimeEntry> last_time() const;

  [[nodiscard]] const std::shared_ptr<MemoryIndex>& index() const { return index_; }
  /// Below every timestamp when there is no batch.
  [[nodiscard]] TimestampMs greatest() const { return greatest_; }

 private:
  [[nodiscard]] std::int32_t relative(Offset offset) const;

  Offset base_;
  std::uint64_t interval_bytes_;
  std::shared_ptr<MemoryIndex> index_;
  std::uint64_t bytes_since_entry_ = 0;
  TimestampMs greatest_{-1};
  Offset greatest_at_;
};

/// Content of the two files, once the segment is closed.
std::string encode_offsets(const IndexBuilder& builder);
std::string encode_times(const IndexBuilder& builder);

}  // namespace baton
