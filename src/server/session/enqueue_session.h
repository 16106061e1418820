#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "core/queue/commands.h"
#include "server/session/items.h"
#include "server/session/producer_session.h"

namespace baton {

/// Takes batches of messages, and returns their results.
class EnqueueSession final : public ProducerSession<Results<EnqueueOutcome>> {
 public:
  explicit EnqueueSession(std::shared_ptr<ServerState> state) : ProducerSession(std::move(state)) {}

  /// Takes a request of `bytes` on the wire.
  void take(CheckedItems<EnqueueCommand> checked, std::size_t bytes);
};

}  // namespace baton
