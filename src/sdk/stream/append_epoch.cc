// The part of AppendLink that asks for a new epoch after a refused batch.
#include <utility>

#include "sdk/base/errors.h"
#include "sdk/stream/append_link.h"

namespace baton::client {

void AppendLink::ask_for_epoch() {
  if (asking_ || closing_) return;
  asking_ = true;
  // The thread before has released the lock for the last time.
  if (asker_.joinable()) asker_.join();
  asker_ = std::thread([this] { asker(); });
}

/// Asks until there is an answer (the broker may be away just now), and again if the window asks
/// again meanwhile. Releases the lock for the last time right after asking_ is false.
void AppendLink::asker() {
  Lock lock(mutex_);
  while (window_.phase() == AppendWindow::Phase::asking && !closing_ && !over_) {
    bool final = false;
    const auto identity = ask_once(lock, final);
    if (closing_ || over_) break;
    if (identity) {
      rest_.reset();
      ++stats_.epochs;
      window_.begin_epoch(*identity);
      advance(lock);
    } else if (final) {
      end(lock, identity.error());
    } else {
      changed_.wait_for(lock, rest_.next(), [&] { return closing_; });
    }
  }
  asking_ = false;
}

/// The broker refuses a new epoch: nothing can be sent any more.
void AppendLink::end(Lock& lock, const Error& error) {
  over_ = error;
  break_session(lock);
  auto settled = give_up(error);
  lock.unlock();
  settle(std::move(settled));
  lock.lock();
}

Result<AppendWindow::Identity> AppendLink::ask_once(Lock& lock, bool& final) {
  grpc::ClientContext context;
  ask_context_ = &context;
  lock.unlock();
  v1::InitProducerRequest request;
  request.set_stream(stream_);
  request.set_producer(options_.producer);
  v1::InitProducerResponse response;
  if (connection_.deadline.count() > 0) {
    context.set_deadline(std::chrono::system_clock::now() + connection_.deadline);
  }
  const grpc::Status status = stub_->InitProducer(&context, request, &response);
  lock.lock();
  ask_context_ = nullptr;
  final = !status.ok() && !is_worth_retrying(status);
  if (!status.ok()) return from_grpc(status, connection_.address);
  return AppendWindow::Identity{
      .id = ProducerId{response.producer_id()},
      .epoch = ProducerEpoch{static_cast<std::int16_t>(response.producer_epoch())}};
}

}  // namespace baton::client
