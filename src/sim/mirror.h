#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "core/queue/facts.h"
#include "core/queue/machine.h"
#include "server/shard/shard_facts.h"
#include "sim/trace.h"
#include "storage/journal/journal.h"

namespace baton {

/// A second, simpler model of one shard's queues: plain maps of all messages, fed with the facts of
/// the journal. It has no windows, rows, deltas or indexes, counts by walking, and refuses facts
/// that break a rule of the spec. After every round and every recovery, the shard must describe its
/// queues as the mirror does.
class Mirror {
 public:
  struct Options {
    std::string name;
    std::uint64_t shard = 0;
    std::uint64_t shards = 1;
    bool roomy = false;  // Fairness is checked against its bound.
  };

  Mirror(Trace& trace, Options options) : trace_(trace), options_(std::move(options)) {}

  /// Starts over: the rounds that a crash left are applied again.
  void reset();
  /// `live`: not a repetition after a crash.
  void apply(const Round& round, bool live);
  void compare(const std::vector<QueueDescription>& found, std::string_view when) const;
  /// Checks that nothing is overdue when the shard says that it has nothing to do.
  void check_deadlines(Instant now) const;
  [[nodiscard]] std::size_t messages() const;
  [[nodiscard]] std::uint64_t boot() const { return boot_; }
  /// Whether the queue was purged in the very millisecond in which that id was made: a purge may
  /// then leave the id's row behind, which names no message.
  [[nodiscard]] bool purged_when_made(QueueId queue, const Uuid& id) const;
  /// One line for each queue that is not empty.
  [[nodiscard]] std::string summary() const;

 private:
  /// A message, in any state.
  struct Letter {
    Place place = Place::ready;
    MessageRef body;
    Sequence sequence;
    Instant due;
    std::uint32_t attempts = 0;
    Instant first_failure;
    LeaseToken token;
    Instant deadline;
    bool leased_before = false;
    TransferId transfer;
  };
  struct Tokens {
    Instant filled_at;
    Duration level{0};
  };
  struct MirrorQueue {
    QueueId id;
    std::string name;
    QueueSettings settings;
    std::map<Uuid, Letter> letters;
    Sequence next_sequence{1};
    std::map<DedupHash, Instant> dedup;
    Duration dedup_window{0};  // The shortest window so far: ids that it forgot stay forgotten.
    std::map<std::string, Sequence> last_first_lease;  // By key: the order in which it is served.
    std::map<std::string, Tokens> buckets;
    // Keys with messages that may be only rows: these wait for the store, not for their turn.
    std::set<std::string> unfair;
    // For two keys that both had messages all the time: how many of each were served.
    std::map<std::pair<std::string, std::string>, std::pair<std::uint64_t, std::uint64_t>> races;

    [[nodiscard]] std::size_t count(Place place) const;
    [[nodiscard]] std::size_t ready_of(std::string_view key) const;
  };

  template <class... Args>
  void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    trace_.fail("{}: round {}: {}", options_.name, position_.value,
                fmt::format(format, std::forward<Args>(args)...));
  }

  void apply_boot(const Booted& booted);
  void apply_fact(const QueueFact& fact, bool live);
  void on(const QueueCreated& fact);
  void on(const QueueUpdated& fact);
  void on(const QueueDeleted& fact);
  void on(const Enqueued& fact);
  void on(const Leased& fact);
  void on(const Acked& fact);
  void on(const Extended& fact);
  void on(const Ended& fact);
  void on(const DeadLettered& fact);
  void on(const BecameReady& fact);
  void on(const Removed& fact);
  void on(const Purged& fact);
  void on(const Redriven& fact);
  void on(const Outgoing& fact);
  void on(const OutgoingDone& fact);
  void on(const Received& fact);
  void on(const ReceivedForgotten& fact);

  MirrorQueue* queue_of(QueueId id);
  Letter* letter_of(QueueId queue, Uuid id);
  Letter* leased_under(LeaseToken token, MirrorQueue*& queue);
  void take_sequence(MirrorQueue& queue, Sequence sequence);
  void add_ready(MirrorQueue& queue, const MessageRef& body, Sequence sequence);
  void check_dedup(MirrorQueue& queue, const Enqueued& fact);
  void check_order(MirrorQueue& queue, const Letter& letter, const std::string& key);
  void check_throttles(MirrorQueue& queue, const Letter& letter);
  void check_end(const Ended& fact, const Letter& letter);
  void check_last_attempt(const MirrorQueue& queue, const Letter& letter);
  void check_token(LeaseToken token);
  void check_leasable(const Leased::Item& item, const Letter& letter);
  void run_races(MirrorQueue& queue, const std::string& served);
  void run_race(MirrorQueue& queue, const std::string& served, const std::string& other);
  void end_races(MirrorQueue& queue);
  void fail_once(Letter& letter);
  [[nodiscard]] MessageRef dead_body(const MirrorQueue& from, const Letter& letter,
                                     const std::string& reason, Instant expires) const;
  static std::uint32_t weight_of(const MirrorQueue& queue, const std::string& key);

  Trace& trace_;
  Options options_;
  Position position_;
  Instant now_;
  std::uint64_t boot_ = 0;
  std::map<QueueId, MirrorQueue> queues_;
  std::map<LeaseToken, std::pair<QueueId, Uuid>> leases_;
  std::set<LeaseToken> tokens_;  // Ever given.
  std::set<Uuid> ids_;           // Ever enqueued.
  QueueId last_queue_{0};
  std::set<std::pair<std::uint64_t, TransferId>> received_;
  std::set<TransferId> transfers_;  // Ever given.
  std::set<std::pair<QueueId, std::int64_t>> purges_;
};

}  // namespace baton
