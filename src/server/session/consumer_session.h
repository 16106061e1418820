#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/queue/commands.h"
#include "server/session/items.h"
#include "server/session/leased_session.h"
#include "server/session/server_state.h"

namespace baton {

/// The items of a consumer's request, besides its start. Invalid items are refused one by one.
struct ConsumerItems {
  CheckedItems<AckCommand> acks;
  CheckedItems<NackCommand> nacks;
  CheckedItems<ExtendCommand> extends;
  std::vector<LeaseToken> begun;
  std::uint64_t credit = 0;
  bool quiesce = false;
};

/// A consumer of a queue, and the sink that its shard delivers to.
///
/// It registers with an AttachCommand; the first output confirms that, and only then do messages
/// follow. What waits to be written is bounded by the consumer's in_flight_max, because every
/// message here is leased and the shard leases no more than that. One write is under way at a time;
/// each takes what waits, up to a limit, so outputs grow with the load.
///
/// Invariant: each successful attach is followed by a QuiesceCommand, when nothing more will be
/// written (and by one before, if the client asks for it), and then by exactly one DetachCommand.
/// Its `unwritten` are the tokens of messages that were never given to the protocol (also those
/// that were still on their way here), or whose write failed. The detach is orderly if the client
/// closed its side or asked for a quiesce, or if the broker ended the session; it is not if the
/// connection broke.
///
/// Owned and locked like every Session (see there).
class ConsumerSession final : public LeasedSession, public ConsumerSink {
 public:
  explicit ConsumerSession(std::shared_ptr<ServerState> state);
  ConsumerSession(const ConsumerSession&) = delete;
  ConsumerSession& operator=(const ConsumerSession&) = delete;
  ~ConsumerSession() override;

  /// The results of one request's items, in its order.
  struct ItemResults {
    Results<ItemOutcome> acks;
    Results<ItemOutcome> nacks;
    Results<ItemOutcome> extends;

    [[nodiscard]] std::size_t items() const { return acks.items + nacks.items + extends.items; }
  };
  struct Registered {
    std::string consumer_id;
    Duration visibility_timeout{0};
  };
  /// The contents of one output, in this order.
  struct Output {
    std::optional<HeartbeatAnswer> heartbeat{};
    std::optional<Registered> registered{};
    std::vector<ItemResults> results{};
    std::vector<Delivery> deliveries{};
    bool quiesced = false;  // No deliveries follow this.
  };

  /// The contents of one request; the parts are taken in this order.
  struct Request {
    std::optional<std::uint64_t> heartbeat{};
    /// Registers the consumer: only in the first request. `credit` set: manual.
    std::optional<AttachCommand> start{};
    ConsumerItems items{};
    std::size_t bytes = 0;  // On the wire.
  };

  /// Fails if the request breaks a rule; the caller then ends the session.
  Status take(Request request);
  /// The next output. Called with the lock held, which it keeps.
  Output take_output();

  // Called by the shard.
  void deliver(std::vector<Delivery> deliveries) override;
  void close(const Error& reason) override;

 private:
  enum class Stage : std::uint8_t { none, under_way, attached, quiescing, detaching, over };

  /// The items of one request, until their results are taken.
  struct Slot {
    std::size_t bytes = 0;
    int calls_under_way = 0;
    bool abandoned = false;  // The broker dropped a call: these results will never be known.
    ItemResults results;

    [[nodiscard]] bool is_complete() const { return calls_under_way == 0 && !abandoned; }
  };
  enum class Quiet : std::uint8_t { no, due, told };
  using Part = Results<ItemOutcome> ItemResults::*;

  [[nodiscard]] bool has_room() const override;
  [[nodiscard]] bool has_output() const override;
  void written(bool ok) override;
  [[nodiscard]] bool settled() const override;
  bool release(Lock& lock) override;
  [[nodiscard]] bool released() const override;

  void take_heartbeat(std::uint64_t number);
  void attach(AttachCommand command);
  void submit_items(ConsumerItems items, std::size_t bytes);
  template <class Wanted>
  void submit_plain(Slot& slot, Wanted command);
  template <class Wanted>
  void submit_checked(Slot& slot, Part part, CheckedItems<Wanted> checked);
  void drop_silent_slots();
  void attached(AttachCommand* command);
  std::vector<Delivery> take_deliveries();
  std::vector<LeaseToken> take_unwritten();
  void detach();

  // Only used while a request is taken.
  bool started_ = false;
  bool manual_credit_ = false;

  // Set by attach(), and constant after that.
  std::string queue_;
  ConsumerNumber consumer_;
  std::string consumer_id_;

  // Guarded by the mutex.
  Stage stage_ = Stage::none;
  bool registered_due_ = false;  // The first output has not been taken yet.
  // The broker drops calls because it is stopping, and must not be called any more.
  bool dropped_ = false;
  Duration visibility_timeout_{0};
  Quiet quiet_ = Quiet::no;  // The client asked for it, and the shard delivers nothing more.
  std::deque<Slot> slots_;   // In the order of the requests. Elements never move.
  std::size_t bytes_ = 0;    // Of the slots.
  // Answers to heartbeats, which are sent before everything else.
  std::deque<HeartbeatAnswer> answers_;
  std::deque<Delivery> pending_;
  std::vector<LeaseToken> in_write_;   // Of the write under way.
  std::vector<LeaseToken> unwritten_;  // Of writes that failed.
};

}  // namespace baton
