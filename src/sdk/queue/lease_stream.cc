#include <memory>
#include <utility>

#include <baton/lease_stream.h>
#include <baton/queue_handle.h>

#include "base/result.h"
#include "sdk/base/connection.h"
#include "sdk/queue/lease_link.h"

namespace baton::client {

LeaseStream::LeaseStream(std::unique_ptr<LeaseLink> link) : link_(std::move(link)) {}
LeaseStream::LeaseStream(LeaseStream&&) noexcept = default;
LeaseStream& LeaseStream::operator=(LeaseStream&&) noexcept = default;
LeaseStream::~LeaseStream() = default;

Result<LeaseStream> Queue::lease(LeaseStreamOptions options) const {
  if (name_.empty()) return Error{Errc::invalid_argument, "the queue has no name"};
  if (options.frames_ahead == 0) return Error{Errc::invalid_argument, "frames_ahead is 0"};
  BATON_TRY(const auto connection, make_connection(connection_->options));
  const Credit credit = options.manual_credit ? Credit::manual : Credit::broker;
  auto link = std::make_unique<LeaseLink>(*connection, name_, std::move(options), credit);
  link->start();
  return LeaseStream(std::move(link));
}

Result<Registration> LeaseStream::wait_until_registered(std::chrono::milliseconds timeout) {
  return link_->wait_until_registered(timeout);
}
Result<std::optional<LeasedMessage>> LeaseStream::next(std::chrono::milliseconds timeout) {
  return link_->next(timeout);
}
Result<std::vector<LeasedMessage>> LeaseStream::next_batch(std::chrono::milliseconds timeout,
                                                           std::size_t messages_max) {
  return link_->next_batch(timeout, messages_max);
}
void LeaseStream::interrupt() { link_->interrupt(); }

void LeaseStream::ack(LeaseToken token, ResultCallback callback) {
  link_->ack(std::move(token), std::move(callback));
}
void LeaseStream::ack(std::span<const LeaseToken> tokens, ResultCallback callback) {
  link_->ack(std::vector<LeaseToken>(tokens.begin(), tokens.end()), std::move(callback));
}
void LeaseStream::ack(std::vector<LeaseToken>&& tokens, ResultCallback callback) {
  link_->ack(std::move(tokens), std::move(callback));
}
void LeaseStream::nack(Nack item, ResultCallback callback) {
  link_->nack(std::move(item), std::move(callback));
}
void LeaseStream::nack(std::vector<Nack> items, ResultCallback callback) {
  link_->nack(std::move(items), std::move(callback));
}
void LeaseStream::extend(Extension item, ResultCallback callback) {
  std::vector<Extension> items;
  items.push_back(std::move(item));
  link_->extend(std::move(items), std::move(callback));
}
void LeaseStream::extend(std::vector<Extension> items, ResultCallback callback) {
  link_->extend(std::move(items), std::move(callback));
}
void LeaseStream::begin(std::vector<LeaseToken> tokens) { link_->begin(std::move(tokens)); }
void LeaseStream::add_credit(std::uint32_t messages) { link_->add_credit(messages); }

Status LeaseStream::flush(std::chrono::milliseconds timeout) { return link_->flush(timeout); }
Status LeaseStream::close(std::chrono::milliseconds timeout) { return link_->close(timeout); }
LeaseStream::Stats LeaseStream::stats() const { return link_->stats(); }
SessionLease LeaseStream::lease() const { return link_->lease(); }

}  // namespace baton::client
