#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <utility>

#include "core/queue/commands.h"
#include "server/session/batch.h"
#include "server/session/server_state.h"
#include "server/session/session.h"

namespace baton {

/// Batches of messages in, confirmations out: one output per request, in the order of the requests,
/// each when its messages are durable. At most limits::kStreamBatches batches and about
/// limits::kStreamBytes are under way; then no request is read, and the protocol's flow control
/// holds the producer back.
///
/// A batch that was handed over is done even when the client goes away; it just gets no
/// confirmation.
///
/// Owned and locked as every Session (see there).
class EnqueueSession final : public Session {
 public:
  using Output = Results<EnqueueOutcome>;

  explicit EnqueueSession(std::shared_ptr<ServerState> state) : state_(std::move(state)) {}

  /// A request of `bytes` on the wire.
  void take(Batch<EnqueueCommand> batch, std::size_t bytes);
  /// What to confirm next. With the lock held.
  Output take_output();

 private:
  struct Slot {
    std::size_t bytes = 0;
    Output results;
    bool done = false;
    bool abandoned = false;  // The broker dropped it: it will never be confirmed.
  };

  [[nodiscard]] bool has_room() const override;
  [[nodiscard]] bool has_output() const override { return !slots_.empty() && slots_.front().done; }
  [[nodiscard]] bool settled() const override { return slots_.empty() || slots_.front().abandoned; }

  void submit_batch(Slot& slot, EnqueueCommand command);

  std::shared_ptr<ServerState> state_;
  std::deque<Slot> slots_;  // In the order of the requests. Elements never move.
  std::size_t bytes_ = 0;   // Of the slots.
};

}  // namespace baton
