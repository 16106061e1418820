#pragma once

#include <baton/v1/queues.pb.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <string>

#include "server/grpc/api_state.h"
#include "server/grpc/queue_wire.h"
#include "server/grpc/stream.h"

namespace baton {

/// Batches in, confirmations out: one response per request, in the order of the requests, each when
/// its messages are durable. At most limits::kStreamBatches batches and about limits::kStreamBytes
/// are under way; then the stream is not read, and HTTP/2's flow control holds the producer back.
///
/// A batch that was handed over is done even when the client goes away; it just gets no
/// confirmation.
class EnqueueStream final : public Stream {
 public:
  explicit EnqueueStream(std::shared_ptr<ApiState> state) : state_(std::move(state)) {}

 private:
  struct Slot {
    std::size_t bytes = 0;
    Results<EnqueueOutcome> results;
    bool done = false;
    bool abandoned = false;  // The broker dropped it: it will never be confirmed.
  };

  void take(grpc::ByteBuffer& request) override;
  [[nodiscard]] bool has_room() const override;
  [[nodiscard]] bool has_output() const override;
  std::string take_output(Lock& lock) override;
  [[nodiscard]] bool settled() const override;

  void submit_batch(Slot& slot, EnqueueCommand command);

  std::shared_ptr<ApiState> state_;
  v1::EnqueueRequest request_;  // Used again and again: its parts keep their memory.
  std::deque<Slot> slots_;      // In the order of the requests. Elements never move.
  std::size_t bytes_ = 0;       // Of the slots.
};

}  // namespace baton
