#include "sdk/kv/kv_convert.h"

#include <utility>

#include "sdk/base/errors.h"
#include "sdk/base/times.h"

namespace baton::client {
namespace {

BrokerTime time_of(const google::protobuf::Timestamp& at) { return BrokerTime(since_1970(at)); }

/// The entry without its value.
KvEntry head_of(const v1::KvEntry& in) {
  KvEntry out{.key = in.key(),
              .value = {},
              .revision = in.revision(),
              .created_revision = in.created_revision(),
              .version = in.version(),
              .expires_at = std::nullopt};
  if (in.has_expires_at()) out.expires_at = time_of(in.expires_at());
  return out;
}

template <class Response>
KvOutcome outcome_of(const Response& in) {
  KvOutcome out;
  out.done = !in.has_error();
  out.revision = in.revision();
  if (in.has_error()) out.error = from_proto(in.error());
  if (in.has_current()) out.current = from_proto(in.current());
  return out;
}

}  // namespace

void to_proto(const BucketSettings& in, v1::BucketSettings& out) {
  if (in.value_bytes_max) out.set_value_bytes_max(*in.value_bytes_max);
  if (in.keys_max) out.set_keys_max(*in.keys_max);
  if (in.history_changes_max) out.set_history_changes_max(*in.history_changes_max);
  if (in.history_bytes_max) out.set_history_bytes_max(*in.history_bytes_max);
}

BucketInfo from_proto(const v1::Bucket& in) {
  BucketInfo out;
  out.name = in.name();
  out.id = in.id();
  out.settings = {.value_bytes_max = in.settings().value_bytes_max(),
                  .keys_max = in.settings().keys_max(),
                  .history_changes_max = in.settings().history_changes_max(),
                  .history_bytes_max = in.settings().history_bytes_max()};
  out.created_at = time_of(in.created_at());
  out.revision = in.revision();
  out.history_floor = in.history_floor();
  out.keys = in.keys();
  out.bytes = in.bytes();
  out.watches = in.watches();
  return out;
}

KvEntry from_proto(const v1::KvEntry& in) {
  KvEntry out = head_of(in);
  out.value = in.value();
  return out;
}

KvEntry take(v1::KvEntry& in) {
  KvEntry out = head_of(in);
  out.value = std::move(*in.mutable_value());
  return out;
}

KvOutcome from_proto(const v1::PutKeyResponse& in) { return outcome_of(in); }

KvOutcome from_proto(const v1::DeleteKeyResponse& in) {
  KvOutcome out = outcome_of(in);
  out.unchanged = out.done && !in.deleted();
  return out;
}

}  // namespace baton::client
