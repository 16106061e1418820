#include "server/session/enqueue_session.h"

namespace baton {

void EnqueueSession::take(CheckedItems<EnqueueCommand> checked, std::size_t bytes) {
  const bool settled = checked.settled();
  Slot& slot = add_slot({
      .bytes = bytes,
      .output = {.items = checked.items, .refused = std::move(checked.refused), .outcomes = {}},
      .done = settled,
  });
  if (settled) return;
  submit_for(slot, std::move(checked.command), [](EnqueueCommand& done, Output& results) {
    results.outcomes = std::move(done.outcomes);
  });
}

}  // namespace baton
