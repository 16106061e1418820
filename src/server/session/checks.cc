#include "server/session/checks.h"

#include <cmath>
#include <set>
#include <string>

#include <fmt/format.h>

#include "base/names.h"
#include "base/result.h"
#include "core/kv/types.h"
#include "core/stream/settings.h"
#include "server/session/bounds.h"
#include "server/session/limits.h"

namespace baton {
namespace {

Status at_most(std::string_view field, std::uint64_t value, std::uint64_t limit) {
  if (value <= limit) return {};
  return over_limit(field, value, limit);
}

Status check_span(std::string_view field, Duration value, Duration limit) {
  if (value >= Duration{0} && value <= limit) return {};
  return invalid_argument(fmt::format("{} is {}; it may be 0 to {}", field, format_duration(value),
                                      format_duration(limit)));
}

/// A name that may be left out.
Status check_optional(Status (*validate_it)(std::string_view), const std::string& name) {
  return name.empty() ? Status{} : validate_it(name);
}

Status check_prefix(const std::string& prefix) {
  return prefix.empty() ? Status{} : validate_name("prefix", prefix, limits::kKvKeyBytes);
}

Status check_group(const std::string& name) {
  return validate_name("group", name, limits::kGroupNameBytes);
}

Status check_key(const std::string& bucket, const std::string& key) {
  BATON_TRY_STATUS(validate_bucket_name(bucket));
  return validate_kv_key(key);
}

Status check_keys(const QueueSettingsPatch& settings) {
  BATON_TRY_STATUS(at_most("number of weights", settings.weights.size(), limits::kWeightsPerQueue));
  BATON_TRY_STATUS(
      at_most("number of throttles", settings.throttles.size(), limits::kThrottlesPerQueue));
  for (const auto& [key, throttle] : settings.throttles) {
    // NaN would pass every comparison of a machine.
    if (std::isnan(throttle.rate)) {
      return invalid_argument(fmt::format("rate of throttle '{}' is not a number", key));
    }
  }
  return {};
}

}  // namespace

Status check_items(std::string_view field, std::size_t count) {
  if (count <= limits::kBatchItems) return {};
  return invalid_argument(
      fmt::format("{} has {} items; the limit is {}", field, count, limits::kBatchItems));
}

Status check_item(const NewMessage& message) {
  BATON_TRY_STATUS(at_most("length of payload", message.payload.size(), limits::kPayloadBytesMax));
  return validate(message);
}

Status check_item(const NackItem& item) {
  BATON_TRY_STATUS(at_most("length of reason", item.reason.size(), limits::kReasonBytes));
  return check_span("delay", item.retry.delay, limits::kDelayMax);
}

Status check_item(const ExtendItem& item) {
  return check_span("timeout", item.timeout, limits::kVisibilityTimeoutMax);
}

Status check(const CreateQueueCommand& command) {
  BATON_TRY_STATUS(validate_queue_name(command.queue));
  BATON_TRY_STATUS(check_keys(command.settings));
  return validate(patched({}, command.settings));
}

Status check(const UpdateQueueCommand& command) {
  // Whether the settings fit together depends on the queue's present ones: the machine checks them.
  BATON_TRY_STATUS(validate_queue_name(command.queue));
  return check_keys(command.settings);
}

Status check(const ListQueuesCommand& command) {
  return check_optional(validate_queue_name, command.queue);
}

Status check(const AttachCommand& command) {
  BATON_TRY_STATUS(validate_queue_name(command.queue));
  BATON_TRY_STATUS(check_optional(validate_consumer_id, command.consumer_id));
  BATON_TRY_STATUS(at_most("in_flight_max", command.in_flight_max, limits::kInFlightMax));
  BATON_TRY_STATUS(
      at_most("in_flight_bytes_max", command.in_flight_bytes_max, limits::kInFlightBytesMax));
  return at_most("concurrency", command.concurrency, limits::kInFlightMax);
}

Status check(const LeaveCommand& command) {
  BATON_TRY_STATUS(validate_consumer_id(command.consumer_id));
  return validate_queue_name(command.queue);
}

Status check(const PeekCommand& command) {
  BATON_TRY_STATUS(validate_queue_name(command.queue));
  return at_most("messages_max", command.messages_max, limits::kPeekMax);
}

Status check(const RedriveCommand& command) {
  BATON_TRY_STATUS(validate_queue_name(command.queue));
  BATON_TRY_STATUS(check_optional(validate_queue_name, command.to));
  BATON_TRY_STATUS(check_optional(validate_queue_name, command.source_queue));
  BATON_TRY_STATUS(
      at_most("length of reason_contains", command.reason_contains.size(), limits::kReasonBytes));
  // A very small rate would overflow the time to wait; NaN compares false.
  const bool limited =
      command.rate >= limits::kRedriveRateMin && command.rate <= limits::kRedriveRateMax;
  if (command.rate == 0 || limited) return {};
  return invalid_argument(
      fmt::format("rate is {}; it may be 0 (no limit), or {} to {} messages a second", command.rate,
                  limits::kRedriveRateMin, limits::kRedriveRateMax));
}

Status check(const ListStreamsCommand& command) {
  return check_optional(validate_stream_name, command.stream);
}

Status check(const ListGroupsCommand& command) {
  return check_optional(validate_stream_name, command.stream);
}

Status check(const StoreOffsetCommand& command) {
  BATON_TRY_STATUS(validate_stream_name(command.stream));
  return check_group(command.request.group.name);
}

Status check(const QueryOffsetCommand& command) {
  BATON_TRY_STATUS(validate_stream_name(command.stream));
  return check_group(command.group);
}

Status check(const SetGroupOffsetsCommand& command) {
  BATON_TRY_STATUS(validate_stream_name(command.stream));
  BATON_TRY_STATUS(check_group(command.group));
  if (command.moves.empty())
    return invalid_argument("offsets is empty: name at least one partition");
  std::set<std::uint32_t> named;
  for (const SetGroupOffsetsCommand::Move& move : command.moves) {
    if (!named.insert(move.partition.value).second) {
      return invalid_argument(
          fmt::format("offsets names partition {} twice", move.partition.value));
    }
  }
  return {};
}

Status check(const GroupCommand& command) {
  BATON_TRY_STATUS(validate_stream_name(command.stream));
  return check_group(command.group);
}

Status check(const AppendCommand& command) {
  BATON_TRY_STATUS(validate_stream_name(command.stream));
  const std::size_t items = command.batches.size() + command.records.size();
  if (items <= limits::kItemsPerRequest) return {};
  return invalid_argument(
      fmt::format("the request has {} items; the limit is {}", items, limits::kItemsPerRequest));
}

Status check(const subscription::Wanted& wanted) {
  const SubscribeCommand& command = wanted.command;
  BATON_TRY_STATUS(validate_stream_name(command.stream));
  if (!command.group.empty()) BATON_TRY_STATUS(check_group(command.group));
  if (command.single_active && command.group.empty()) {
    return invalid_argument("single_active needs a group");
  }
  if (command.handover.has_value() && !command.single_active) {
    return invalid_argument("handover is for single_active subscriptions");
  }
  if (command.owner.size() > limits::kOwnerLabelBytes) {
    return too_long("owner", command.owner.size(), limits::kOwnerLabelBytes);
  }
  if (wanted.credit.batches > limits::kCreditMax || wanted.credit.bytes > limits::kCreditMax) {
    return invalid_argument(fmt::format("credit is more than {}", limits::kCreditMax));
  }
  if (command.partitions.size() <= limits::kPartitionsPerStreamMax) return {};
  return invalid_argument(fmt::format("partitions names {}; the limit is {}",
                                      command.partitions.size(), limits::kPartitionsPerStreamMax));
}

Status check(const CreateBucketCommand& command) {
  BATON_TRY_STATUS(validate_bucket_name(command.bucket));
  return validate(command.settings);
}

Status check(const ListBucketsCommand& command) {
  return check_optional(validate_bucket_name, command.bucket);
}

Status check(const KvGetCommand& command) { return check_key(command.bucket, command.key); }

Status check(const KvPutCommand& command) {
  const KvWrite& write = command.request;
  BATON_TRY_STATUS(check_key(write.bucket, write.key));
  if (write.value.size() > limits::kKvValueBytesMax) {
    return too_long("value", write.value.size(), limits::kKvValueBytesMax);
  }
  if (!write.ttl.has_value()) return {};
  if (*write.ttl == Duration{0}) {
    return invalid_argument("ttl is 0; it is at least 1 ms, and absent for a key that stays");
  }
  if (*write.ttl >= limits::kKvTtlMin && *write.ttl <= limits::kKvTtlMax) return {};
  return invalid_argument(fmt::format("ttl is {}; it may be {} to {}", format_duration(*write.ttl),
                                      format_duration(limits::kKvTtlMin),
                                      format_duration(limits::kKvTtlMax)));
}

Status check(const KvRemoveCommand& command) {
  BATON_TRY_STATUS(check_key(command.request.bucket, command.request.key));
  if (command.request.expected != Revision{0}) return {};
  return invalid_argument("expected_revision is 0: what is not there needs no removal");
}

Status check(const KvListCommand& command) {
  BATON_TRY_STATUS(validate_bucket_name(command.request.bucket));
  return check_prefix(command.request.prefix);
}

Status check(const WatchWanted& wanted) {
  BATON_TRY_STATUS(validate_bucket_name(wanted.bucket));
  if (wanted.filter.exact) {
    BATON_TRY_STATUS(validate_kv_key(wanted.filter.text));
  } else {
    BATON_TRY_STATUS(check_prefix(wanted.filter.text));
  }
  if (wanted.session.empty()) return {};
  return validate_name("session", wanted.session, limits::kKvKeyBytes);
}

}  // namespace baton
