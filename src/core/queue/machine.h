#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/progress.h"
#include "base/random.h"
#include "base/rows.h"
#include "base/time.h"
#include "core/lease/lease_table.h"
#include "core/queue/commands.h"
#include "core/queue/delta.h"
#include "core/queue/facts.h"
#include "core/queue/state.h"
#include "core/queue/types.h"

namespace baton {

/// What the machine asks the shard to do. Collected during a round and taken by the shard, which
/// releases none of it before the round's facts are durable.
struct QueueEffects {
  struct Grant {
    ConsumerNumber consumer;
    Delivery delivery;
  };
  struct Closed {
    ConsumerNumber consumer;
    Error reason;
  };
  /// Asks for rows of one key (or, with `delayed`, of the delayed table), to be brought as a
  /// Refill.
  struct RefillRequest {
    QueueId queue;
    std::string key;
    bool delayed = false;
    RowRange range;
  };
  struct Transfer {
    TransferId id;
    std::string to;
    QueueId from_queue;
    MessageRef message;
  };

  std::vector<Grant> grants;
  std::vector<Closed> closed;
  std::vector<RefillRequest> refills;
  std::vector<Transfer> transfers;
  RowBatch spill;
  std::uint64_t spilled_messages = 0;
  std::uint64_t rows_missing = 0;  // Rows that are missing from the checkpoint: damage.

  [[nodiscard]] bool empty() const {
    return grants.empty() && closed.empty() && refills.empty() && transfers.empty() &&
           spill.empty();
  }
};

/// Rows read back for a RefillRequest.
struct Refill {
  QueueEffects::RefillRequest request;
  std::vector<Row> rows;
  bool exhausted = false;  // The range has no further rows.
};

/// The shard that a queue belongs to. A queue and its own dead-letter queue are in the same shard.
std::uint64_t shard_of_queue(std::string_view name, std::uint64_t shards);

/// All queues of one shard: which consumer may work on which message. Pure: time and randomness
/// come in, facts and effects go out. Owned by one shard; not thread-safe.
///
/// Truth (queues, messages, leases, dedup) changes only in apply(), with one short cut: a turn of
/// deliver() leases each message when it finds it, by the function that apply() of its fact calls,
/// and records one fact for all of them. Without the short cut it would have to find each message
/// twice. The simulation compares this machine with followers, which apply that fact. Scheduling
/// state (which consumers are connected with how much credit, whose turn it is, what is parked,
/// which part of the truth is in memory) is not truth: it makes no facts, and a restart begins it
/// afresh.
///
/// Invariant: a message is in one place, and has at most one live lease.
class QueueMachine {
 public:
  struct Options {
    std::uint64_t shard = 0;
    std::uint64_t shards = 1;
    std::size_t payload_budget_bytes = limits::kPayloadBudgetBytes;
    Duration delayed_horizon = limits::kDelayedHorizon;
    std::size_t refill_rows = limits::kRefillRows;
    std::size_t refill_bytes = limits::kRefillBytes;
    Duration return_after_restart = limits::kReturnAfterRestart;
  };
  /// Takes each fact before it is applied, and writes it to the journal.
  using Recorder = std::function<void(const QueueFact&)>;

  QueueMachine(Options options, std::uint64_t seed);
  QueueMachine(const QueueMachine&) = delete;
  QueueMachine& operator=(const QueueMachine&) = delete;
  ~QueueMachine();

  // Live. `now` never goes back.
  /// Begins to serve under this boot number. Leases of earlier boots are released soon, unless
  /// their consumers return.
  void start(std::uint64_t boot, Recorder recorder, Instant now);
  /// From `now` on consumers can return; the time that they have for it begins now.
  void begin_serving(Instant now);
  /// Decides and applies one command, item by item, and fills in its outcomes.
  Progress execute(QueueCommand& command, Instant now);
  /// Continues a command that needed rows or waited.
  Progress resume(QueueCommand& command, const std::vector<Row>& rows, bool exhausted, Instant now);
  /// Handles up to `count` deadlines that have passed. True if there are more.
  bool expire(Instant now, std::size_t count);
  /// Leases messages to consumers with room, up to about `count`. True if there are more.
  bool deliver(Instant now, std::size_t count);
  [[nodiscard]] Instant next_deadline() const;
  /// Brings rows back into memory. Makes no facts.
  void refill(const Refill& refill, Instant now);
  /// The effects since the last call.
  QueueEffects take_effects() { return std::exchange(effects_, {}); }

  // Truth.
  /// Makes `fact` true, live and in recovery.
  void apply(const QueueFact& fact, Instant now);
  /// Hands over the changes since the last call, in O(1).
  QueueDelta seal();
  [[nodiscard]] std::uint64_t delta_bytes() const { return delta_.bytes + delta_.other.bytes(); }

  // Recovery, before start(): first the checkpoint's rows, table by table, then the journal's
  // facts.
  /// Takes a row of `queues`, `state`, `keys`, `leases`, `dedup`, `outgoing` or `received`, in this
  /// order.
  Status load(Table table, const Row& row);
  /// Called when all rows are loaded.
  void loaded();
  /// The row that must be restored before `fact` can be applied, if any.
  [[nodiscard]] std::optional<std::pair<Table, std::string>> wants(const QueueFact& fact) const;
  /// Takes the row that wants() named.
  Status restore(Table table, const Row& row);
  /// The rows of leased messages whose bodies are not in memory.
  [[nodiscard]] std::vector<std::string> missing_bodies() const;

  // Reading.
  [[nodiscard]] std::vector<QueueDescription> list(std::string_view prefix) const;
  [[nodiscard]] std::uint64_t payload_bytes() const { return payload_bytes_; }
  [[nodiscard]] const QueueStats& totals() const { return totals_; }
  [[nodiscard]] std::uint64_t lease_lost_total() const { return lease_lost_total_; }

 private:
  using Stored = queue_state::Stored;
  using Key = queue_state::Key;
  using Holder = queue_state::Holder;
  using Bucket = queue_state::Bucket;
  using Queue = queue_state::Queue;
  using Work = queue_state::Work;

  // machine.cc: shared by all parts.
  void commit(const QueueFact& fact, Instant now);
  [[nodiscard]] bool recovering() const { return recorder_ == nullptr; }
  [[nodiscard]] Queue* find_queue(std::string_view name) const;
  [[nodiscard]] Queue* find_queue(QueueId id) const;
  Queue& queue_of(QueueId id);
  void send_away(const Stored& stored, const std::string& to, std::string reason, Instant now);
  void send_outgoing(const Stored& stored, Instant now);
  void finish_outgoing(const Queue& queue, Uuid id, Instant now);
  [[nodiscard]] std::uint64_t shard_of(std::string_view queue) const;
  [[nodiscard]] QueueDescription describe(const Queue& queue) const;
  /// When the oldest ready message was sent, among the next messages of the first `keys` keys in
  /// turn order.
  [[nodiscard]] static std::optional<Instant> oldest_ready(const Queue& queue, std::size_t keys);
  /// The same for many queues. Not all keys are visited, because there may be very many. The oldest
  /// message of a queue whose messages are only in the store stays unknown until some are read
  /// back.
  void find_oldest(std::vector<QueueDescription>& descriptions);
  static std::string dead_letter_queue_of(const Queue& queue);
  static Error no_such_queue(std::string_view name);

  // decide.cc: one command each.
  Progress on(EnqueueCommand& command, Instant now);
  Progress on(AckCommand& command, Instant now);
  Progress on(NackCommand& command, Instant now);
  Progress on(ExtendCommand& command, Instant now);
  Progress on(CreateQueueCommand& command, Instant now);
  Progress on(UpdateQueueCommand& command, Instant now);
  Progress on(DeleteQueueCommand& command, Instant now);
  Progress on(DescribeQueueCommand& command, Instant now);
  Progress on(ListQueuesCommand& command, Instant now);
  void list(ListQueuesCommand& command) const;
  Progress on(PeekCommand& command, Instant now);
  Progress on(PurgeCommand& command, Instant now);
  Progress on(CancelCommand& command, Instant now);
  Progress on(RedriveCommand& command, Instant now);
  Progress on(TransferCommand& command, Instant now);
  Progress on(TransferDoneCommand& command, Instant now);
  Progress on(TransferForgetCommand& command, Instant now);
  EnqueueOutcome enqueue(Queue& queue, const NewMessage& message, Instant now);
  std::optional<Error> refusal(const Queue& queue, const NewMessage& message,
                               const std::optional<DedupHash>& dedup, Instant now) const;
  struct Failure {
    bool counted = true;
    Retry retry;
    std::string reason;
  };
  /// Ends the lease as the queue's settings say: the message returns immediately or later, or
  /// becomes a dead letter.
  void fail(Stored& stored, Failure failure, Instant now);
  void dead_letter(Stored& stored, const std::string& to, std::string reason, Instant now);
  Queue& create_queue(std::string_view name, const QueueSettings& settings, Instant now);
  Duration backoff(const QueueSettings& settings, std::uint32_t attempts);

  // consumers.cc: registers consumers, and ends the leases of those that disconnect.
  Progress on(AttachCommand& command, Instant now);
  Progress on(CreditCommand& command, Instant now);
  Progress on(QuiesceCommand& command, Instant now);
  Progress on(BegunCommand& command, Instant now);
  Progress on(DetachCommand& command, Instant now);
  Progress on(LeaveCommand& command, Instant now);
  [[nodiscard]] Stored* held(LeaseToken token, std::string_view queue) const;
  void release_unwritten(const DetachCommand& command, Instant now);
  void release(Stored& stored, Instant now);
  static void judge(Holder& holder, bool orderly);
  static std::vector<Stored*> leases_of(Holder& holder);

  // operate.cc: peek, cancel, redrive over memory and rows.
  Progress peek_rows(PeekCommand& command, const std::vector<Row>& rows, bool exhausted,
                     Queue& queue);
  Progress cancel_next(CancelCommand& command, Instant now);
  Progress cancel_row(CancelCommand& command, const std::vector<Row>& rows, Instant now);
  Progress redrive_rows(RedriveCommand& command, const std::vector<Row>& rows, bool exhausted,
                        Instant now);
  Progress redrive_memory(RedriveCommand& command, Queue& queue, Instant now);
  Progress redrive_page(RedriveCommand& command, const Queue& queue, std::string from, Instant now);
  bool restore_spilled(const Queue& queue, const Row& row);
  void redrive_row(RedriveCommand& command, Queue& queue, const Row& row, Instant now);
  void redrive_one(RedriveCommand& command, Queue& queue, Stored& stored, Instant now);
  [[nodiscard]] bool is_spilled_ready(const Queue& queue, const MessageKey& key, Uuid id) const;
  [[nodiscard]] bool is_spilled_delayed(const Queue& queue, const std::string& key,
                                        const MessageRow& row) const;
  [[nodiscard]] std::optional<PeekedMessage> peek_row(const Queue& queue, const Row& row) const;
  Progress peek_id_row(PeekCommand& command, const std::vector<Row>& rows, const Queue& queue);

  // apply.cc: one fact each.
  void on(const QueueCreated& fact, Instant now);
  void on(const QueueUpdated& fact, Instant now);
  void on(const QueueDeleted& fact, Instant now);
  void on(const Enqueued& fact, Instant now);
  void on(const Leased& fact, Instant now);
  void on(const Acked& fact, Instant now);
  void on(const Extended& fact, Instant now);
  void on(const Ended& fact, Instant now);
  void on(const DeadLettered& fact, Instant now);
  void on(const BecameReady& fact, Instant now);
  void on(const Removed& fact, Instant now);
  void on(const Purged& fact, Instant now);
  void on(const Redriven& fact, Instant now);
  void on(const Outgoing& fact, Instant now);
  void on(const OutgoingDone& fact, Instant now);
  void on(const Received& fact, Instant now);
  void on(const ReceivedForgotten& fact, Instant now);
  void lease_one(Stored& stored, Holder& holder, LeaseToken token, Instant deadline);
  void note_failure(Stored& stored, const std::string& reason, Instant now);
  void forget_old_dedup_ids(Queue& queue, Instant now);
  static MessageRef dead_letter_body(const Stored& stored, const Queue* to, Instant now);

  // recover.cc.
  using RowName = std::pair<Table, std::string>;
  [[nodiscard]] std::optional<RowName> body_of_lease(LeaseToken token) const;
  [[nodiscard]] std::optional<RowName> body_of_ready(const MessagePlace& place) const;
  [[nodiscard]] std::optional<RowName> body_of_delayed(const BecameReady& fact) const;
  Status load_queue(const Row& row);
  Status load_key(const Row& row);
  Status load_lease(const Row& row);
  Status load_dedup(const Row& row);
  Status load_outgoing(const Row& row);

  // place.cc: moves messages between places, and writes the delta entries of each move.
  Stored& add_message(Queue& queue, Uuid id, std::uint32_t bytes);
  Stored& materialize(const MessagePlace& place, std::uint32_t bytes);
  static void count_new(Queue& queue, const MessageRef& body, Sequence sequence);
  Stored& keep_new(Queue& queue, const MessageRef& body, Sequence sequence);
  void add_ready(Queue& queue, const MessageRef& body, Sequence sequence);
  void add_delayed(Queue& queue, const MessageRef& body, Sequence sequence, Instant due,
                   Instant now);
  void spill(Queue& queue, const MessageRow& row, Place place, Instant due);
  void suspect_row(Stored& stored);
  void enter_key(Stored& stored, std::string_view name);
  void leave_key(Stored& stored);
  void enter_ready(Stored& stored);
  void leave_ready(Stored& stored);
  void link_ready(Stored& stored);
  void enter_delayed(Stored& stored, Instant due);
  void leave_delayed(Stored& stored);
  void leave_lease(Stored& stored);
  void leave_place(Stored& stored);
  void remove(Stored& stored);
  void forget(Stored& stored);
  void advance_horizon(Instant now);
  void sweep_delayed(const std::string& end);
  void flush_sweep();
  [[nodiscard]] bool is_far_off(const std::string& delayed_row) const;
  void drop_key_if_idle(Key& key);
  void set_body(Stored& stored, const MessageRow& row);
  Holder& holder_of(Queue& queue, std::string_view consumer_id);
  void drop_holder_if_idle(Holder& holder);
  void touch(Stored& stored);
  void settle(Stored& stored);
  void touch(Key& key);
  void settle(Key& key);
  void settle(Queue& queue);

  // schedule.cc: whose turn it is.
  void update_deliverable(Queue& queue);
  void update_capacity(Holder& holder);
  void activate(Key& key);
  Stored* pick(Queue& queue, Instant now);
  bool set_aside(Stored& stored, Instant now);
  static Removed removal_of(const Stored& stored, Removed::Why why);
  bool take_turn(Key& key, std::int64_t cost);
  std::size_t run_turn(Queue& queue, Instant now);
  [[nodiscard]] std::int64_t quantum_of(const Key& key) const;
  static std::int64_t cost_of(const Stored& stored);
  std::size_t refill_allowance();
  void request_refill(Key& key);
  void refill_row(Key& key, const Row& row);
  void refill_delayed(const Refill& refill);
  void request_delayed(Instant now);
  [[nodiscard]] const Stored* next_delayed() const;
  Bucket* blocking_bucket(Stored& stored, Instant now);
  Bucket* bucket_of(Queue& queue, std::string_view key, Instant now);
  void spend_tokens(Stored& stored, Instant now);
  void park(Stored& stored, Bucket& bucket);
  void unpark(Stored& stored);
  void refill_bucket(QueueId queue, const std::string& name, Instant now);
  void forget_changed_buckets(Queue& queue, const QueueSettings& before);
  void schedule_bucket(Bucket& bucket);
  bool expire_one(Instant now);
  void expire_lease(Stored& stored, Instant now);
  void release_orphans(Instant now);
  void watch_expiry(Stored& stored);
  void unwatch_expiry(Stored& stored);

  Options options_;
  Random random_;
  Recorder recorder_;
  std::uint64_t boot_ = 0;
  std::uint64_t next_lease_ = 1;
  std::uint64_t next_transfer_ = 1;

  // Truth.
  std::map<std::string, std::unique_ptr<Queue>, std::less<>> queues_;
  std::unordered_map<QueueId, Queue*> queues_by_id_;
  QueueId next_queue_{1};
  LeaseTable<LeaseToken, Stored> leases_;
  std::map<std::pair<Instant, std::pair<QueueId, Uuid>>, Stored*> delayed_;  // Those in memory.
  std::set<std::pair<std::uint64_t, TransferId>> received_;

  // Delayed messages beyond the horizon are rows only.
  std::string delayed_horizon_;          // The first row key not in memory.
  std::uint64_t delayed_far_ = 0;        // How many there are.
  std::set<std::string> delayed_taken_;  // Rows beyond the horizon that are no longer delayed.
  bool delayed_loading_ = false;
  // Where the horizon passed rows of deleted queues since the last checkpoint, which erases them.
  std::string swept_begin_;
  std::string swept_end_;
  std::string delayed_loading_end_;  // Where the horizon will be after the refill under way.

  // Scheduling.
  IntrusiveList<Queue, queue_state::DeliverableTag> deliverable_;
  std::unordered_map<ConsumerNumber, Holder*> connected_;
  std::set<std::pair<Instant, std::pair<QueueId, std::string>>> bucket_deadlines_;
  std::map<std::pair<Instant, std::pair<QueueId, Uuid>>, Stored*> expiring_;
  std::optional<Instant> orphans_until_;

  QueueEffects effects_;
  QueueDelta delta_;
  std::uint64_t delta_number_ = 1;
  std::uint64_t payload_bytes_ = 0;
  std::size_t refill_bytes_under_way_ = 0;
  QueueStats totals_;
  std::uint64_t lease_lost_total_ = 0;
};

}  // namespace baton
