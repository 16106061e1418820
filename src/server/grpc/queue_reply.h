#pragma once

#include <vector>

#include <baton/v1/queues.pb.h>
#include <grpcpp/support/status.h>

#include "core/queue/commands.h"
#include "server/grpc/queue_wire.h"

/// Converts answers of the broker to responses of unary calls. Pure.
namespace baton {

void describe(const QueueDescription& description, v1::Queue& out);
/// Shows messages until limits::kPeekBytes are reached; at least one, if there is one.
void show(const std::vector<PeekedMessage>& messages, v1::PeekResponse& out);

/// NOT_FOUND if every item failed because the queue does not exist; otherwise OK, and each item has
/// its own result.
grpc::Status reply(const Results<EnqueueOutcome>& results, v1::EnqueueResponse& out);
grpc::Status reply(const Results<ItemOutcome>& results,
                   google::protobuf::RepeatedPtrField<v1::ItemResult>& out);

}  // namespace baton
