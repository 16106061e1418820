#pragma once

#include <cstddef>
#include <vector>

#include <baton/v1/streams.pb.h>

#include "base/result.h"
#include "server/session/append_session.h"
#include "server/session/page.h"
#include "server/session/read_session.h"
#include "server/session/subscription_talk.h"
#include "server/shard/stream_commands.h"

/// Converts requests of the Streams service to commands, and outcomes to responses. Input from
/// clients is checked here or by the machine that gets it; an error names the field and the limit.
namespace baton {

Result<CreateStreamCommand> convert(const v1::CreateStreamRequest& request);
Result<UpdateStreamCommand> convert(const v1::UpdateStreamRequest& request);
Result<DeleteStreamCommand> convert(const v1::DeleteStreamRequest& request);
Result<DescribeStreamCommand> convert(const v1::DescribeStreamRequest& request);
Result<Paged<ListStreamsCommand>> convert(const v1::ListStreamsRequest& request);
Result<Paged<ListGroupsCommand>> convert(const v1::ListGroupsRequest& request);
Result<StartProducerCommand> convert(const v1::InitProducerRequest& request);
Result<StoreOffsetCommand> convert(const v1::StoreOffsetRequest& request);
Result<QueryOffsetCommand> convert(const v1::QueryOffsetRequest& request);
Result<SetGroupOffsetsCommand> convert(const v1::SetGroupOffsetsRequest& request);
Result<subscription::Wanted> convert(const v1::SubscribeRequest::Start& start);

struct ReadWanted {
  OpenPartitionCommand open;
  ReadSession::Wanted wanted;
};
Result<ReadWanted> convert(const v1::ReadRequest& request);

/// Moves the bytes out of `request`.
Result<AppendCommand> convert(v1::AppendRequest& request);
void reply(const AppendOutcomes& done, v1::AppendResponse& response);

void describe(const StreamDescription& in, v1::Stream& out);
void describe(const GroupReport& in, Instant now, v1::Group& out);

}  // namespace baton
