#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "base/uuid.h"

namespace baton {

/// The 16-byte hash of a dedup id.
using DedupHash = std::array<std::uint8_t, 16>;

/// Which dedup ids a queue has seen, when, and under which message id. Pure. Keeps hashes instead
/// of the ids, because a million of them must fit in memory.
class DedupTable {
 public:
  /// The message first sent under `hash`, if that was within `window` of `now`.
  [[nodiscard]] std::optional<Uuid> find(const DedupHash& hash, Instant now,
                                         Duration window) const {
    const auto entry = seen_.find(hash);
    if (entry == seen_.end() || entry->second.at + window <= now) return std::nullopt;
    return entry->second.id;
  }

  /// Adds the hash; a known hash gets the new id and time.
  void remember(const DedupHash& hash, Uuid id, Instant at) {
    seen_[hash] = {id, at};
    order_.push_back({at, hash});
  }

  /// Adds a row of a checkpoint. Rows come in the order of their hashes, not of time: sort_loaded()
  /// must follow the last one.
  void load(const DedupHash& hash, Uuid id, Instant at) { remember(hash, id, at); }
  void sort_loaded() { std::ranges::stable_sort(order_, {}, &Entry::at); }

  /// Forgets up to `count` ids that are older than the window, and returns them.
  std::vector<DedupHash> forget_before(Instant now, Duration window, std::size_t count) {
    std::vector<DedupHash> forgotten;
    while (!order_.empty() && order_.front().at + window <= now && forgotten.size() < count) {
      const auto [at, hash] = order_.front();
      order_.pop_front();
      const auto entry = seen_.find(hash);
      // The id was seen again since: its later entry in `order_` counts.
      if (entry == seen_.end() || entry->second.at != at) continue;
      seen_.erase(entry);
      forgotten.push_back(hash);
    }
    return forgotten;
  }

  /// The number of remembered ids: those within the window, and at most a few older ones.
  [[nodiscard]] std::size_t size() const { return seen_.size(); }
  [[nodiscard]] bool oldest_is_before(Instant now, Duration window) const {
    return !order_.empty() && order_.front().at + window <= now;
  }

 private:
  struct HashOfHash {
    std::size_t operator()(const DedupHash& hash) const noexcept {
      std::size_t value = 0;
      std::memcpy(&value, hash.data(), sizeof value);
      return value;
    }
  };
  struct Seen {
    Uuid id;
    Instant at;
  };
  struct Entry {
    Instant at;
    DedupHash hash;
  };

  std::unordered_map<DedupHash, Seen, HashOfHash> seen_;
  std::deque<Entry> order_;  // By time, oldest first.
};

}  // namespace baton
