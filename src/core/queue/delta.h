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
/// queue that changed, in a list that it hands over in O(1); a background thread turns the entries
/// into rows.
namespace baton {

enum class Place : std::uint8_t { gone, ready, leased, delayed, outgoing };

/// Everything that the checkpoint says about one message besides its bytes.
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
  bool rewrite = false;  // Write all rows, because the store's rows of this message are not known.
  // The due time of a row of `delayed` that an earlier process may have spilled for this message.
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
  RowBatch other;  // Written first: ranges of purged and deleted queues, dedup, received.
  std::list<MessageChange> messages;
  std::list<KeyChange> keys;
  std::list<QueueChange> queues;
  std::set<QueueId> deleted;
  QueueId next_queue;
  std::uint64_t bytes = 0;  // Approximate.
};

/// Appends the rows that bring the store up to date with the delta, ranges first.
void append_rows(const QueueDelta& delta, RowBatch& batch);

/// Appends the rows of one spilled message: the message and its entry in `ids`.
void append_spilled(RowBatch& batch, QueueId queue, const MessageRow& row, Place place,
                    Instant due);

}  // namespace baton
