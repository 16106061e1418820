#pragma once

#include <baton/v1/streams.pb.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <string>

#include "server/grpc/api_state.h"
#include "server/grpc/stream.h"
#include "server/shard/stream_commands.h"

namespace baton {

/// Batches in, confirmations out: one response per request, in the order of the requests, each when
/// its records are durable. Bounded as an EnqueueStream is.
class AppendStream final : public Stream {
 public:
  explicit AppendStream(std::shared_ptr<ApiState> state) : state_(std::move(state)) {}

 private:
  struct Slot {
    std::size_t bytes = 0;
    v1::AppendResponse response;
    bool done = false;
    bool abandoned = false;  // The broker dropped it: it will never be confirmed.
  };

  void take(grpc::ByteBuffer& request) override;
  [[nodiscard]] bool has_room() const override;
  [[nodiscard]] bool has_output() const override { return !slots_.empty() && slots_.front().done; }
  std::string take_output(Lock& lock) override;
  [[nodiscard]] bool settled() const override { return slots_.empty() || slots_.front().abandoned; }

  std::shared_ptr<ApiState> state_;
  std::deque<Slot> slots_;  // In the order of the requests. Elements never move.
  std::size_t bytes_ = 0;   // Of the slots.
};

}  // namespace baton
