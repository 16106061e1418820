#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/kv/types.h"

/// What the machine is compared with. For tests.
namespace baton::kv_test {

/// A change as a watch saw it, or should have seen it.
struct Seen {
  KvChange::Kind kind;
  KvEntry entry;
  bool operator==(const Seen&) const = default;
};

/// The bucket, as anybody would write it who need not be fast.
class Model {
 public:
  static constexpr std::uint64_t kHistory = 6;

  std::map<std::string, KvEntry> keys;
  std::vector<Seen> changes;  // Of all times; those before a deletion too.
  Revision revision;
  Revision floor;  // The history begins after this one.
  Revision checkpointed;

  void put(const std::string& key, const std::string& value, Instant expires_at) {
    const auto former = keys.find(key);
    const KvEntry before = former == keys.end() ? KvEntry{} : former->second;
    const Revision at = take_revision();
    KvEntry entry{.key = key,
                  .value = value,
                  .revision = at,
                  .created_revision = former == keys.end() ? at : before.created_revision,
                  .version = former == keys.end() ? 1 : before.version + 1,
                  .expires_at = expires_at};
    keys[key] = entry;
    changes.push_back({KvChange::Kind::put, entry});
  }
  void drop(const std::string& key, KvChange::Kind kind) {
    KvEntry gone = keys.at(key);
    keys.erase(key);
    gone.value.clear();
    gone.revision = take_revision();
    gone.expires_at = Instant::never();
    changes.push_back({kind, gone});
  }
  /// The key as it is at `now`; null if there is none.
  const KvEntry* live(const std::string& key, Instant now) {
    const auto entry = keys.find(key);
    if (entry == keys.end()) return nullptr;
    if (entry->second.expires_at > now) return &entry->second;
    drop(key, KvChange::Kind::expired);
    return nullptr;
  }
  void expire(Instant now, std::size_t count) {
    for (; count > 0 && next_deadline() <= now; --count) {
      const auto first = std::ranges::min_element(
          keys, {}, [](const auto& key) { return std::pair(key.second.expires_at, key.first); });
      drop(first->first, KvChange::Kind::expired);
    }
  }
  void recreate() {
    keys.clear();
    revision = next(revision);
    floor = revision;
  }
  [[nodiscard]] Instant next_deadline() const {
    Instant first = Instant::never();
    for (const auto& [key, entry] : keys) first = std::min(first, entry.expires_at);
    return first;
  }

 private:
  Revision take_revision() {
    revision = next(revision);
    if (revision.value > kHistory) floor = std::max(floor, Revision{revision.value - kHistory});
    return revision;
  }
};

}  // namespace baton::kv_test
