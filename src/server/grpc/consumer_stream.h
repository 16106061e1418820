#pragma once

#include <baton/v1/queues.pb.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/queue/commands.h"
#include "core/queue/token.h"
#include "server/grpc/api_state.h"
#include "server/grpc/leased_stream.h"
#include "server/grpc/queue_convert.h"
#include "server/grpc/queue_wire.h"

namespace baton {

/// A consumer: the stream of a Lease or of a Consume call, and the sink that its shard delivers to.
///
/// It registers with an AttachCommand; the first response says so, and only then come messages.
/// What waits to be written is bounded by the consumer's max_in_flight by construction: the shard
/// leases it no more than that, and every message here is leased. One write is under way at a time;
/// each takes whatever waits, up to a frame's bound, so frames grow with the load.
///
/// Invariant: each attach that succeeded is followed by a QuiesceCommand, when nothing more will be
/// written (and by one before, if the client asks for it), and then by exactly one DetachCommand.
/// Its `unwritten` are the tokens of messages that were never given to gRPC (also those that were
/// still on their way here), or whose write failed. It is orderly when the client closed its side
/// or asked for a quiesce, and when it was the broker who ended the stream; not when the call
/// broke.
///
/// Owned and locked as every Stream (see there).
class ConsumerStream final : public LeasedStream, public ConsumerSink {
 public:
  explicit ConsumerStream(std::shared_ptr<ApiState> state);
  ConsumerStream(const ConsumerStream&) = delete;
  ConsumerStream& operator=(const ConsumerStream&) = delete;
  ~ConsumerStream() override;

  /// Registers the consumer. Called once: by the service for Lease, by the first request for
  /// Consume.
  void attach(AttachCommand command);

  // From the shard.
  void deliver(std::vector<Delivery> deliveries) override;
  void close(const Error& reason) override;

 private:
  enum class Registration : std::uint8_t { none, under_way, attached, quiescing, detaching, over };

  /// The items of one request, until their results are written.
  struct Slot {
    std::size_t bytes = 0;
    int calls_under_way = 0;
    bool abandoned = false;  // The broker dropped a call: these results will never be known.
    Results<ItemOutcome> acks;
    Results<ItemOutcome> nacks;
    Results<ItemOutcome> extends;

    [[nodiscard]] std::size_t items() const { return acks.items + nacks.items + extends.items; }
  };
  enum class Quiet : std::uint8_t { no, due, told };
  using SlotResults = Results<ItemOutcome> Slot::*;

  void take(grpc::ByteBuffer& request) override;
  [[nodiscard]] bool has_room() const override;
  [[nodiscard]] bool has_output() const override;
  std::string take_output(Lock& lock) override;
  void written(bool ok) override;
  [[nodiscard]] bool settled() const override;
  bool release(Lock& lock) override;
  [[nodiscard]] bool released() const override;

  Status take_request(std::size_t bytes);
  void submit_items(ConsumerBatch batch, std::size_t bytes);
  template <class Wanted>
  void submit_plain(Slot& slot, Wanted command);
  template <class Wanted>
  void submit_batch(Slot& slot, SlotResults results, Batch<Wanted> batch);
  void drop_silent_slots();
  void attached(AttachCommand* command);
  std::vector<Delivery> take_deliveries();
  std::vector<LeaseToken> take_unwritten();
  void detach();

  // Only touched by attach() and, after it, by take().
  bool started_ = false;
  bool manual_credit_ = false;
  v1::ConsumeRequest request_;

  // Set by attach(), and constant from then on.
  std::string queue_;
  QueueTokens tokens_;
  ConsumerNumber consumer_;
  std::string consumer_id_;

  // Under the mutex.
  Registration registration_ = Registration::none;
  bool registered_due_ = false;  // The first response is still to be written.
  bool dropped_ = false;         // The broker drops calls: it is stopping, and not called any more.
  Duration visibility_timeout_{0};
  Quiet quiet_ = Quiet::no;  // The client asked for it, and the shard gives nothing more.
  std::deque<Slot> slots_;   // In the order of the requests. Elements never move.
  std::size_t bytes_ = 0;    // Of the slots.
  std::deque<v1::HeartbeatAck> answers_;  // To heartbeats. They go ahead of everything.
  std::deque<Delivery> pending_;
  std::vector<LeaseToken> in_write_;   // Of the write under way.
  std::vector<LeaseToken> unwritten_;  // Of writes that failed.
};

}  // namespace baton
