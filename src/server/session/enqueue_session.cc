#include "server/session/enqueue_session.h"

namespace baton {

void EnqueueSession::take(Batch<EnqueueCommand> batch, std::size_t bytes) {
  const bool settled = batch.settled();
  Slot& slot = add_slot({
      .bytes = bytes,
      .output = {.items = batch.items, .refused = std::move(batch.refused), .outcomes = {}},
      .done = settled,
  });
  if (settled) return;
  submit_for(slot, std::move(batch.command), [](EnqueueCommand& done, Output& results) {
    results.outcomes = std::move(done.outcomes);
  });
}

}  // namespace baton
