#include "server/grpc/enqueue_stream.h"

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <utility>

#include "server/grpc/api_limits.h"
#include "server/grpc/calls.h"
#include "server/grpc/queue_convert.h"
#include "server/grpc/status.h"

namespace baton {
namespace {

/// The batch that `request` holds. What is wrong with all of it is wrong with each of its messages:
/// the stream lives on.
Batch<EnqueueCommand> convert_batch(v1::EnqueueRequest& request) {
  const auto items = static_cast<std::size_t>(request.messages_size());
  Result<Batch<EnqueueCommand>> batch = convert(request);
  if (batch.has_value()) return *std::move(batch);
  Batch<EnqueueCommand> refused;
  refused.items = items;
  for (std::size_t i = 0; i < items; ++i) refused.refused.push_back({i, batch.error()});
  return refused;
}

}  // namespace

void EnqueueStream::take(grpc::ByteBuffer& request) {
  const std::size_t bytes = request.Length();
  const grpc::Status parsed =
      grpc::SerializationTraits<v1::EnqueueRequest>::Deserialize(&request, &request_);
  if (!parsed.ok()) {
    end(to_status({Errc::invalid_argument, "the request is not an EnqueueRequest"}));
    return;
  }
  Batch<EnqueueCommand> batch = convert_batch(request_);
  // What a refused or an unusually large batch leaves behind is not kept for the life of the
  // stream.
  if (!batch.refused.empty() || batch.items > limits::kFrameMessages * 4) request_ = {};
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

void EnqueueStream::submit_batch(Slot& slot, EnqueueCommand command) {
  auto self = std::static_pointer_cast<EnqueueStream>(shared_from_this());
  submit(state_->broker, std::move(command), Broker::Admission::reserved,
         [self = std::move(self), &slot](Command* done) {
           {
             const std::lock_guard lock(self->mutex_);
             if (done == nullptr) {
               slot.abandoned = true;
               self->set_end(to_status(busy()));
             } else {
               slot.results.outcomes = std::move(answer_of<EnqueueCommand>(done)->outcomes);
               slot.done = true;
             }
           }
           self->pump();
         });
}

bool EnqueueStream::has_room() const {
  return slots_.size() < limits::kStreamBatches && bytes_ < limits::kStreamBytes;
}

bool EnqueueStream::has_output() const { return !slots_.empty() && slots_.front().done; }

std::string EnqueueStream::take_output(Lock& lock) {
  const Results<EnqueueOutcome> results = std::move(slots_.front().results);
  bytes_ -= slots_.front().bytes;
  slots_.pop_front();
  lock.unlock();
  std::string frame;
  append_enqueued(frame, results);
  lock.lock();
  return frame;
}

bool EnqueueStream::settled() const { return slots_.empty() || slots_.front().abandoned; }

}  // namespace baton
