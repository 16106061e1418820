#include "sdk/queue/enqueue_link.h"

#include <algorithm>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "sdk/base/connection.h"
#include "sdk/base/errors.h"
#include "sdk/base/limits.h"
#include "sdk/queue/convert.h"

namespace baton::client {

EnqueueLink::EnqueueLink(const Connection& connection, std::string queue, ProducerOptions options)
    : ProducerLink(connection.options, true),
      queue_(std::move(queue)),
      options_(options),
      stub_(v1::QueueService::NewStub(connection.channel)) {
  connection.channel->GetState(true);  // Starts connecting.
}

EnqueueLink::~EnqueueLink() { (void)close(std::chrono::milliseconds{0}); }

void EnqueueLink::begin_call(grpc::ClientContext* context, Reactor* reactor) {
  stub_->async()->EnqueueStream(context, reactor);
}

bool EnqueueLink::has_room(std::size_t messages, std::size_t bytes) const {
  if (messages_in_flight_ == 0) return true;
  return messages_in_flight_ + messages <= options_.in_flight_messages_max &&
         bytes_in_flight_ + bytes <= options_.in_flight_bytes_max;
}

bool EnqueueLink::is_full(const Frame& frame) const {
  return static_cast<std::size_t>(frame.request.messages_size()) >= options_.batch_messages_max ||
         frame.bytes >= options_.batch_bytes_max;
}

std::optional<Error> EnqueueLink::wait_for_room(Lock& lock, std::size_t messages,
                                                std::size_t bytes) {
  changed_.wait(lock, [&] { return closed_ || over_ || has_room(messages, bytes); });
  return refusal();
}

EnqueueLink::Frame& EnqueueLink::frame_for(std::size_t bytes) {
  if (sent_ < frames_.size()) {
    Frame& open = *frames_.back();
    if (!is_full(open) && open.bytes + bytes <= options_.batch_bytes_max) return open;
  }
  if (kept_.empty()) {
    frames_.push_back(std::make_unique<Frame>());
    frames_.back()->request.set_queue(queue_);
  } else {
    frames_.push_back(std::move(kept_.back()));
    kept_.pop_back();
  }
  if (options_.linger.count() > 0) frames_.back()->opened = SteadyClock::now();
  return *frames_.back();
}

void EnqueueLink::add(NewMessage&& message, std::size_t bytes) {
  Frame& frame = frame_for(bytes);
  to_proto(std::move(message), *frame.request.add_messages());
  frame.bytes += bytes;
  ++messages_in_flight_;
  bytes_in_flight_ += bytes;
  ++stats_.messages_sent;
}

void EnqueueLink::add_single(NewMessage&& message, std::size_t bytes, Producer::Callback callback) {
  add(std::move(message), bytes);
  auto& waiters = frames_.back()->waiters;
  if (!callback && !waiters.empty() && waiters.back().is_nobody()) {
    ++waiters.back().messages;
  } else {
    waiters.push_back({.messages = 1, .callback = std::move(callback), .batch = nullptr});
  }
}

void EnqueueLink::send(NewMessage message, Producer::Callback callback) {
  const std::size_t bytes = message_bytes(message);
  Lock lock(mutex_);
  if (auto refused = wait_for_room(lock, 1, bytes); refused) {
    lock.unlock();
    if (callback) callback({.id = {}, .duplicate = false, .error = std::move(refused)});
    return;
  }
  add_single(std::move(message), bytes, std::move(callback));
  pump(lock);
}

bool EnqueueLink::try_send(NewMessage& message, Producer::Callback callback) {
  const std::size_t bytes = message_bytes(message);
  Lock lock(mutex_);
  if (refusal() || !has_room(1, bytes)) return false;
  add_single(std::move(message), bytes, std::move(callback));
  pump(lock);
  return true;
}

void EnqueueLink::send_batch(std::vector<NewMessage> messages, Producer::BatchCallback callback) {
  if (messages.empty()) {
    if (callback) callback({});
    return;
  }
  std::size_t bytes = 0;
  for (const NewMessage& message : messages) bytes += message_bytes(message);
  auto batch = std::make_shared<BatchResults>();
  batch->expected = messages.size();
  batch->results.reserve(messages.size());
  batch->callback = std::move(callback);

  Lock lock(mutex_);
  if (auto refused = wait_for_room(lock, messages.size(), bytes); refused) {
    lock.unlock();
    batch->results.assign(messages.size(), {.id = {}, .duplicate = false, .error = refused});
    if (batch->callback) batch->callback(std::move(batch->results));
    return;
  }
  Frame* frame = nullptr;
  for (NewMessage& message : messages) {
    const std::size_t size = message_bytes(message);
    add(std::move(message), size);
    if (frames_.back().get() != frame) {
      frame = frames_.back().get();
      frame->waiters.push_back({.messages = 0, .callback = {}, .batch = batch});
    }
    ++frame->waiters.back().messages;
  }
  pump(lock);
}

const v1::EnqueueRequest* EnqueueLink::next_frame() {
  if (sent_ == frames_.size()) return nullptr;
  const Frame& frame = *frames_[sent_];
  const bool may_wait =
      sent_ + 1 == frames_.size() && !is_full(frame) && flushes_ == 0 && !closing_;
  if (may_wait && sent_ >= options_.frames_ahead) return nullptr;
  if (may_wait && options_.linger.count() > 0) {
    const auto until = frame.opened + options_.linger;
    if (SteadyClock::now() < until) {
      if (!linger_pending_) {
        linger_pending_ = true;
        run_at(until, linger_alarm_, [this](Lock& lock) {
          linger_pending_ = false;
          pump(lock);
        });
      }
      return nullptr;
    }
  }
  ++sent_;
  ++stats_.frames_written;
  return &frame.request;
}

void EnqueueLink::keep(FramePointer frame) {
  if (!frame || kept_.size() >= limits::kFramesKept || frame->bytes > options_.batch_bytes_max) {
    return;
  }
  // The messages and their strings stay allocated: the next ones cost no allocation.
  frame->request.clear_messages();
  frame->waiters.clear();
  frame->bytes = 0;
  kept_.push_back(std::move(frame));
}

template <class Next>
void EnqueueLink::tell(Waiter& waiter, Next&& next) {
  if (waiter.callback) {
    waiter.callback(next());
    return;
  }
  BatchResults* const batch = waiter.batch.get();
  for (std::size_t i = 0; i < waiter.messages; ++i) {
    EnqueueResult result = next();
    if (batch != nullptr) batch->results.push_back(std::move(result));
  }
  if (batch != nullptr && batch->results.size() == batch->expected && batch->callback) {
    batch->callback(std::move(batch->results));
  }
}

template <class Results>
void EnqueueLink::settle(FramePointer frame, Results&& result_of) {
  const auto messages = static_cast<std::size_t>(frame->request.messages_size());
  std::size_t failed = 0;
  std::optional<Error> failure;
  std::size_t index = 0;
  const auto next = [&] {
    EnqueueResult result = result_of(index++);
    if (result.error) {
      ++failed;
      if (!failure) failure = result.error;
    }
    return result;
  };
  for (Waiter& waiter : frame->waiters) tell(waiter, next);
  frame->waiters.clear();

  Lock lock(mutex_);
  messages_in_flight_ -= messages;
  bytes_in_flight_ -= frame->bytes;
  stats_.messages_confirmed += messages - failed;
  stats_.messages_failed += failed;
  if (failure && !first_failure_) first_failure_ = std::move(failure);
  // The frame just confirmed may be the one whose write gRPC has not reported yet.
  if (writing_ && sent_ == 0 && !retired_) {
    retired_ = std::move(frame);
  } else {
    keep(std::move(frame));
  }
  changed_.notify_all();
  pump(lock);
}

void EnqueueLink::received(v1::EnqueueResponse& response) {
  FramePointer frame;
  {
    Lock lock(mutex_);
    mark_alive(lock);
    if (sent_ == 0) {
      break_session(lock);
      return;
    }
    frame = std::move(frames_.front());
    frames_.pop_front();
    --sent_;
  }
  const auto answered = static_cast<std::size_t>(response.results_size());
  settle(std::move(frame), [&](std::size_t index) -> EnqueueResult {
    if (index < answered) return take(*response.mutable_results(static_cast<int>(index)));
    return {.id = {},
            .duplicate = false,
            .error = Error{Errc::internal, "the broker answered fewer results than messages"}};
  });
}

void EnqueueLink::fail(std::deque<FramePointer> frames, const Error& error) {
  for (FramePointer& frame : frames) {
    settle(std::move(frame), [&](std::size_t) -> EnqueueResult {
      return {.id = {}, .duplicate = false, .error = error};
    });
  }
}

void EnqueueLink::disconnected(const Error& error, bool over) {
  std::deque<FramePointer> unknown;
  std::deque<FramePointer> unsent;
  {
    const Lock lock(mutex_);
    if (options_.resend_unconfirmed && !over) {
      for (std::size_t i = 0; i < sent_; ++i) {
        stats_.messages_resent += static_cast<std::uint64_t>(frames_[i]->request.messages_size());
      }
    } else {
      const auto split = frames_.begin() + static_cast<std::ptrdiff_t>(sent_);
      unknown.assign(std::move_iterator(frames_.begin()), std::move_iterator(split));
      frames_.erase(frames_.begin(), split);
      if (over) unsent.swap(frames_);
    }
    sent_ = 0;
  }
  if (unknown.empty() && unsent.empty()) return;
  fail(std::move(unknown),
       Error{Errc::unavailable,
             fmt::format("the message may or may not have been stored: {}", error.text)});
  fail(std::move(unsent), error);
}

void EnqueueLink::cancel_alarms() {
  if (linger_alarm_) linger_alarm_->Cancel();
}

Status EnqueueLink::flush(std::chrono::milliseconds timeout) {
  const auto deadline = SteadyClock::now() + timeout;
  Lock lock(mutex_);
  const std::uint64_t target = stats_.messages_sent;
  const auto settled = [&] { return stats_.messages_confirmed + stats_.messages_failed >= target; };
  ++flushes_;
  pump(lock);
  return end_flush(lock, deadline, settled,
                   [&] { return fmt::format("{} messages", messages_in_flight_); });
}

Status EnqueueLink::close(std::chrono::milliseconds timeout) {
  const auto deadline = SteadyClock::now() + timeout;
  refuse_more();
  Status flushed = flush(timeout);
  Lock lock(mutex_);
  shutdown(lock, messages_in_flight_ == 0, deadline);
  lock.unlock();
  // Fails what waited for a session that never came.
  disconnected(closed_error(), true);
  return flushed;
}

Producer::Stats EnqueueLink::stats() const {
  const Lock lock(mutex_);
  Producer::Stats stats = stats_;
  stats.messages_in_flight = messages_in_flight_;
  stats.reconnects = reconnects_;
  return stats;
}

}  // namespace baton::client
