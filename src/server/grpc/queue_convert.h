#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <baton/v1/queues.pb.h>

#include "base/result.h"
#include "core/queue/commands.h"
#include "core/queue/token.h"
#include "server/session/consumer_session.h"
#include "server/session/items.h"
#include "server/session/page.h"

/// Converts requests to commands. Pure, and the place where input from clients is checked: an error
/// names the field and its limit. A conversion that takes its request by non-const reference moves
/// strings out of it instead of copying them.
namespace baton {

Result<CreateQueueCommand> convert(v1::CreateQueueRequest& request);
Result<UpdateQueueCommand> convert(v1::UpdateQueueRequest& request);
Result<DeleteQueueCommand> convert(v1::DeleteQueueRequest& request);
Result<DescribeQueueCommand> convert(v1::DescribeQueueRequest& request);
Result<Paged<ListQueuesCommand>> convert(const v1::ListQueuesRequest& request);
Result<CheckedItems<EnqueueCommand>> convert(v1::EnqueueRequest& request);
Result<CheckedItems<AckCommand>> convert(v1::AckRequest& request, const TokenSeal& seal);
Result<CheckedItems<NackCommand>> convert(v1::NackRequest& request, const TokenSeal& seal);
Result<CheckedItems<ExtendCommand>> convert(v1::ExtendRequest& request, const TokenSeal& seal);
Result<LeaveCommand> convert(v1::LeaveRequest& request);
Result<PeekCommand> convert(v1::PeekRequest& request);
Result<PurgeCommand> convert(v1::PurgeRequest& request);
Result<CheckedItems<CancelCommand>> convert(v1::CancelRequest& request);
Result<RedriveCommand> convert(v1::RedriveRequest& request);

/// The caller fills in number and sink, and the consumer's id if it is empty.
Result<AttachCommand> convert(v1::LeaseRequest& request);
Result<AttachCommand> convert(v1::ConsumeStart& start);
/// Every request of a Consume stream, without its start. `queue` and `tokens` are the stream's.
Result<ConsumerItems> convert_items(v1::ConsumeRequest& request, const std::string& queue,
                                    const QueueTokens& tokens);

}  // namespace baton
