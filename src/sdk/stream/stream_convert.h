#pragma once

#include <cstddef>
#include <vector>

#include <baton/stream.h>
#include <baton/v1/streams.pb.h>
#include <google/protobuf/repeated_ptr_field.h>

/// Conversions between the public structs of streams and the wire schema.
namespace baton::client {

/// The bytes that a record counts against the bounds on bytes.
std::size_t record_bytes(const NewRecord& record);

/// Fails with invalid_argument when `fsync` is not a mode.
Status to_proto(const StreamSettings& settings, v1::StreamSettings& out);
void to_proto(const NewRecord& record, v1::NewRecord& out);
void to_proto(const StartFrom& from, v1::ReadFrom& out);

StreamInfo from_proto(const v1::Stream& stream);
AppendResult from_proto(const v1::AppendResult& result);
GroupInfo from_proto(const v1::Group& group);
std::vector<GroupInfo> from_proto(const google::protobuf::RepeatedPtrField<v1::Group>& groups);

}  // namespace baton::client
