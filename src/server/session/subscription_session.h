#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/group/seat.h"
#include "server/session/calls.h"
#include "server/session/leased_session.h"
#include "server/session/read_from.h"
#include "server/session/server_state.h"
#include "server/session/subscription_talk.h"
#include "server/shard/stream_commands.h"

namespace baton {

/// One connection to the coordinator, with any number of subscriptions and their deliveries.
///
/// Each (subscription, partition) is a Feed. While a feed delivers, a background thread reads for
/// it, one chunk at a time, while there is credit and not too much waits to be written; at the end
/// of the partition the feed waits to be woken. A feed of a single-active group has a Seat that
/// says when it may deliver. Everything that starts or stops a feed gives it a new `run`: the
/// result of a read that began under another run is dropped, so nothing is delivered after a
/// step-down.
///
/// Owned and locked like every Session (see there).
class SubscriptionSession final : public LeasedSession, public SeatSink {
 public:
  explicit SubscriptionSession(std::shared_ptr<ServerState> state);
  SubscriptionSession(const SubscriptionSession&) = delete;
  SubscriptionSession& operator=(const SubscriptionSession&) = delete;
  ~SubscriptionSession() override;

  using Output = subscription::Output;

  /// Moves the parts out of a request. Fails if the request has too many.
  Status take(subscription::Request& request);
  /// Moves as much as fits into one output into `output`, which is empty. Called with the lock
  /// held.
  void take_output(Output& output) { said_.take(output); }

  // Called by the shard.
  void told(const CoordinatorEffects::Effect& effect) override;
  [[nodiscard]] std::optional<Instant> lease_until() const override { return known_lease(); }

 private:
  struct Subscription;

  struct Feed final : PartitionWaiter, std::enable_shared_from_this<Feed> {
    Feed(std::weak_ptr<SubscriptionSession> session, SubscribeCommand::Subscribed part)
        : owner(std::move(session)),
          number(part.partition),
          partition(std::move(part.opened)),
          reader(partition->reader()) {}
    void wake() override;

    const std::weak_ptr<SubscriptionSession> owner;
    const PartitionNumber number;
    const std::shared_ptr<StreamPartition> partition;
    // Only used by the read under way.
    PartitionReader reader;

    // Guarded by the session's mutex.
    std::shared_ptr<Subscription> subscription;
    std::unique_ptr<Seat> seat;  // Of a single-active group.
    bool delivering = false;
    bool reading = false;
    bool waiting = false;  // Waits for the partition to grow.
    // Registered with the partition, which will wake it; possibly for an older run.
    bool registered = false;
    subscription::Credit reserved;        // For the read under way.
    Instant deadline = Instant::never();  // The last deadline that is watched.
    std::uint64_t run = 0;
    std::optional<Offset> offset;  // nullopt: where the start says.
  };

  struct Subscription {
    subscription::Wanted wanted;
    Ticket ticket;
    subscription::Credit credit;
    bool started = false;
    bool closed = false;
    // Set if the subscription was closed before the broker answered its start: it is closed as soon
    // as the answer arrives.
    std::optional<std::optional<Error>> close_when_started;
    std::map<PartitionNumber, std::shared_ptr<Feed>> feeds;
  };

  // Overrides of Session.
  [[nodiscard]] bool has_room() const override;
  [[nodiscard]] bool has_output() const override { return !said_.empty(); }
  void written(bool ok) override;
  [[nodiscard]] bool settled() const override { return said_.empty() && under_way_ == 0; }
  bool release(Lock& lock) override;
  [[nodiscard]] bool released() const override;
  void lease_ended() override;

  // subscription_session.cc: the client's requests.
  void take_heartbeat(std::uint64_t number);
  void start(subscription::Start item);
  void started(const std::shared_ptr<Subscription>& subscription, SubscribeCommand* done);
  void add_credit(const subscription::MoreCredit& more);
  void store_offset(const subscription::StoreOffset& item);
  void take_reply(const subscription::Reply& reply);
  void unsubscribe(SubscriptionId id);
  void drop_subscriptions();
  /// Submits a command that was counted as under way when it was decided, with the lock held: so
  /// nothing overtakes it. Its end is counted, and `then` runs with the lock held.
  template <class Wanted, class Then>
  void send(Wanted command, Then then);

  /// Submits a command once the lock is released, because the broker may answer at once.
  template <class Wanted, class Then>
  void send_later(Wanted command, Then then);
  /// Submits the deferred commands, and pumps. Called without the lock, after every change.
  void finish_turn();

  // subscription_feed.cc: seats and delivery. Called with the lock held, except read().
  template <class Told>
  void hear(const Told& told);
  void act(const std::shared_ptr<Feed>& feed, const SeatActions& actions);
  void watch_deadline(const std::shared_ptr<Feed>& feed);
  void store_beginning(const Feed& feed);
  void begin_delivery(const std::shared_ptr<Feed>& feed, std::optional<Offset> from);
  void stop_delivery(Feed& feed);
  void schedule(const std::shared_ptr<Feed>& feed);
  void post_read(const std::shared_ptr<Feed>& feed, std::uint64_t run);
  void unblock();
  void read(const std::shared_ptr<Feed>& feed, std::uint64_t run);
  std::optional<ChunkWanted> next_wanted(Feed& feed, std::uint64_t run, Lock& lock);
  void take_chunk(const std::shared_ptr<Feed>& feed, std::uint64_t run, Result<Chunk> chunk,
                  Generation epoch);
  void deliver(Feed& feed, Chunk chunk, Generation epoch);
  bool take_failure(Feed& feed, const Error& error);
  bool wait_for_more(const std::shared_ptr<Feed>& feed);
  void close(Subscription& subscription, const std::optional<Error>& reason, bool unregister);
  /// Whether a feed of the subscription may read now: it has credit, and not too much waits.
  [[nodiscard]] bool may_read(const Subscription& subscription) const;
  [[nodiscard]] std::shared_ptr<Subscription> find(SubscriptionId id) const;
  std::shared_ptr<SubscriptionSession> self() {
    return std::static_pointer_cast<SubscriptionSession>(shared_from_this());
  }

  ConnectionId connection_;

  // Guarded by the mutex.
  std::map<SubscriptionId, std::shared_ptr<Subscription>> subscriptions_;
  std::set<std::string> streams_;            // Of groups with members of this connection.
  std::set<std::shared_ptr<Feed>> blocked_;  // Feeds that wait for credit or room to read.
  subscription::OutputQueue said_;
  std::vector<std::function<void()>> put_off_;
  std::size_t under_way_ = 0;  // The number of commands.
  bool requested_ = false;     // The first request was taken.
  bool releasing_ = false;
};

template <class Wanted, class Then>
void SubscriptionSession::send(Wanted command, Then then) {
  submit(state_->broker, std::move(command), Broker::Admission::reserved,
         [session = self(), then = std::move(then)](Command* done) mutable {
           {
             const std::lock_guard lock(session->mutex_);
             --session->under_way_;
             if (done == nullptr) session->set_end(busy());
             then(answer_of<Wanted>(done));
           }
           session->finish_turn();
         });
}

template <class Wanted, class Then>
void SubscriptionSession::send_later(Wanted command, Then then) {
  ++under_way_;
  put_off_.emplace_back([session = self(), command = std::move(command), then = std::move(then)] {
    session->send(command, then);
  });
}

}  // namespace baton
