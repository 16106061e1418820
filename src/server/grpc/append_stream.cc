#include "server/grpc/append_stream.h"

#include <grpcpp/impl/codegen/proto_utils.h>

#include <utility>

#include "server/grpc/api_limits.h"
#include "server/grpc/calls.h"
#include "server/grpc/status.h"
#include "server/grpc/stream_convert.h"

namespace baton {
namespace {

/// What is wrong with all of a request is wrong with each of its items: the stream lives on.
v1::AppendResponse refused(const v1::AppendRequest& request, const Error& error) {
  v1::AppendResponse response;
  for (int i = 0; i < request.batches_size(); ++i) {
    *response.add_batches()->mutable_error() = to_proto(error);
  }
  for (int i = 0; i < request.records_size(); ++i) {
    *response.add_records()->mutable_error() = to_proto(error);
  }
  return response;
}

}  // namespace

void AppendStream::take(grpc::ByteBuffer& request) {
  const std::size_t bytes = request.Length();
  v1::AppendRequest parsed;
  if (!grpc::SerializationTraits<v1::AppendRequest>::Deserialize(&request, &parsed).ok()) {
    return end(to_status({Errc::invalid_argument, "the request is not an AppendRequest"}));
  }
  Result<AppendCommand> command = convert(parsed);
  Slot* slot = nullptr;
  {
    const std::lock_guard lock(mutex_);
    slot = &slots_.emplace_back();
    slot->bytes = bytes;
    bytes_ += bytes;
    if (!command.has_value()) {
      slot->response = refused(parsed, command.error());
      slot->done = true;
      return;
    }
  }
  auto self = std::static_pointer_cast<AppendStream>(shared_from_this());
  submit(state_->broker, *std::move(command), Broker::Admission::reserved,
         [self = std::move(self), slot](Command* done) {
           const AppendCommand* const appended = answer_of<AppendCommand>(done);
           v1::AppendResponse response;
           if (appended != nullptr) reply(*appended, response);
           {
             const std::lock_guard lock(self->mutex_);
             slot->response = std::move(response);
             slot->done = appended != nullptr;
             slot->abandoned = appended == nullptr;
             if (appended == nullptr) self->set_end(to_status(busy()));
           }
           self->pump();
         });
}

bool AppendStream::has_room() const {
  return slots_.size() < limits::kStreamBatches && bytes_ < limits::kStreamBytes;
}

std::string AppendStream::take_output(Lock& /*lock*/) {
  std::string frame = slots_.front().response.SerializeAsString();
  bytes_ -= slots_.front().bytes;
  slots_.pop_front();
  return frame;
}

}  // namespace baton
