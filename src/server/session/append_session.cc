#include "server/session/append_session.h"

namespace baton {

void AppendSession::take(AppendCommand command, std::size_t bytes) {
  Slot& slot = add_slot({.bytes = bytes, .output = {}});
  submit_for(slot, std::move(command), [](AppendCommand& done, AppendOutcomes& outcomes) {
    outcomes = {.batches = std::move(done.outcomes), .records = std::move(done.record_outcomes)};
  });
}

void AppendSession::refuse(AppendOutcomes outcomes, std::size_t bytes) {
  add_slot({.bytes = bytes, .output = std::move(outcomes), .done = true});
}

}  // namespace baton
