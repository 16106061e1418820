#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/rows.h"
#include "core/queue/rows.h"
#include "core/queue/settings.h"
#include "core/queue/types.h"

/// What changed since the last checkpoint. The machine keeps one entry for each message, key and
/// queue that changed, in a list it can hand over in O(1); turning entries into rows is the
/// background's work.
namespace baton {

enum class Place : std::uint8_t { gone, ready, leased, delayed, outgoing };

/// Everything the checkpoint says about one message besides its bytes.
struct MessageRows {
  Place place = Place::gone;
  Sequence sequence;
  Instant due;
  std::uint32_t attempts = 0;
  FailureRef failure;
  LeaseToken token;
  Instant deadline;
  std::shared_ptr<const std::string> consumer_id;
  std::string to;
  std::optional<TransferId> transfer;
};

struct MessageChange {
  QueueId queue;
  Uuid id;
  std::uint32_t bytes = 0;
  std::string key;  // Only while `body` is null.
  MessageRef body;
  MessageRows before;  // What the store holds.
  MessageRows after;
  bool rewrite = false;  // Whatever the store holds under the message's name: write it all.
  // A row of `delayed` that a former life may have spilled for this message.
  std::optional<Instant> stray_due;
};

struct KeyChange {
  QueueId queue;
  std::string key;
  bool stored_before = false;
  KeyRow after;
};

struct QueueChange {
  QueueId id;
  std::string name;
  Sequence next_sequence;
  Sequence purged_before;
  std::uint64_t bytes = 0;
  std::uint64_t delayed = 0;
  std::shared_ptr<const QueueSettings> settings;
};

/// A sealed delta: immutable, so that another thread may read it.
struct QueueDelta {
  RowBatch other;  // Goes first: ranges of purged and deleted queues, dedup, received.
  std::list<MessageChange> messages;
  std::list<KeyChange> keys;
  std::list<QueueChange> queues;
  std::set<QueueId> deleted;
  QueueId next_queue;
  std::uint64_t bytes = 0;  // About.
};

/// The rows that make the delta true in the store, ranges first.
void append_rows(const QueueDelta& delta, RowBatch& batch);

/// The rows of one spilled message: itself, and its entry in `ids`.
void append_spilled(RowBatch& batch, QueueId queue, const MessageRow& row, Place place,
                    Instant due);

}  // namespace baton
