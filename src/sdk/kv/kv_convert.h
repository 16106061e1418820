#pragma once

#include <baton/kv.h>
#include <baton/v1/kv.pb.h>

/// What goes over the wire of the Kv service, as the SDK's own types. Pure.
namespace baton::client {

void to_proto(const BucketSettings& in, v1::BucketSettings& out);
BucketInfo from_proto(const v1::Bucket& in);
KvEntry from_proto(const v1::KvEntry& in);
/// Moves the value out of it.
KvEntry take(v1::KvEntry& in);
KvOutcome from_proto(const v1::KvPutResponse& in);
KvOutcome from_proto(const v1::KvDeleteResponse& in);

}  // namespace baton::client
