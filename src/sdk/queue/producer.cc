#include <memory>
#include <utility>

#include <baton/producer.h>
#include <baton/queue_handle.h>

#include "base/result.h"
#include "sdk/base/connection.h"
#include "sdk/queue/enqueue_link.h"

namespace baton::client {

Producer::Producer(std::unique_ptr<EnqueueLink> link) : link_(std::move(link)) {}
Producer::Producer(Producer&&) noexcept = default;
Producer& Producer::operator=(Producer&&) noexcept = default;
Producer::~Producer() = default;

Result<Producer> Queue::producer(ProducerOptions options) const {
  if (name_.empty()) return Error{Errc::invalid_argument, "the queue has no name"};
  if (options.batch_messages_max == 0 || options.batch_bytes_max == 0 ||
      options.in_flight_messages_max == 0 || options.in_flight_bytes_max == 0 ||
      options.frames_ahead == 0) {
    return Error{Errc::invalid_argument, "a bound of the producer is 0"};
  }
  BATON_TRY(const auto connection, make_connection(connection_->options));
  return Producer(std::make_unique<EnqueueLink>(*connection, name_, options));
}

void Producer::send(NewMessage message, Callback callback) {
  link_->send(std::move(message), std::move(callback));
}

std::future<EnqueueResult> Producer::send(NewMessage message) {
  // A std::function must be copyable, a promise is not.
  auto promise = std::make_shared<std::promise<EnqueueResult>>();
  auto future = promise->get_future();
  link_->send(std::move(message),
              [promise](EnqueueResult result) { promise->set_value(std::move(result)); });
  return future;
}

bool Producer::try_send(NewMessage& message, Callback callback) {
  return link_->try_send(message, std::move(callback));
}

void Producer::send_batch(std::vector<NewMessage> messages, BatchCallback callback) {
  link_->send_batch(std::move(messages), std::move(callback));
}

Status Producer::flush(std::chrono::milliseconds timeout) { return link_->flush(timeout); }
Status Producer::close(std::chrono::milliseconds timeout) { return link_->close(timeout); }
Producer::Stats Producer::stats() const { return link_->stats(); }

}  // namespace baton::client
