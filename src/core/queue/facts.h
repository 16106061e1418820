#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/growing.h"
#include "base/result.h"
#include "core/queue/dedup.h"
#include "core/queue/message.h"
#include "core/queue/settings.h"
#include "core/queue/types.h"

/// What can happen to the queues of a shard. Facts are what the journal holds: they name things by
/// (queue, key, sequence), never by pointer, so that they can be applied with or without the
/// message in memory. docs/storage-format.md draws their bytes.
namespace baton {

struct QueueCreated {
  QueueId queue;
  std::string name;
  QueueSettings settings;
};
struct QueueUpdated {
  QueueId queue;
  QueueSettings settings;
};
struct QueueDeleted {
  QueueId queue;
};

/// A message entered a queue: ready at `sequence`, or, when `due` is set, delayed until then (the
/// sequence then only orders it against a purge).
struct Enqueued {
  QueueId queue;
  Sequence sequence;
  std::optional<Instant> due;
  std::optional<DedupHash> dedup;
  MessageRef message;
};

/// One turn of one consumer: messages leased to it, under the tokens (boot, first_number + i).
struct Leased {
  struct Item {
    Sequence sequence;
    Uuid id;
    std::uint32_t bytes = 0;
    std::string key;
  };
  QueueId queue;
  std::string consumer_id;
  Instant deadline;
  LeaseToken first;
  std::vector<Item> items;
};

struct Acked {
  LeaseToken token;
};
struct Extended {
  LeaseToken token;
  Instant deadline;
};

/// A lease ended without an ack: how the message goes on.
struct Ended {
  LeaseToken token;
  bool counted = true;         // Whether it was a failed attempt.
  std::optional<Instant> due;  // Not ready before then; none = at once, at its old place.
  std::string reason;
};

/// The last allowed attempt failed: from the lease straight into a queue of the same shard.
struct DeadLettered {
  LeaseToken token;
  QueueId to;
  Sequence sequence;
  std::string reason;
};

/// A delayed message became ready.
struct BecameReady {
  QueueId queue;
  Uuid id;
  Instant due;
  Sequence sequence;
};

/// Where a message is, as the checkpoint's tables know it.
struct MessagePlace {
  QueueId queue;
  Uuid id;
  std::string key;
  Sequence sequence;
  std::optional<Instant> due;  // When delayed.
};

/// A message left without being acked: expired, or cancelled by an operator.
struct Removed {
  enum class Why : std::uint8_t { expired = 1, cancelled = 2 };
  MessagePlace place;
  std::uint32_t bytes = 0;
  Why why = Why::expired;
};

/// Every message that waited, ready or delayed, is gone.
struct Purged {
  QueueId queue;
};

/// A ready message went to another queue of the same shard, as new.
struct Redriven {
  MessagePlace place;
  QueueId to;
  Sequence sequence;
};

/// A message is on its way to a queue of another shard, and stays here until that shard has it.
struct Outgoing {
  TransferId transfer;
  MessagePlace place;
  LeaseToken token;  // The lease it leaves, when it is leased: number 0 otherwise.
  std::string to;
  std::string reason;
};
/// The other shard has it.
struct OutgoingDone {
  TransferId transfer;
  QueueId queue;
  Uuid id;
};
/// A message arrived from another shard. Remembered until that shard says that it knows.
struct Received {
  TransferId transfer;
  QueueId queue;
  Sequence sequence;
  std::uint64_t from_shard = 0;
  MessageRef message;
};
struct ReceivedForgotten {
  TransferId transfer;
  std::uint64_t from_shard = 0;
};

using QueueFact = std::variant<QueueCreated, QueueUpdated, QueueDeleted, Enqueued, Leased, Acked,
                               Extended, Ended, DeadLettered, BecameReady, Removed, Purged,
                               Redriven, Outgoing, OutgoingDone, Received, ReceivedForgotten>;

extern const FactSet kQueueFacts;

void encode(Encoder& out, const QueueFact& fact);
/// Fails with malformed, or store_too_new.
Result<QueueFact> decode_queue_fact(const FactFrame& frame);
Result<QueueFact> decode_queue_fact(Decoder& in);
/// Reads one fact of format 1; fails with malformed.
Result<QueueFact> decode_queue_fact_1(Decoder& in);

}  // namespace baton
