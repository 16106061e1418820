#include "server/grpc/stream.h"

#include <utility>
#include <vector>

#include "base/assert.h"

namespace baton {
namespace {

/// Hands the frame to gRPC without a copy.
grpc::ByteBuffer to_buffer(std::string frame) {
  auto owner = std::make_unique<std::string>(std::move(frame));
  std::string* const bytes = owner.release();
  const grpc::Slice slice(
      bytes->data(), bytes->size(), [](void* owned) { delete static_cast<std::string*>(owned); },
      bytes);
  return {&slice, 1};
}

}  // namespace

void Stream::open(StreamPort& port, bool reads) {
  {
    const std::lock_guard lock(mutex_);
    BATON_ASSERT(port_ == nullptr);
    port_ = &port;
    reads_ = reads;
  }
  pump();
}

void Stream::on_read(grpc::ByteBuffer* request) {
  bool wanted = false;
  {
    const std::lock_guard lock(mutex_);
    BATON_ASSERT(reading_);
    wanted = request != nullptr && !broken_ && !end_.has_value();
    if (request == nullptr) {
      reads_ = false;
      set_end(grpc::Status::OK);
    }
  }
  // reading_ is still set, so no other request can overtake this one.
  if (wanted) take(*request);
  {
    const std::lock_guard lock(mutex_);
    reading_ = false;
  }
  pump();
}

void Stream::on_written(bool ok) {
  {
    const std::lock_guard lock(mutex_);
    BATON_ASSERT(writing_);
    writing_ = false;
    written(ok);
    if (!ok) set_broken(grpc::Status::CANCELLED);
  }
  pump();
}

void Stream::on_cancel() {
  {
    const std::lock_guard lock(mutex_);
    set_broken(grpc::Status::CANCELLED);
  }
  pump();
}

void Stream::end(const grpc::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    set_end(status);
  }
  pump();
}

void Stream::set_end(const grpc::Status& status) {
  if (!end_.has_value()) end_ = status;
}

void Stream::set_broken(const grpc::Status& status) {
  // A client that has closed its side in good order still hears what went wrong.
  if (!end_.has_value() || end_->ok()) end_ = status;
  broken_ = true;
}

void Stream::set_cut_off(const grpc::Status& status) {
  set_broken(status);
  cancel_due_ = true;
}

bool Stream::is_broken() const {
  return broken_ || (port_ != nullptr && !finished_ && port_->is_cancelled());
}

bool Stream::ended_by_client() const {
  return end_.has_value() && (end_->ok() || end_->error_code() == grpc::StatusCode::CANCELLED);
}

void Stream::pump() {
  Lock lock(mutex_);
  // Whoever pumps will see what the caller has changed, because it looks again before it leaves.
  if (pumping_ || port_ == nullptr) return;
  pumping_ = true;
  while (step(lock)) {
  }
  pumping_ = false;
}

bool Stream::step(Lock& lock) {
  if (finished_) return release(lock);
  if (!writing_ && !broken_ && has_output()) {
    writing_ = true;
    std::string frame = take_output(lock);
    lock.unlock();
    port_->write(to_buffer(std::move(frame)));
    lock.lock();
    return true;
  }
  if (broken_ || (end_.has_value() && settled())) return step_to_end(lock);
  if (reads_ && !reading_ && !end_.has_value() && has_room()) {
    reading_ = true;
    lock.unlock();
    port_->read();
    lock.lock();
    return true;
  }
  return false;
}

bool Stream::step_to_end(Lock& lock) {
  if (writing_) {
    if (!std::exchange(cancel_due_, false)) return false;
    lock.unlock();
    port_->cancel();
    lock.lock();
    return true;
  }
  if (release(lock)) return true;
  // A client that is gone is not kept waiting for; one that is there learns that all is given up.
  if (!broken_ && !released()) return false;
  finished_ = true;
  const grpc::Status status = end_.value_or(grpc::Status::OK);
  StreamPort* const port = port_;
  lock.unlock();
  port->finish(status);
  lock.lock();
  return true;
}

bool OpenStreams::add(const std::shared_ptr<Stream>& stream) {
  const std::lock_guard lock(mutex_);
  if (closed_) return false;
  return streams_.insert(stream).second;
}

void OpenStreams::remove(const std::shared_ptr<Stream>& stream) {
  const std::lock_guard lock(mutex_);
  streams_.erase(stream);
  if (streams_.empty()) empty_.notify_all();
}

void OpenStreams::wait_until_empty(std::chrono::system_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  empty_.wait_until(lock, deadline, [this] { return streams_.empty(); });
}

void OpenStreams::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

void OpenStreams::end_all(const grpc::Status& status) {
  std::vector<std::shared_ptr<Stream>> streams;
  {
    const std::lock_guard lock(mutex_);
    streams.assign(streams_.begin(), streams_.end());
  }
  for (const auto& stream : streams) stream->end(status);
}

}  // namespace baton
