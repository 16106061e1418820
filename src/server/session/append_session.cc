#include "server/session/append_session.h"

#include "server/session/calls.h"
#include "server/session/limits.h"

namespace baton {

void AppendSession::take(AppendCommand command, std::size_t bytes) {
  Slot* slot = nullptr;
  {
    const std::lock_guard lock(mutex_);
    slot = &slots_.emplace_back();
    slot->bytes = bytes;
    bytes_ += bytes;
  }
  auto self = std::static_pointer_cast<AppendSession>(shared_from_this());
  submit(state_->broker, std::move(command), Broker::Admission::reserved,
         [self = std::move(self), slot](Command* done) {
           {
             const std::lock_guard lock(self->mutex_);
             AppendCommand* const appended = answer_of<AppendCommand>(done);
             if (appended == nullptr) {
               slot->abandoned = true;
               self->set_end(busy());
             } else {
               slot->outcomes = {.batches = std::move(appended->outcomes),
                                 .records = std::move(appended->record_outcomes)};
               slot->done = true;
             }
           }
           self->pump();
         });
}

void AppendSession::refuse(Output outcomes, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  slots_.push_back({.bytes = bytes, .outcomes = std::move(outcomes), .done = true});
  bytes_ += bytes;
}

bool AppendSession::has_room() const {
  return slots_.size() < limits::kStreamBatches && bytes_ < limits::kStreamBytes;
}

AppendSession::Output AppendSession::take_output() {
  Output outcomes = std::move(slots_.front().outcomes);
  bytes_ -= slots_.front().bytes;
  slots_.pop_front();
  return outcomes;
}

}  // namespace baton
