#pragma once

#include <baton/v1/streams.pb.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/group/seat.h"
#include "server/grpc/api_state.h"
#include "server/grpc/calls.h"
#include "server/grpc/chunk.h"
#include "server/grpc/leased_stream.h"
#include "server/grpc/read_stream.h"
#include "server/grpc/status.h"
#include "server/shard/stream_commands.h"

namespace baton {

/// What a Start asks for, checked.
struct SubscriptionWanted {
  SubscriptionId id;
  SubscribeCommand command;
  ReadFrom from;
  std::uint64_t credit_batches = 0;
  std::uint64_t credit_bytes = 0;
  ChunkFormat format = ChunkFormat::batches;
  bool ask_offset = false;
  bool skip_gaps = false;
};

/// What was taken of a subscription's credit.
struct CreditTaken {
  std::uint64_t batches = 0;
  std::uint64_t bytes = 0;
};

/// A Subscribe call: one connection to the coordinator, with any number of subscriptions, and what
/// is delivered to them.
///
/// Each (subscription, partition) is a Feed. While one delivers, a background thread reads for it,
/// one piece at a time, as long as there is credit and not too much waits to be written; at the
/// end of the partition it waits to be woken. A feed of a single-active group has a Seat that says
/// when it may deliver. Whatever starts or stops a feed gives it a new `run`: a read that was begun
/// under another one brings nothing, so nothing is delivered after a step-down.
///
/// Owned and locked as every Stream (see there).
class SubscriptionStream final : public LeasedStream, public SeatSink {
 public:
  explicit SubscriptionStream(std::shared_ptr<ApiState> state);
  SubscriptionStream(const SubscriptionStream&) = delete;
  SubscriptionStream& operator=(const SubscriptionStream&) = delete;
  ~SubscriptionStream() override;

  // From the shard.
  void told(const CoordinatorEffects::Effect& effect) override;
  [[nodiscard]] std::optional<Instant> lease_until() const override { return known_lease(); }

 private:
  struct Subscription;

  struct Feed final : PartitionWaiter, std::enable_shared_from_this<Feed> {
    Feed(std::weak_ptr<SubscriptionStream> stream, SubscribeCommand::Subscribed part)
        : owner(std::move(stream)),
          number(part.partition),
          partition(std::move(part.opened)),
          reader(partition->reader()) {}
    void wake() override;

    const std::weak_ptr<SubscriptionStream> owner;
    const PartitionNumber number;
    const std::shared_ptr<StreamPartition> partition;
    // Only touched by the one read under way.
    PartitionReader reader;

    // Under the stream's mutex.
    std::shared_ptr<Subscription> subscription;
    std::unique_ptr<Seat> seat;  // Of a single-active group.
    bool delivering = false;
    bool reading = false;
    bool waiting = false;     // For the partition to grow.
    bool registered = false;  // With the partition, which will wake it; perhaps for an older run.
    CreditTaken reserved;     // For the read under way.
    Instant deadline = Instant::never();  // The last that was watched.
    std::uint64_t run = 0;
    std::optional<Offset> offset;  // None: where the Start said.
  };

  struct Subscription {
    SubscriptionWanted wanted;
    Ticket ticket;
    std::uint64_t credit_batches = 0;
    std::uint64_t credit_bytes = 0;
    bool started = false;
    bool closed = false;
    // Closed before the broker had answered the Start: then at once.
    std::optional<std::optional<Error>> close_when_started;
    std::map<PartitionNumber, std::shared_ptr<Feed>> feeds;
  };

  /// A field of a SubscribeResponse, encoded. Fields one after the other are a response.
  struct Piece {
    std::string bytes;
    const Feed* feed = nullptr;  // Of a batch,
    CreditTaken cost;            // and what to give back when it is not sent.
  };

  // As a Stream.
  void take(grpc::ByteBuffer& request) override;
  [[nodiscard]] bool has_room() const override;
  [[nodiscard]] bool has_output() const override { return !pieces_.empty(); }
  std::string take_output(Lock& lock) override;
  void written(bool ok) override;
  [[nodiscard]] bool settled() const override { return pieces_.empty() && under_way_ == 0; }
  bool release(Lock& lock) override;
  [[nodiscard]] bool released() const override;
  void lease_ended() override;

  // subscription_stream.cc: what the client asks.
  void take_heartbeat(const v1::Heartbeat& heartbeat);
  void start(const v1::Start& start);
  void started(const std::shared_ptr<Subscription>& subscription, SubscribeCommand* done);
  void add_credit(const v1::Credit& credit);
  void store_offset(const v1::StoreSubscriptionOffset& item);
  void take_reply(const v1::UpdateReply& reply);
  void unsubscribe(SubscriptionId id);
  void drop_subscriptions();
  /// Hands a command over that was counted as under way when it was decided, with the lock held:
  /// so nothing overtakes it. Its end is counted, and `then` runs with the lock held.
  template <class Wanted, class Then>
  void send(Wanted command, Then then);

  /// Hands a command over once the lock is released: the broker may answer at once.
  template <class Wanted, class Then>
  void send_later(Wanted command, Then then);
  /// Hands over what was put off, and pumps. Called without the lock, after every change.
  void finish_turn();

  // subscription_feed.cc: seats and delivery. With the lock held, but read().
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
                  std::string piece);
  void deliver(Feed& feed, const Chunk& chunk, std::string piece);
  bool take_failure(Feed& feed, const Error& error);
  bool wait_for_more(const std::shared_ptr<Feed>& feed);
  void close(Subscription& subscription, const std::optional<Error>& reason, bool unregister);
  void say(std::string piece, const Feed* feed = nullptr, CreditTaken cost = {});
  void say_ahead_of_batches(std::string piece);
  static void give_back(Subscription& subscription, CreditTaken taken);
  [[nodiscard]] bool has_credit(const Subscription& subscription) const {
    return subscription.credit_batches > 0 && subscription.credit_bytes > 0;
  }
  [[nodiscard]] std::shared_ptr<Subscription> find(SubscriptionId id) const;
  std::shared_ptr<SubscriptionStream> self() {
    return std::static_pointer_cast<SubscriptionStream>(shared_from_this());
  }

  ConnectionId connection_;
  v1::SubscribeRequest request_;

  // Under the mutex.
  std::map<SubscriptionId, std::shared_ptr<Subscription>> subscriptions_;
  std::set<std::string> streams_;            // Of groups that have members of this connection.
  std::set<std::shared_ptr<Feed>> blocked_;  // Want to read, but for credit or room.
  std::deque<Piece> pieces_;
  std::size_t piece_bytes_ = 0;
  std::vector<std::function<void()>> put_off_;
  std::size_t under_way_ = 0;  // Commands.
  bool requested_ = false;     // The first request was taken.
  bool releasing_ = false;
};

template <class Wanted, class Then>
void SubscriptionStream::send(Wanted command, Then then) {
  submit(state_->broker, std::move(command), Broker::Admission::reserved,
         [stream = self(), then = std::move(then)](Command* done) mutable {
           {
             const std::lock_guard lock(stream->mutex_);
             --stream->under_way_;
             if (done == nullptr) stream->set_end(to_status(busy()));
             then(answer_of<Wanted>(done));
           }
           stream->finish_turn();
         });
}

template <class Wanted, class Then>
void SubscriptionStream::send_later(Wanted command, Then then) {
  ++under_way_;
  put_off_.emplace_back([stream = self(), command = std::move(command), then = std::move(then)] {
    stream->send(command, then);
  });
}

}  // namespace baton
