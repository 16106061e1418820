#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/intrusive_list.h"
#include "core/lease/lease_table.h"
#include "core/queue/commands.h"
#include "core/queue/dedup.h"
#include "core/queue/delta.h"
#include "core/queue/message.h"
#include "core/queue/rows.h"
#include "core/queue/settings.h"
#include "core/queue/types.h"

/// The parts of a QueueMachine's state, as plain structs; QueueMachine has the rules.
namespace baton::queue_state {

struct Bucket;
struct Holder;
struct Key;
struct Queue;
struct StringHash {
  using is_transparent = void;  // NOLINT(readability-identifier-naming): the standard's name.
  std::size_t operator()(std::string_view text) const noexcept {
    return std::hash<std::string_view>{}(text);
  }
};
template <class T>
using ByName = std::unordered_map<std::string, T, StringHash, std::equal_to<>>;

/// Whether the holder of a leased message worked on the message, as far as is known. Not truth: a
/// restart forgets it.
enum class Work : std::uint8_t {
  unknown,
  begun,  // The holder said so, or went away and is assumed to have begun it.
  idle,   // The holder went away without having begun it.
};

/// A message in memory. A message that was leased before a restart may lack its body until recovery
/// has fetched the body; every other message has it.
struct Stored : ListHook<Holder> {
  Uuid id;
  Queue* queue = nullptr;
  Key* key = nullptr;  // Null while delayed or outgoing.
  MessageRef body;
  Place place = Place::gone;
  Bucket* parked_at = nullptr;  // Ready, but waiting for a throttle's token.
  std::uint32_t bytes = 0;
  std::uint32_t attempts = 0;  // Failed attempts.
  FailureRef failure;
  Sequence sequence;
  Instant due;  // Set if delayed.

  // Set if leased:
  LeaseToken token;
  Instant deadline;
  Holder* holder = nullptr;
  Work work = Work::unknown;

  // Set if outgoing:
  std::string to;  // The queue that the message goes to.
  TransferId transfer;

  // The message's entry in the delta, valid only while `delta_number` is the current delta's.
  std::uint64_t delta_number = 0;
  std::list<MessageChange>::iterator change;
};

/// The ready messages of one fairness key, in the order of sequence. Some are in memory (`ready`);
/// `spilled` others are only rows of the checkpoint, all of them at `cursor` or after it. A message
/// in memory with a sequence beyond the cursor waits until the rows before it have been read back.
struct Key : ListHook<Key> {
  std::string name;
  Queue* queue = nullptr;
  std::map<Sequence, Stored*> ready;
  std::uint64_t spilled = 0;
  Sequence cursor;
  // Sequences at or after the cursor whose rows are still in the store but no longer ready.
  std::unique_ptr<std::set<Sequence>> taken;
  std::uint32_t references = 0;  // Messages in memory that point here.
  std::uint32_t parked = 0;
  Sequence low;          // No ready message, parked or not, has a lower sequence.
  bool loading = false;  // A refill is under way.
  bool grew = false;     // More was spilled since that refill, which may not hold it.
  bool in_turn = false;  // Deficit round robin: the key has got this turn's quantum.
  std::int64_t deficit = 0;

  std::uint64_t delta_number = 0;
  std::list<KeyChange>::iterator change;

  [[nodiscard]] std::uint64_t count() const { return ready.size() + parked + spilled; }
  /// The next message to deliver, if it is in memory.
  [[nodiscard]] Stored* first() const {
    if (ready.empty()) return nullptr;
    const auto& [sequence, stored] = *ready.begin();
    return spilled != 0 && sequence >= cursor ? nullptr : stored;
  }
};

/// A consumer as a queue sees it, by its id. Exists while the consumer is connected or holds
/// leases.
struct Holder : ListHook<Queue> {
  std::shared_ptr<const std::string> id;
  Queue* queue = nullptr;
  std::optional<ConsumerNumber> number;  // Set while connected.
  std::uint32_t in_flight_max = 0;
  std::uint64_t in_flight_bytes_max = 0;
  std::optional<std::uint64_t> credit;
  std::uint32_t concurrency = 1;  // How many messages the consumer works on at a time.
  bool marks = false;             // The consumer says which messages it has begun.
  std::uint64_t in_flight_bytes = 0;
  IntrusiveList<Stored, Holder> leases;  // In order of granting.

  [[nodiscard]] std::uint64_t capacity() const {
    if (!number.has_value() || leases.size() >= in_flight_max) return 0;
    // At least one message of any size, or a message over the limit could never be delivered.
    if (in_flight_bytes >= in_flight_bytes_max) return 0;
    const std::uint64_t room = in_flight_max - leases.size();
    return credit.has_value() ? std::min(*credit, room) : room;
  }
};

/// A token bucket in integers: it counts time instead of tokens, and one token is `interval`
/// nanoseconds.
struct Bucket {
  Queue* queue = nullptr;
  std::string key;
  Duration interval{1};  // Between two tokens.
  Duration capacity{1};  // The time of a full burst.
  Duration level{0};
  Instant filled_at;
  // Parked messages, oldest first.
  std::map<std::pair<Instant, Sequence>, Stored*> waiting;
  std::optional<Instant> deadline;  // Its entry among the machine's bucket deadlines.
};

struct DeliverableTag;
struct Queue : ListHook<DeliverableTag> {
  QueueId id;
  std::string name;
  std::shared_ptr<const QueueSettings> settings;
  Sequence next_sequence{1};
  Sequence purged_before{0};
  std::uint64_t bytes = 0;  // Of every message in it.
  std::uint64_t ready = 0;
  std::uint64_t leased = 0;
  std::uint64_t delayed = 0;
  std::uint64_t delayed_far = 0;  // Delayed messages that are only rows.
  std::uint64_t outgoing = 0;

  std::unordered_map<Uuid, Stored>
      messages;  // Messages in memory. Looked up, never iterated in decisions.
  ByName<Key> keys;
  IntrusiveList<Key, Key> active;  // Keys whose next message is in memory, in turn order.
  ByName<Holder> holders;
  IntrusiveList<Holder, Queue> with_capacity;  // In turn order.
  ByName<Bucket> buckets;
  DedupTable dedup;
  std::uint64_t consumers = 0;
  QueueStats totals;  // Only the *_total fields are used.

  std::uint64_t delta_number = 0;
  std::list<QueueChange>::iterator change;

  [[nodiscard]] std::uint64_t messages_total() const { return ready + leased + delayed + outgoing; }
};

}  // namespace baton::queue_state
