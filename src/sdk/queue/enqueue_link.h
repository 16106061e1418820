#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <baton/producer.h>
#include <baton/v1/queues.grpc.pb.h>

#include "sdk/base/producer_link.h"

namespace baton::client {

/// The producer's side of EnqueueStream. Messages go straight into the frame that will carry them;
/// a frame is kept until it is confirmed, so that it can be sent again unchanged. Thread-safe.
///
/// Invariant: frames_ is in sending order; its first sent_ frames are sent and unconfirmed; the
/// last one accepts more messages if it is not sent.
class EnqueueLink final : public ProducerLink<v1::EnqueueRequest, v1::EnqueueResponse> {
 public:
  EnqueueLink(const Connection& connection, std::string queue, ProducerOptions options);
  ~EnqueueLink() override;
  EnqueueLink(const EnqueueLink&) = delete;
  EnqueueLink& operator=(const EnqueueLink&) = delete;
  EnqueueLink(EnqueueLink&&) = delete;
  EnqueueLink& operator=(EnqueueLink&&) = delete;

  void send(NewMessage message, Producer::Callback callback);
  bool try_send(NewMessage& message, Producer::Callback callback);
  void send_batch(std::vector<NewMessage> messages, Producer::BatchCallback callback);
  Status flush(std::chrono::milliseconds timeout);
  Status close(std::chrono::milliseconds timeout);
  Producer::Stats stats() const;

 private:
  /// The results of one send_batch(), which may be spread over several frames.
  struct BatchResults {
    std::vector<EnqueueResult> results;
    std::size_t expected = 0;
    Producer::BatchCallback callback;
  };
  /// The owner of the next `messages` messages of a frame: one of the two, or none.
  struct Waiter {
    std::size_t messages = 0;
    Producer::Callback callback;
    std::shared_ptr<BatchResults> batch;

    [[nodiscard]] bool is_nobody() const { return !callback && !batch; }
  };
  struct Frame {
    v1::EnqueueRequest request;
    std::vector<Waiter> waiters;
    std::size_t bytes = 0;
    SteadyClock::time_point opened;
  };
  using FramePointer = std::unique_ptr<Frame>;

  void begin_call(grpc::ClientContext* context, Reactor* reactor) override;
  [[nodiscard]] bool wants_session() const override { return !frames_.empty(); }
  const v1::EnqueueRequest* next_frame() override;
  void frame_written() override { keep(std::move(retired_)); }
  void received(v1::EnqueueResponse& response) override;
  void disconnected(const Error& error, bool over) override;
  void cancel_alarms() override;

  [[nodiscard]] bool has_room(std::size_t messages, std::size_t bytes) const;
  [[nodiscard]] bool is_full(const Frame& frame) const;
  std::optional<Error> wait_for_room(Lock& lock, std::size_t messages, std::size_t bytes);
  Frame& frame_for(std::size_t bytes);
  void add(NewMessage&& message, std::size_t bytes);
  void add_single(NewMessage&& message, std::size_t bytes, Producer::Callback callback);
  void keep(FramePointer frame);
  /// Without the lock. `next` makes the result of the frame's next message.
  template <class Next>
  static void tell(Waiter& waiter, Next&& next);
  /// Without the lock: calls the frame's waiters, then updates the counters.
  template <class Results>
  void settle(FramePointer frame, Results&& result_of);
  void fail(std::deque<FramePointer> frames, const Error& error);

  const std::string queue_;
  const ProducerOptions options_;
  const std::unique_ptr<v1::QueueService::Stub> stub_;
  // All below under mutex_.
  std::deque<FramePointer> frames_;
  std::size_t sent_ = 0;
  std::vector<FramePointer> kept_;
  FramePointer retired_;  // Confirmed before its write was done; gRPC may still read it.
  std::size_t messages_in_flight_ = 0;
  std::size_t bytes_in_flight_ = 0;
  bool linger_pending_ = false;
  Producer::Stats stats_;
  std::unique_ptr<grpc::Alarm> linger_alarm_;
};

}  // namespace baton::client
