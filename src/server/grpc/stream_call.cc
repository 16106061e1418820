#include "server/grpc/stream_call.h"

#include "server/grpc/status.h"

namespace baton {
namespace {

/// Passes the frame to gRPC without a copy.
grpc::ByteBuffer to_buffer(std::string frame) {
  auto owner = std::make_unique<std::string>(std::move(frame));
  std::string* const bytes = owner.release();
  const grpc::Slice slice(
      bytes->data(), bytes->size(), [](void* owned) { delete static_cast<std::string*>(owned); },
      bytes);
  return {&slice, 1};
}

}  // namespace

void StreamCall::open(StreamPort& port, bool reads) {
  port_ = &port;
  session_->open(*this, reads);
}

void StreamCall::on_read(grpc::ByteBuffer* request) {
  if (request == nullptr) return session_->on_closed();
  if (session_->begin_request()) {
    const Status taken = take(*request);
    if (!taken.has_value()) session_->end(taken);
  }
  session_->end_request();
}

void StreamCall::write(Lock& lock) {
  std::string frame = next_frame(lock);
  if (lock.owns_lock()) lock.unlock();
  port_->write(to_buffer(std::move(frame)));
  lock.lock();
}

grpc::Status StreamCall::to_grpc(const Status& status) const {
  return status.has_value() ? grpc::Status::OK : to_status(status.error());
}

}  // namespace baton
