#pragma once

#include <baton/v1/kv.pb.h>

#include <optional>
#include <string>

#include "base/result.h"
#include "server/session/watch_session.h"
#include "server/shard/kv_commands.h"

/// Requests of the Kv service as commands, and outcomes as responses. Pure. Whatever comes from
/// outside is checked here or by the machine it goes to; an error names the field and the limit.
namespace baton {

Result<CreateBucketCommand> convert(const v1::CreateBucketRequest& request);
Result<DeleteBucketCommand> convert(const v1::DeleteBucketRequest& request);
Result<DescribeBucketCommand> convert(const v1::DescribeBucketRequest& request);
Result<KvGetCommand> convert(const v1::KvGetRequest& request);
/// Moves the value out of `request`.
Result<KvPutCommand> convert(v1::KvPutRequest& request);
Result<KvRemoveCommand> convert(const v1::KvDeleteRequest& request);
Result<KvListCommand> convert(const v1::KvListRequest& request);

Result<WatchWanted> convert(const v1::KvWatchStart& start);

void describe(const KvBucketDescription& in, v1::Bucket& out);
void show(const KvEntry& in, v1::KvEntry& out);
void show(const KvPage& in, v1::KvListResponse& out);
void reply(const KvOutcome& in, v1::KvPutResponse& out);
void reply(const KvOutcome& in, v1::KvDeleteResponse& out);

}  // namespace baton
