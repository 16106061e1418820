#include "server/session/enqueue_session.h"

#include "server/session/calls.h"
#include "server/session/limits.h"

namespace baton {

void EnqueueSession::take(Batch<EnqueueCommand> batch, std::size_t bytes) {
  const bool settled = batch.settled();
  Slot* slot = nullptr;
  {
    const std::lock_guard lock(mutex_);
    slot = &slots_.emplace_back();
    slot->bytes = bytes;
    slot->results.items = batch.items;
    slot->results.refused = std::move(batch.refused);
    slot->done = settled;
    bytes_ += bytes;
  }
  if (!settled) submit_batch(*slot, std::move(batch.command));
}

void EnqueueSession::submit_batch(Slot& slot, EnqueueCommand command) {
  auto self = std::static_pointer_cast<EnqueueSession>(shared_from_this());
  submit(state_->broker, std::move(command), Broker::Admission::reserved,
         [self = std::move(self), &slot](Command* done) {
           {
             const std::lock_guard lock(self->mutex_);
             if (done == nullptr) {
               slot.abandoned = true;
               self->set_end(busy());
             } else {
               slot.results.outcomes = std::move(answer_of<EnqueueCommand>(done)->outcomes);
               slot.done = true;
             }
           }
           self->pump();
         });
}

bool EnqueueSession::has_room() const {
  return slots_.size() < limits::kStreamBatches && bytes_ < limits::kStreamBytes;
}

EnqueueSession::Output EnqueueSession::take_output() {
  Output results = std::move(slots_.front().results);
  bytes_ -= slots_.front().bytes;
  slots_.pop_front();
  return results;
}

}  // namespace baton
