#include "server/session/consumer_session.h"

#include <iterator>
#include <utility>

#include "base/assert.h"
#include "server/session/calls.h"
#include "server/session/limits.h"

namespace baton {
namespace {

/// The approximate bytes that a protocol adds to a message.
constexpr std::size_t kDeliveryOverheadBytes = 80;

}  // namespace

ConsumerSession::ConsumerSession(std::shared_ptr<ServerState> state)
    : LeasedSession(std::move(state)) {
  state_->counters.consumers_open.fetch_add(1, std::memory_order_relaxed);
}

ConsumerSession::~ConsumerSession() {
  state_->counters.consumers_open.fetch_sub(1, std::memory_order_relaxed);
}

void ConsumerSession::attach(AttachCommand command) {
  BATON_ASSERT(!started_);
  started_ = true;
  auto self = std::static_pointer_cast<ConsumerSession>(shared_from_this());
  command.consumer = state_->broker.next_consumer_number();
  if (command.consumer_id.empty()) command.consumer_id = state_->make_consumer_id();
  command.sink = self;
  {
    const std::lock_guard lock(mutex_);
    queue_ = command.queue;
    consumer_ = command.consumer;
    consumer_id_ = command.consumer_id;
    stage_ = Stage::under_way;
  }
  submit(
      state_->broker, std::move(command), Broker::Admission::reserved,
      [self = std::move(self)](Command* done) { self->attached(answer_of<AttachCommand>(done)); });
}

void ConsumerSession::attached(AttachCommand* command) {
  {
    const std::lock_guard lock(mutex_);
    BATON_ASSERT(stage_ == Stage::under_way);
    if (command == nullptr) {
      stage_ = Stage::over;
      set_broken(busy());
    } else if (command->error.has_value()) {
      stage_ = Stage::over;
      set_broken(*command->error);
    } else {
      stage_ = Stage::attached;
      registered_due_ = true;
      visibility_timeout_ = command->visibility_timeout;
    }
  }
  pump();
}

void ConsumerSession::deliver(std::vector<Delivery> deliveries) {
  {
    const std::lock_guard lock(mutex_);
    if (stage_ == Stage::detaching || stage_ == Stage::over) return;
    // Messages that were on their way when the consumer left are given back by its detach.
    pending_.insert(pending_.end(), std::make_move_iterator(deliveries.begin()),
                    std::make_move_iterator(deliveries.end()));
  }
  pump();
}

void ConsumerSession::close(const Error& reason) { end(reason); }

void ConsumerSession::take_heartbeat(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto answer = heard(number, !started_);
  if (answer.has_value()) answers_.push_back(*answer);
}

Status ConsumerSession::take(Request request) {
  if (request.heartbeat.has_value()) take_heartbeat(*request.heartbeat);
  if (started_ == request.start.has_value()) {
    return Error{Errc::invalid_argument,
                 started_ ? "start is only for the first request of the stream"
                          : "start is missing in the first request of the stream"};
  }
  if (request.start.has_value()) manual_credit_ = request.start->credit.has_value();
  if (request.items.credit != 0 && !manual_credit_) {
    return Error{Errc::invalid_argument, "credit is given, but start does not set manual_credit"};
  }
  if (request.start.has_value()) {
    // The first credit is sent with the registration.
    if (auto& credit = request.start->credit; credit.has_value()) *credit += request.items.credit;
    request.items.credit = 0;
    attach(*std::move(request.start));
  }
  submit_items(std::move(request.items), request.bytes);
  return {};
}

void ConsumerSession::submit_items(ConsumerItems items, std::size_t bytes) {
  const bool acks = items.acks.items != 0;
  const bool nacks = items.nacks.items != 0;
  const bool extends = items.extends.items != 0;
  const bool credit = items.credit != 0;
  const bool begun = !items.begun.empty();
  if (!acks && !nacks && !extends && !credit && !begun && !items.quiesce) return;
  Slot* slot = nullptr;
  {
    const std::lock_guard lock(mutex_);
    slot = &slots_.emplace_back();
    slot->bytes = bytes;
    bytes_ += bytes;
    // All calls are counted before the first can end, so that the slot is not taken for complete
    // too early.
    slot->calls_under_way =
        int{acks} + int{nacks} + int{extends} + int{credit} + int{begun} + int{items.quiesce};
  }
  if (begun) {
    submit_plain(
        *slot,
        BegunCommand{.queue = queue_, .consumer = consumer_, .tokens = std::move(items.begun)});
  }
  if (acks) submit_checked(*slot, &ItemResults::acks, std::move(items.acks));
  if (nacks) submit_checked(*slot, &ItemResults::nacks, std::move(items.nacks));
  if (extends) submit_checked(*slot, &ItemResults::extends, std::move(items.extends));
  if (credit) {
    submit_plain(*slot,
                 CreditCommand{.queue = queue_, .consumer = consumer_, .added = items.credit});
  }
  if (items.quiesce) {
    submit_plain(*slot, QuiesceCommand{.queue = queue_, .consumer = consumer_});
  }
}

/// Submits a command without results.
template <class Wanted>
void ConsumerSession::submit_plain(Slot& slot, Wanted command) {
  auto self = std::static_pointer_cast<ConsumerSession>(shared_from_this());
  submit(state_->broker, std::move(command), Broker::Admission::reserved,
         [self = std::move(self), &slot](Command* done) {
           {
             const std::lock_guard lock(self->mutex_);
             --slot.calls_under_way;
             if (done == nullptr) {
               self->dropped_ = true;
             } else if (std::is_same_v<Wanted, QuiesceCommand>) {
               // Everything leased to this consumer has arrived here.
               self->quiet_ = Quiet::due;
             }
             self->drop_silent_slots();
           }
           self->pump();
         });
}

/// Requests without results need no output.
void ConsumerSession::drop_silent_slots() {
  while (!slots_.empty() && slots_.front().calls_under_way == 0 &&
         slots_.front().results.items() == 0) {
    bytes_ -= slots_.front().bytes;
    slots_.pop_front();
  }
}

template <class Wanted>
void ConsumerSession::submit_checked(Slot& slot, Part part, CheckedItems<Wanted> checked) {
  const bool refused = checked.settled();
  {
    const std::lock_guard lock(mutex_);
    (slot.results.*part).items = checked.items;
    (slot.results.*part).refused = std::move(checked.refused);
    if (refused) --slot.calls_under_way;
  }
  if (refused) return;
  auto self = std::static_pointer_cast<ConsumerSession>(shared_from_this());
  submit(state_->broker, std::move(checked.command), Broker::Admission::reserved,
         [self = std::move(self), &slot, part](Command* done) {
           {
             const std::lock_guard lock(self->mutex_);
             --slot.calls_under_way;
             if (done == nullptr) {
               slot.abandoned = true;
               self->dropped_ = true;
               self->set_end(busy());
             } else {
               (slot.results.*part).outcomes = std::move(answer_of<Wanted>(done)->outcomes);
             }
           }
           self->pump();
         });
}

bool ConsumerSession::has_room() const {
  return slots_.size() < limits::kStreamBatches && bytes_ < limits::kStreamBytes &&
         answers_.size() < limits::kFrameMessages;
}

bool ConsumerSession::has_output() const {
  if (!answers_.empty()) return true;
  // No output comes before the registration, which is due when the attach completes.
  if (stage_ != Stage::attached) return false;
  if (registered_due_) return true;
  if (!slots_.empty() && slots_.front().is_complete()) return true;
  // A consumer that is leaving gets no more messages; they go to the next one, without a counted
  // attempt.
  return !ending() && (!pending_.empty() || quiet_ == Quiet::due);
}

ConsumerSession::Output ConsumerSession::take_output() {
  Output output;
  if (!answers_.empty()) {
    output.heartbeat = answers_.front();
    answers_.pop_front();
    return output;
  }
  if (std::exchange(registered_due_, false)) {
    output.registered =
        Registered{.consumer_id = consumer_id_, .visibility_timeout = visibility_timeout_};
  }
  while (!slots_.empty() && slots_.front().is_complete()) {
    bytes_ -= slots_.front().bytes;
    output.results.push_back(std::move(slots_.front().results));
    slots_.pop_front();
  }
  // The first output confirms the registration; messages follow it.
  if (!output.registered && !ending()) output.deliveries = take_deliveries();
  output.quiesced = quiet_ == Quiet::due && !output.registered && pending_.empty();
  if (output.quiesced) quiet_ = Quiet::told;
  return output;
}

std::vector<Delivery> ConsumerSession::take_deliveries() {
  std::vector<Delivery> deliveries;
  std::size_t bytes = 0;
  while (!pending_.empty() && deliveries.size() < limits::kFrameMessages &&
         (deliveries.empty() || bytes < limits::kFrameBytes)) {
    bytes += pending_.front().message->bytes().size() + kDeliveryOverheadBytes;
    in_write_.push_back(pending_.front().token);
    deliveries.push_back(std::move(pending_.front()));
    pending_.pop_front();
  }
  return deliveries;
}

void ConsumerSession::written(bool ok) {
  if (!ok) unwritten_.insert(unwritten_.end(), in_write_.begin(), in_write_.end());
  in_write_.clear();
}

bool ConsumerSession::settled() const { return slots_.empty() || slots_.front().abandoned; }

bool ConsumerSession::release(Lock& lock) {
  if (stage_ != Stage::attached) return false;
  if (dropped_) {
    stage_ = Stage::over;
    return true;
  }
  stage_ = Stage::quiescing;
  auto self = std::static_pointer_cast<ConsumerSession>(shared_from_this());
  lock.unlock();
  submit(state_->broker, QuiesceCommand{.queue = queue_, .consumer = consumer_},
         Broker::Admission::reserved,
         [self = std::move(self)](Command* /*done*/) { self->detach(); });
  lock.lock();
  return true;
}

/// Everything leased to this consumer has arrived here, so the list of unwritten messages is final.
void ConsumerSession::detach() {
  DetachCommand command{.queue = queue_, .consumer = consumer_, .unwritten = {}, .orderly = false};
  {
    const std::lock_guard lock(mutex_);
    stage_ = Stage::detaching;
    command.orderly = quiet_ != Quiet::no || !is_broken();
    command.unwritten = take_unwritten();
  }
  auto self = std::static_pointer_cast<ConsumerSession>(shared_from_this());
  submit(state_->broker, std::move(command), Broker::Admission::reserved,
         [self = std::move(self)](Command* /*done*/) {
           {
             const std::lock_guard lock(self->mutex_);
             self->stage_ = Stage::over;
           }
           self->pump();
         });
}

bool ConsumerSession::released() const { return stage_ == Stage::none || stage_ == Stage::over; }

std::vector<LeaseToken> ConsumerSession::take_unwritten() {
  BATON_ASSERT(in_write_.empty());
  std::vector<LeaseToken> tokens = std::move(unwritten_);
  for (const Delivery& delivery : pending_) tokens.push_back(delivery.token);
  pending_.clear();
  return tokens;
}

}  // namespace baton
