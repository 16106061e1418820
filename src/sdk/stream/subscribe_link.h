#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include <baton/stream_consumer.h>
#include <baton/v1/streams.grpc.pb.h>

#include "sdk/base/leased_link.h"
#include "sdk/stream/partition_seat.h"

namespace baton::client {

/// A partition that the consumer reads, and its start as far as that is known.
struct PartitionStart {
  PartitionNumber partition{};
  ReadFloor floor{};
};

/// The consumer's side of Subscribe: passes messages between the broker and the seats. Thread-safe.
/// Workers take tasks from it and return them.
///
/// A single-active consumer has one subscription, so that all partitions agree on its turn; any
/// other has one per partition, so that each can go on where it was.
///
/// Seats are held under the lease of the call: when that has ended, no record is handed out and no
/// offset is sent, whatever still comes over the connection.
class SubscribeLink final : public LeasedLink<v1::SubscribeRequest, v1::SubscribeResponse> {
 public:
  SubscribeLink(const Connection& connection, std::string stream, StreamConsumerOptions options,
                const std::vector<PartitionStart>& partitions);
  ~SubscribeLink() override;
  SubscribeLink(const SubscribeLink&) = delete;
  SubscribeLink& operator=(const SubscribeLink&) = delete;
  SubscribeLink(SubscribeLink&&) = delete;
  SubscribeLink& operator=(SubscribeLink&&) = delete;

  /// Opens the stream. Not in the constructor, so that callbacks find their owner complete.
  void start();

  /// Blocks until there is a task; nullopt once the workers may end.
  std::optional<SeatTask> next_task();
  void finish(const SeatTask& task);
  /// Ends the consumer: a handler threw, or a batch cannot be read.
  void fail(const Error& error);

  Status store_offset(const StreamPosition& position, std::chrono::milliseconds timeout);
  /// Takes no more, waits until the seats owe nothing, leaves. Workers may end afterwards.
  Status close(std::chrono::milliseconds timeout);
  std::optional<Status> wait(std::chrono::milliseconds timeout);
  StreamConsumer::Stats stats() const;
  SessionLease lease() const;

 private:
  struct Subscription {
    std::vector<PartitionNumber> partitions;
    std::uint64_t id = 0;  // A new one for each Start.
    bool start_sent = false;
    bool unsubscribe_sent = false;
    CreditAmount window;  // How much may be sent ahead of the handlers.
    CreditAmount used;    // Credit in use by unfinished batches.
    CreditAmount due;     // Finished credit not yet returned to the broker.
  };

  void begin_call(grpc::ClientContext* context, Reactor* reactor) override;
  [[nodiscard]] bool wants_session() const override;
  void session_opened() override;
  const v1::SubscribeRequest* next_frame() override;
  void received(v1::SubscribeResponse& response) override;
  void disconnected(const Error& error, bool over) override;

  void make_subscriptions(const std::vector<PartitionStart>& partitions);
  PartitionSeat::Rules rules() const;
  void renew(Subscription& subscription);

  // Filling a frame. Each returns whether it added something.
  bool fill_starts();
  void fill_start(const Subscription& subscription, v1::SubscribeRequest::Start& start) const;
  bool fill_credits();
  bool fill_seats();
  bool fill_unsubscribes();
  void fill_store(PartitionSeat& seat, std::uint64_t id);
  [[nodiscard]] static bool is_due(const Subscription& subscription);

  // Handling a response.
  void take_started(const v1::SubscribeResponse::Started& started);
  void take_update(const v1::SubscribeResponse::Update& update);
  void take_batch(v1::SubscribeResponse::Batches& batch);
  void take_stored(const v1::SubscribeResponse::OffsetStored& stored);
  void take_closed(Lock& lock, const v1::SubscribeResponse::Closed& closed);

  Subscription* subscription_of(std::uint64_t id);
  PartitionSeat* seat_of(std::uint64_t id, PartitionNumber partition);
  /// Called after any change of a seat: schedules what follows from it.
  void refresh(PartitionSeat& seat);
  /// The next of the seats that have a task, in turns.
  PartitionSeat& take_turn();
  void end(const Error& error);
  /// Returns the partitions whose seats are lost by this.
  std::vector<PartitionNumber> lose_all();
  /// The seats are lost, though nothing said so. The program is told before the broker can act.
  void lease_ended(Lock& lock) override;
  /// Leaves once the consumer has ended and nothing is owed; writes what can be written.
  void advance(Lock& lock);
  [[nodiscard]] bool all_done() const;
  void report(const std::vector<Error>& errors, const std::vector<PartitionNumber>& losing) const;

  const std::string stream_;
  const StreamConsumerOptions options_;
  const std::unique_ptr<v1::StreamService::Stub> stub_;
  v1::SubscribeRequest frame_;  // Not changed while writing_.
  std::condition_variable work_;
  // All below under mutex_.
  std::map<PartitionNumber, PartitionSeat> seats_;
  std::vector<Subscription> subscriptions_;
  std::map<PartitionNumber, std::size_t> subscription_at_;  // By partition.
  std::map<std::uint64_t, std::size_t> subscription_by_id_;
  std::uint64_t next_id_ = 1;
  std::set<PartitionNumber> ready_;  // Partitions with a task.
  std::set<PartitionNumber> dirty_;  // Partitions with something to send.
  PartitionNumber turn_{};
  bool stopping_ = false;
  bool leaving_ = false;  // Unsubscribes are to be sent.
  bool workers_may_go_ = false;
  bool started_ = false;
  bool loss_told_ = false;        // The lease of this session has ended, and the program was told.
  std::optional<Status> result_;  // How the consumer ended.
  std::optional<Error> store_failure_;   // The first one, for close().
  std::vector<Error> errors_;            // Reported once the lock is released.
  std::vector<PartitionNumber> losing_;  // Partitions; reported likewise.
  StreamConsumer::Stats stats_;
};

}  // namespace baton::client
