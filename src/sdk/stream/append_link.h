#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include <baton/stream_producer.h>
#include <baton/v1/streams.grpc.pb.h>
#include <grpcpp/client_context.h>

#include "sdk/base/backoff.h"
#include "sdk/base/producer_link.h"
#include "sdk/stream/append_window.h"
#include "sdk/stream/batch_accumulator.h"

namespace baton::client {

/// What the broker said before a producer begins.
struct AppendTerms {
  std::uint32_t partitions = 1;
  std::size_t batch_bytes_max = 0;
  std::optional<AppendWindow::Identity> identity{};  // Absent when not idempotent.
};

/// The producer's side of AppendStream: records into the accumulator, closed batches through the
/// window onto the wire, results back to their callbacks. Thread-safe.
///
/// The only thread of its own, `asker_`, lives while a new epoch is asked for.
class AppendLink final : public ProducerLink<v1::AppendRequest, v1::AppendResponse> {
 public:
  AppendLink(const Connection& connection, std::string stream, StreamProducerOptions options,
             const AppendTerms& terms);
  ~AppendLink() override;
  AppendLink(const AppendLink&) = delete;
  AppendLink& operator=(const AppendLink&) = delete;
  AppendLink(AppendLink&&) = delete;
  AppendLink& operator=(AppendLink&&) = delete;

  void send(NewRecord record, StreamProducer::Callback callback);
  bool try_send(NewRecord& record, StreamProducer::Callback callback);
  Status flush(std::chrono::milliseconds timeout);
  Status close(std::chrono::milliseconds timeout);
  StreamProducer::Stats stats() const;
  [[nodiscard]] std::uint32_t partitions() const { return partitions_; }

 private:
  void begin_call(grpc::ClientContext* context, Reactor* reactor) override;
  [[nodiscard]] bool wants_session() const override { return !window_.empty(); }
  const v1::AppendRequest* next_frame() override;
  void received(v1::AppendResponse& response) override;
  void disconnected(const Error& error, bool over) override;
  void cancel_alarms() override;

  [[nodiscard]] bool has_room(std::size_t cost) const;
  std::optional<Error> wait_for_room(Lock& lock, std::size_t cost);
  void take(Lock& lock, NewRecord& record, std::size_t cost, StreamProducer::Callback callback);
  void hold(std::vector<PendingBatchPointer> batches);
  void close_due();
  void wake_for_linger();
  /// Does what the window's phase asks for, and writes what can be written.
  void advance(Lock& lock);
  void violated(Lock& lock, const Error& error);
  [[nodiscard]] std::optional<std::uint64_t> oldest_unsettled() const;
  std::vector<AppendWindow::Settled> give_up(const Error& error);
  /// Without the lock: calls the records' callbacks, then updates the counters.
  void settle(std::vector<AppendWindow::Settled> settled);

  // A new epoch.
  void ask_for_epoch();
  void asker();
  void end(Lock& lock, const Error& error);
  Result<AppendWindow::Identity> ask_once(Lock& lock, bool& final);

  const std::string stream_;
  const StreamProducerOptions options_;
  const std::uint32_t partitions_;
  const std::unique_ptr<v1::StreamService::Stub> stub_;
  v1::AppendRequest frame_;  // Not changed while writing_.
  // All below under mutex_.
  BatchAccumulator accumulator_;
  AppendWindow window_;
  std::multiset<std::uint64_t> unsettled_;  // The first record of each closed batch.
  std::size_t bytes_in_flight_ = 0;
  std::size_t waiting_ = 0;  // Threads that wait for room.
  int violations_ = 0;       // Consecutive ones.
  bool linger_pending_ = false;
  bool rest_pending_ = false;
  StreamProducer::Stats stats_;
  Backoff rest_;
  std::unique_ptr<grpc::Alarm> linger_alarm_;
  std::unique_ptr<grpc::Alarm> rest_alarm_;
  bool asking_ = false;
  grpc::ClientContext* ask_context_ = nullptr;
  std::thread asker_;
};

}  // namespace baton::client
