#pragma once

#include <optional>
#include <string>

#include <baton/v1/kv.pb.h>

#include "base/result.h"
#include "server/session/page.h"
#include "server/session/watch_session.h"
#include "server/shard/kv_commands.h"

/// Converts requests of the Kv service to commands, and outcomes to responses. Pure. Input from
/// clients is checked here or by the machine that gets it; an error names the field and the limit.
namespace baton {

Result<CreateBucketCommand> convert(const v1::CreateBucketRequest& request);
Result<DeleteBucketCommand> convert(const v1::DeleteBucketRequest& request);
Result<DescribeBucketCommand> convert(const v1::DescribeBucketRequest& request);
Result<KvGetCommand> convert(const v1::GetKeyRequest& request);
/// Moves the value out of `request`.
Result<KvPutCommand> convert(v1::PutKeyRequest& request);
Result<KvRemoveCommand> convert(const v1::DeleteKeyRequest& request);
Result<Paged<ListBucketsCommand>> convert(const v1::ListBucketsRequest& request);
Result<KvListCommand> convert(const v1::ListKeysRequest& request);

Result<WatchWanted> convert(const v1::WatchKeysRequest::Start& start);

void describe(const KvBucketDescription& in, v1::Bucket& out);
void show(const KvEntry& in, v1::KvEntry& out);
void reply(const KvListCommand& done, v1::ListKeysResponse& out);
void reply(const KvOutcome& in, v1::PutKeyResponse& out);
void reply(const KvOutcome& in, v1::DeleteKeyResponse& out);

}  // namespace baton
