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

/// What can happen to the queues of a shard. The journal holds facts. They name things by (queue,
/// key, sequence), never by pointer, so that they can be applied with or without the message in
/// memory. docs/storage-format.md draws their bytes.
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

/// A message entered a queue: it is ready at `sequence`, or delayed until `due` if that is set (its
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

/// A lease ended without an ack; the fields say what happens to the message.
struct Ended {
  LeaseToken token;
  bool counted = true;         // Whether this counts as a failed attempt.
  std::optional<Instant> due;  // Not ready before this time; nullopt = ready now, at its old place.
  std::string reason;
};

/// The last allowed attempt failed: the message moved from its lease into a queue of the same
/// shard.
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

/// Where a message is, in terms of the checkpoint's tables.
struct MessagePlace {
  QueueId queue;
  Uuid id;
  std::string key;
  Sequence sequence;
  std::optional<Instant> due;  // Set if the message is delayed.
};

/// A message left its queue without an ack: it expired, or an operator cancelled it.
struct Removed {
  enum class Why : std::uint8_t { expired = 1, cancelled = 2 };
  MessagePlace place;
  std::uint32_t bytes = 0;
  Why why = Why::expired;
};

/// Every waiting message, ready or delayed, was removed.
struct Purged {
  QueueId queue;
};

/// A ready message moved to another queue of the same shard, as a new message.
struct Redriven {
  MessagePlace place;
  QueueId to;
  Sequence sequence;
};

/// A message is on its way to a queue of another shard, and stays here until that shard has made it
/// durable.
struct Outgoing {
  TransferId transfer;
  MessagePlace place;
  LeaseToken token;  // The lease that the message leaves; number 0 if it was not leased.
  std::string to;
  std::string reason;
};
/// The other shard has made the message durable.
struct OutgoingDone {
  TransferId transfer;
  QueueId queue;
  Uuid id;
};
/// A message arrived from another shard. The transfer is remembered until that shard has confirmed
/// that it knows.
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
/// Decodes a fact. Fails with malformed, or store_too_new.
Result<QueueFact> decode_queue_fact(const FactFrame& frame);
Result<QueueFact> decode_queue_fact(Decoder& in);
/// Reads one fact of format 1; fails with malformed.
Result<QueueFact> decode_queue_fact_1(Decoder& in);

}  // namespace baton
