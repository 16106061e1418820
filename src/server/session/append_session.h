#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "server/session/server_state.h"
#include "server/session/session.h"
#include "server/shard/stream_commands.h"

namespace baton {

/// Batches of records in, confirmations out: one output per request, in the order of the requests,
/// each when its records are durable. Bounded as an EnqueueSession is.
///
/// Owned and locked as every Session (see there).
class AppendSession final : public Session {
 public:
  /// One outcome for each batch and each record of a request.
  struct Output {
    std::vector<BatchOutcome> batches;
    std::vector<BatchOutcome> records;
  };

  explicit AppendSession(std::shared_ptr<ServerState> state) : state_(std::move(state)) {}

  /// A request of `bytes` on the wire.
  void take(AppendCommand command, std::size_t bytes);
  /// A request that is wrong as a whole: so is each of its items, and the session lives on.
  void refuse(Output outcomes, std::size_t bytes);
  /// What to confirm next. With the lock held.
  Output take_output();

 private:
  struct Slot {
    std::size_t bytes = 0;
    Output outcomes;
    bool done = false;
    bool abandoned = false;  // The broker dropped it: it will never be confirmed.
  };

  [[nodiscard]] bool has_room() const override;
  [[nodiscard]] bool has_output() const override { return !slots_.empty() && slots_.front().done; }
  [[nodiscard]] bool settled() const override { return slots_.empty() || slots_.front().abandoned; }

  std::shared_ptr<ServerState> state_;
  std::deque<Slot> slots_;  // In the order of the requests. Elements never move.
  std::size_t bytes_ = 0;   // Of the slots.
};

}  // namespace baton
