#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/queue/commands.h"
#include "sim/trace.h"

namespace baton {

/// What the clients know, and nothing else: what they sent, what was confirmed, what was delivered.
/// Checks the broker's promises from outside. A message is known by the number in its payload, so
/// that one whose confirmation was lost is still recognised.
class Ledger {
 public:
  struct Sent {
    std::string queue;
    std::string key;
    std::size_t producer = 0;
    std::string dedup_id;
    bool undisturbed = false;  // Neither delayed, nor throttled, nor a dedup id.
    bool may_expire = false;
    Instant at;
  };

  /// A lease's name: each shard gives tokens on its own.
  struct LeaseName {
    std::uint64_t shard = 0;
    LeaseToken token;
    auto operator<=>(const LeaseName&) const = default;
  };

  /// A registration that has ended: which messages may count an attempt by that, and which may not.
  struct Parting {
    std::string queue;
    std::string consumer_id;
    std::uint64_t attach = 0;
    std::uint32_t concurrency = 1;
    bool orderly = false;
    std::set<LeaseName> written{};  // Deliveries that reached it.
    std::set<LeaseName> begun{};    // Those that it marked as begun.
  };

  Ledger(Trace& trace, std::uint64_t shards) : trace_(trace), shards_(shards) {}

  [[nodiscard]] LeaseName name(const std::string& queue, LeaseToken token) const;

  // Producers.
  std::uint64_t send(Sent sent);
  void answered(std::uint64_t number, const EnqueueOutcome& outcome, std::string_view queue);
  /// The queue has, or may have, this window from now on.
  void set_dedup_window(const std::string& queue, Duration window);
  /// The queue does not release on disconnect: not even a restart ends its leases early.
  void set_keeps_leases(const std::string& queue) { keeps_leases_.insert(queue); }

  // Consumers.
  void delivered(const std::string& queue, const std::string& consumer_id, const Delivery& delivery,
                 Instant now);
  /// The delivery reached its consumer, which may work on it from now on.
  void written(const LeaseName& name);
  /// The delivery came when its consumer had left already, too late to be named in the detach.
  void arrived_late(const LeaseName& name);
  void ack_sent(const LeaseName& name);
  void acked(const LeaseName& name, const ItemOutcome& outcome, Instant now);
  void nack_sent(const LeaseName& name);
  void extend_sent(const LeaseName& name, Instant deadline_at_least);
  void extended(const LeaseName& name, Instant deadline_at_least, const ItemOutcome& outcome,
                Instant now);
  /// The consumer has left, or another has taken its place.
  void left(const std::string& queue, const std::string& consumer_id);
  /// A consumer registers under that id; returns how many have.
  std::uint64_t attach_sent(const std::string& queue, const std::string& consumer_id) {
    return ++attaches_[{queue, consumer_id}];
  }
  /// The broker has processed the detach.
  void left_for_good(const Parting& parting, Instant now);
  /// The consumer is registered again.
  void returned(const std::string& queue, const std::string& consumer_id, Instant now);

  // Operators.
  void cancel_sent(Uuid id);
  void cancelled(Uuid id, const std::string& queue, const ItemOutcome& outcome);
  /// A purge or a delete of the queue is in flight; by name, it also affects later messages.
  void destroy_sent(const std::string& queue);
  void destroy_ended(const std::string& queue);
  /// `acked_before`: what acked() returned when it was sent.
  void peeked(const PeekCommand& command, std::size_t acked_before);
  /// A confirmed message, for an operator to name.
  [[nodiscard]] std::optional<std::pair<std::string, Uuid>> find_confirmed(
      std::uint64_t number) const;

  // The broker.
  void crashed(Instant now);
  void restarted(Instant now, Duration return_after);

  /// At the end, when everything was drained: no confirmed message is missing.
  void finish();
  [[nodiscard]] std::size_t sent() const { return letters_.size(); }
  [[nodiscard]] std::size_t confirmed() const { return by_id_.size(); }
  [[nodiscard]] std::size_t acked() const { return acked_; }

 private:
  enum class Fate : std::uint8_t { unknown, confirmed, refused, duplicate };
  /// A message's time in one queue: its attempts begin anew when it dies, or is redriven.
  struct Home {
    std::uint32_t attempt = 0;  // The last attempt seen.
    std::uint32_t written = 0;  // Deliveries that reached a consumer, and so may count.
  };
  struct Letter {
    Sent sent;
    std::uint64_t number = 0;
    Fate fate = Fate::unknown;
    std::uint64_t life = 0;  // In which it was sent.
    std::optional<Uuid> id;
    bool acked = false;
    std::size_t ack_number = 0;
    bool cancelled = false;
    bool excused = false;           // An operation may have removed it.
    std::uint32_t unknown = 0;      // Acks and cancels without an answer.
    std::uint32_t cancels = 0;      // How many of these are cancels.
    std::vector<LeaseName> leases;  // All leases that were seen, in order.
    std::uint32_t unwritten_lost = 0;
    std::map<std::string, Home> homes;
  };
  struct Lease {
    std::uint64_t number = 0;
    std::string queue;
    std::string consumer_id;
    std::string home;
    Instant deadline;              // The lease does not end before.
    std::vector<Instant> extends;  // In flight, or lost: how long each would make it last.
    std::optional<Instant> orphan_until;
    bool doubt = false;    // Its holder gave it up, or another client may have ended it.
    bool over = false;     // Its ack or nack succeeded.
    bool touched = false;  // A request may have ended it.
  };

  [[nodiscard]] static bool is_live(const Lease& lease, Instant now);
  Letter* find_letter(const Message& message);
  Lease* find_lease(const LeaseName& name);
  void check_fresh_lease(const Letter& letter, const LeaseName& name, Instant now);
  void check_attempt(Letter& letter, const std::string& queue, const Delivery& delivery);
  void check_order(const Letter& letter, const std::string& queue, const Delivery& delivery);
  void check_found(const Letter& letter, const std::string& queue, const Error& error);
  void check_refusal(const LeaseName& name, const ItemOutcome& outcome, Instant now);
  void note_stored(Letter& letter, Uuid id);
  void check_dedup(const Letter& letter, Uuid id);
  void check_duplicate(const Letter& letter, Uuid id);

  Trace& trace_;
  std::uint64_t shards_;
  std::map<std::uint64_t, Letter> letters_;
  std::map<Uuid, std::uint64_t> by_id_;
  std::map<LeaseName, Lease> leases_;
  struct Window {
    Duration least;
    Duration most;
  };
  std::map<std::string, Window> dedup_windows_;
  std::set<std::string> dedup_unknown_;  // Queues that may have forgotten their dedup ids.
  std::map<std::pair<std::string, std::string>, std::vector<Uuid>> dedup_stored_;
  std::map<std::string, std::uint32_t> destroying_;
  std::set<std::string> keeps_leases_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> attaches_;
  // (producer, queue, key) -> the messages first delivered in this life, by token.
  std::map<std::tuple<std::size_t, std::string, std::string>, std::map<LeaseToken, std::uint64_t>>
      served_;
  std::uint64_t next_ = 1;
  std::uint64_t life_ = 0;
  std::uint32_t hidden_leases_ = 0;  // How many leases of one message a crash may have hidden.
  std::uint32_t leaving_ = 0;        // Detaches in flight.
  std::size_t acked_ = 0;
};

}  // namespace baton
