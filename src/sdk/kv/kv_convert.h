#pragma once

#include <baton/kv.h>
#include <baton/v1/kv.pb.h>

/// Conversions between the wire messages of the Kv service and the SDK's own types. Pure.
namespace baton::client {

void to_proto(const BucketSettings& in, v1::BucketSettings& out);
BucketInfo from_proto(const v1::Bucket& in);
KvEntry from_proto(const v1::KvEntry& in);
/// Moves the value out of `in`.
KvEntry take(v1::KvEntry& in);
KvOutcome from_proto(const v1::PutKeyResponse& in);
KvOutcome from_proto(const v1::DeleteKeyResponse& in);

}  // namespace baton::client
