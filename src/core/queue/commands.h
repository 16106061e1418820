#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/queue/message.h"
#include "core/queue/settings.h"
#include "core/queue/types.h"

/// What can be asked of the queues of a shard. A command has many items, and the shard fills in one
/// result for each. The queue's name determines the shard.
namespace baton {

/// The result of one item: nullopt if it succeeded.
using ItemOutcome = std::optional<Error>;

struct EnqueueOutcome {
  Uuid id;
  bool duplicate = false;
  std::optional<Error> error;
};

struct EnqueueCommand {
  std::string queue;
  std::vector<NewMessage> messages;
  std::vector<EnqueueOutcome> outcomes;
};

struct AckCommand {
  std::string queue;
  std::vector<LeaseToken> tokens;
  std::vector<ItemOutcome> outcomes;
};

/// When a nacked message is delivered again.
struct Retry {
  enum class Kind : std::uint8_t {
    backoff,  // After the queue's backoff.
    after,    // After `delay`; 0 means immediately.
    release,  // Immediately, and no attempt is counted.
  };
  Kind kind = Kind::backoff;
  Duration delay{0};
};

struct NackItem {
  LeaseToken token;
  Retry retry;
  std::string reason;
};
struct NackCommand {
  std::string queue;
  std::vector<NackItem> items;
  std::vector<ItemOutcome> outcomes;
};

struct ExtendItem {
  LeaseToken token;
  Duration timeout{0};  // 0 = the queue's visibility timeout.
};
struct ExtendCommand {
  std::string queue;
  std::vector<ExtendItem> items;
  std::vector<ItemOutcome> outcomes;
};

/// A message under a lease, on its way to a consumer.
struct Delivery {
  MessageRef message;
  LeaseToken token;
  std::uint32_t attempt = 1;
  Instant deadline;
};

/// Receives a consumer's messages. Called by the shard's releasing thread; must not block.
class ConsumerSink {
 public:
  ConsumerSink() = default;
  ConsumerSink(const ConsumerSink&) = delete;
  ConsumerSink& operator=(const ConsumerSink&) = delete;
  virtual ~ConsumerSink() = default;

  /// Takes the messages leased in one round. All of their leases are durable.
  virtual void deliver(std::vector<Delivery> deliveries) = 0;
  /// Nothing more follows: the queue was deleted, or another consumer took this consumer's id.
  virtual void close(const Error& reason) = 0;
};

/// Registers a consumer. The sink gets nothing before this command is complete.
struct AttachCommand {
  std::string queue;
  ConsumerNumber consumer;
  std::string consumer_id;
  std::uint32_t in_flight_max = limits::kInFlightDefault;
  std::uint64_t in_flight_bytes_max = limits::kInFlightBytesDefault;
  std::optional<std::uint64_t>
      credit;                     // Deliveries allowed until more is given; nullopt = no limit.
  std::uint32_t concurrency = 1;  // How many messages the consumer works on at a time.
  std::shared_ptr<ConsumerSink> sink;
  std::optional<Error> error;
  Duration visibility_timeout{0};  // Answer: the queue's setting.
};
struct CreditCommand {
  std::string queue;
  ConsumerNumber consumer;
  std::uint64_t added = 0;
};
/// The consumer is leaving: nothing more is leased to it. When this command is complete, its sink
/// has got everything that was leased to it, so that its detach can name exactly what was never
/// written.
struct QuiesceCommand {
  std::string queue;
  ConsumerNumber consumer;
};
/// The consumer has begun to work on these messages. Tokens of leases that it does not hold are
/// ignored.
struct BegunCommand {
  std::string queue;
  ConsumerNumber consumer;
  std::vector<LeaseToken> tokens;
};
/// The consumer is gone, and its leases are released. Leases in `unwritten` never reached the
/// network and count no attempt. Of the others, those that it had begun count an attempt, or the
/// oldest `concurrency` if it had begun none; none of them does if its end was orderly.
struct DetachCommand {
  std::string queue;
  ConsumerNumber consumer;
  std::vector<LeaseToken> unwritten;
  bool orderly = false;
};
/// The consumer gives back all its leases without counting an attempt, and gets nothing more.
struct LeaveCommand {
  std::string queue;
  std::string consumer_id;
  std::optional<Error> error;
  std::uint64_t released = 0;
};

struct QueueStats {
  std::uint64_t ready = 0;
  std::uint64_t leased = 0;
  std::uint64_t delayed = 0;
  std::uint64_t bytes = 0;
  std::uint64_t active_keys = 0;
  std::uint64_t consumers = 0;
  std::uint64_t outgoing = 0;
  std::uint64_t dedup_ids = 0;
  std::uint64_t enqueued_total = 0;
  std::uint64_t delivered_total = 0;
  std::uint64_t acked_total = 0;
  std::uint64_t nacked_total = 0;
  std::uint64_t lease_expired_total = 0;
  std::uint64_t dead_lettered_total = 0;
  std::uint64_t dropped_total = 0;
  std::uint64_t deduplicated_total = 0;
};

struct QueueDescription {
  std::string name;
  QueueId id;
  QueueSettings settings;
  QueueStats stats;
  // When the oldest message that waits for a consumer was sent. Set only if the command asked for
  // it and the machine knows it: nullopt while all messages are only in the store or wait for a
  // throttle.
  std::optional<Instant> oldest{};
};

struct CreateQueueCommand {
  std::string queue;
  QueueSettingsPatch settings;
  std::optional<Error> error;
  QueueDescription description;
};
struct UpdateQueueCommand {
  std::string queue;
  QueueSettingsPatch settings;
  std::optional<Error> error;
  QueueDescription description;
};
struct DeleteQueueCommand {
  std::string queue;
  std::optional<Error> error;
};
struct DescribeQueueCommand {
  std::string queue;
  std::optional<Error> error;
  QueueDescription description;
};
/// One shard's part of a list: the queues whose names begin with `queue`.
struct ListQueuesCommand {
  std::string queue;                                // The prefix.
  std::string after;                                // Only names after this one.
  std::uint64_t described_max = ~std::uint64_t{0};  // left_out counts the rest, without a prefix.
  bool with_oldest = false;
  std::vector<QueueDescription> descriptions;
  std::uint64_t left_out = 0;
  bool more = false;  // There are queues after the last one described.
};

enum class MessageState : std::uint8_t { ready = 1, leased = 2, delayed = 3 };

struct PeekedMessage {
  MessageRef message;
  MessageState state = MessageState::ready;
  std::uint32_t attempts = 0;
  std::string consumer_id;
  Instant visible_at;
};
struct PeekCommand {
  std::string queue;
  std::uint32_t messages_max = 10;
  std::optional<Uuid> id;
  std::optional<Error> error;
  std::vector<PeekedMessage> messages;
  std::string next_row;  // Where to continue reading.
};
struct PurgeCommand {
  std::string queue;
  std::optional<Error> error;
  std::uint64_t purged = 0;
};
struct CancelCommand {
  std::string queue;
  std::vector<Uuid> ids;
  std::vector<ItemOutcome> outcomes;
  std::string row_read;  // The row of the next id that has been fetched, if any.
};
struct RedriveCommand {
  std::string queue;
  std::string to;
  std::uint64_t messages_max = 0;
  std::string reason_contains;
  std::string source_queue;
  double rate = 0;
  bool dry_run = false;
  std::optional<Error> error;
  std::uint64_t matched = 0;
  std::uint64_t moved = 0;
  std::uint64_t skipped = 0;
  std::string next_row;  // Where to continue reading.
  Instant started;
};

/// A message from another shard, which keeps the message until it gets `TransferDone`.
struct TransferCommand {
  std::string queue;
  std::uint64_t from_shard = 0;
  TransferId transfer;
  QueueId from_queue;
  MessageRef message;
  std::optional<Error> error;
};
/// The other shard has made the message durable.
struct TransferDoneCommand {
  std::string queue;  // The queue that got the message; its shard is told to forget the transfer.
  TransferId transfer;
  QueueId from_queue;
  Uuid id;
};
/// The shard that sent the message knows that it arrived: the transfer may be forgotten.
struct TransferForgetCommand {
  std::string queue;
  std::uint64_t from_shard = 0;
  TransferId transfer;
};

using QueueCommand =
    std::variant<EnqueueCommand, AckCommand, NackCommand, ExtendCommand, AttachCommand,
                 CreditCommand, QuiesceCommand, DetachCommand, CreateQueueCommand,
                 UpdateQueueCommand, DeleteQueueCommand, DescribeQueueCommand, ListQueuesCommand,
                 PeekCommand, PurgeCommand, CancelCommand, RedriveCommand, TransferCommand,
                 TransferDoneCommand, TransferForgetCommand, BegunCommand, LeaveCommand>;

}  // namespace baton
