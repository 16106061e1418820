#include "sdk/queue/convert.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "base/assert.h"
#include "sdk/base/errors.h"
#include "sdk/base/limits.h"
#include "sdk/base/times.h"

namespace baton::client {
namespace {

// A negative duration becomes an absurd one, which the broker refuses with the field's name.
std::uint64_t ms(std::chrono::milliseconds duration) {
  return static_cast<std::uint64_t>(duration.count());
}

BrokerTime instant(std::chrono::nanoseconds time) { return BrokerTime(time); }

template <class Wire>
void take_headers(Wire& message, Headers& out) {
  // Most messages have no headers, and mutable_headers() would allocate the map.
  if (message.headers().empty()) return;
  for (auto& [name, value] : *message.mutable_headers()) out.emplace(name, std::move(value));
}

// Everything except the strings that a caller may want to move.
void fill(const NewMessage& message, v1::NewMessage& out) {
  if (!message.headers.empty()) {
    auto& headers = *out.mutable_headers();
    for (const auto& [name, value] : message.headers) headers[name] = value;
  }
  for (const std::string& key : message.throttle_keys) out.add_throttle_keys(key);
  if (message.delay.count() != 0) out.set_delay_ms(ms(message.delay));
  if (message.expires_after.count() != 0) out.set_expires_after_ms(ms(message.expires_after));
}

// A setting's field in the wire schema, found by its name. The unit of a duration is part of the
// setting's name, but not of the field's.
const google::protobuf::FieldDescriptor* field_named(std::string_view name) {
  if (name.ends_with("_ms")) name.remove_suffix(3);
  const auto* const field = v1::QueueSettings::descriptor()->FindFieldByName(std::string(name));
  BATON_ASSERT(field != nullptr);
  return field;
}

using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;
using Wire = v1::QueueSettings;

void set(const Reflection& how, Wire& out, const FieldDescriptor* field, std::uint64_t value) {
  how.SetUInt64(&out, field, value);
}
void set(const Reflection& how, Wire& out, const FieldDescriptor* field, std::uint32_t value) {
  how.SetUInt32(&out, field, value);
}
void set(const Reflection& how, Wire& out, const FieldDescriptor* field, bool value) {
  how.SetBool(&out, field, value);
}
void set(const Reflection& how, Wire& out, const FieldDescriptor* field, const std::string& value) {
  how.SetString(&out, field, value);
}
void set(const Reflection& how, Wire& out, const FieldDescriptor* field, FairnessCost value) {
  how.SetEnumValue(&out, field, static_cast<int>(value));
}
void set(const Reflection& how, Wire& out, const FieldDescriptor* field,
         std::chrono::milliseconds value) {
  how.MutableMessage(&out, field)->CopyFrom(proto_duration(value));
}

void get(const Reflection& how, const Wire& in, const FieldDescriptor* field,
         std::uint64_t& value) {
  value = how.GetUInt64(in, field);
}
void get(const Reflection& how, const Wire& in, const FieldDescriptor* field,
         std::uint32_t& value) {
  value = how.GetUInt32(in, field);
}
void get(const Reflection& how, const Wire& in, const FieldDescriptor* field, bool& value) {
  value = how.GetBool(in, field);
}
void get(const Reflection& how, const Wire& in, const FieldDescriptor* field, std::string& value) {
  value = how.GetString(in, field);
}
void get(const Reflection& how, const Wire& in, const FieldDescriptor* field, FairnessCost& value) {
  value = static_cast<FairnessCost>(how.GetEnumValue(in, field));
}
void get(const Reflection& how, const Wire& in, const FieldDescriptor* field,
         std::chrono::milliseconds& value) {
  using Duration = google::protobuf::Duration;
  const auto& wire = static_cast<const Duration&>(how.GetMessage(in, field));
  value = std::chrono::duration_cast<std::chrono::milliseconds>(duration_of(wire));
}

QueueSettings settings_of(const v1::QueueSettings& in) {
  QueueSettings out;
  const Reflection& how = *v1::QueueSettings::GetReflection();
  for_each_setting(out, [&](const char* name, auto& value) {
    const FieldDescriptor* const field = field_named(name);
    if (how.HasField(in, field)) get(how, in, field, value.emplace());
  });
  for (const auto& [key, weight] : in.weights()) out.weights.emplace(key, weight);
  for (const auto& [key, throttle] : in.throttles()) {
    out.throttles.emplace(key, Throttle{.rate = throttle.rate(), .burst = throttle.burst()});
  }
  return out;
}

QueueStats stats_of(const v1::QueueStats& in) {
  return {.ready = in.ready(),
          .leased = in.leased(),
          .delayed = in.delayed(),
          .bytes = in.bytes(),
          .active_keys = in.active_keys(),
          .consumers = in.consumers(),
          .outgoing = in.outgoing(),
          .dedup_ids = in.dedup_ids(),
          .enqueued_total = in.enqueued_total(),
          .delivered_total = in.delivered_total(),
          .acked_total = in.acked_total(),
          .nacked_total = in.nacked_total(),
          .lease_expired_total = in.lease_expired_total(),
          .dead_lettered_total = in.dead_lettered_total(),
          .dropped_total = in.dropped_total(),
          .deduplicated_total = in.deduplicated_total()};
}

}  // namespace

std::size_t message_bytes(const NewMessage& message) {
  std::size_t bytes = limits::kMessageOverheadBytes + message.payload.size() +
                      message.fairness_key.size() + message.dedup_id.size();
  for (const auto& [name, value] : message.headers) bytes += name.size() + value.size();
  for (const std::string& key : message.throttle_keys) bytes += key.size();
  return bytes;
}

void to_proto(NewMessage&& message, v1::NewMessage& out) {
  fill(message, out);
  out.set_payload(std::move(message.payload));
  if (!message.fairness_key.empty()) out.set_fairness_key(std::move(message.fairness_key));
  if (!message.dedup_id.empty()) out.set_dedup_id(std::move(message.dedup_id));
}

void to_proto(const NewMessage& message, v1::NewMessage& out) {
  fill(message, out);
  out.set_payload(message.payload);
  if (!message.fairness_key.empty()) out.set_fairness_key(message.fairness_key);
  if (!message.dedup_id.empty()) out.set_dedup_id(message.dedup_id);
}

void to_proto(const Nack& item, v1::NackItem& out) {
  out.set_lease_token(item.token.bytes);
  switch (item.retry.kind) {
    case Retry::Kind::backoff: break;
    case Retry::Kind::after: out.set_delay_ms(ms(item.retry.delay)); break;
    case Retry::Kind::release: out.set_release(true); break;
  }
  if (!item.reason.empty()) out.set_reason(item.reason.substr(0, limits::kReasonBytes));
}

void to_proto(const Extension& item, v1::ExtendItem& out) {
  out.set_lease_token(item.token.bytes);
  if (item.timeout.count() != 0) out.set_timeout_ms(ms(item.timeout));
}

void to_proto(const QueueSettings& in, v1::QueueSettings& out) {
  for_each_setting(in, [&](const char* name, const auto& value) {
    if (value) set(*v1::QueueSettings::GetReflection(), out, field_named(name), *value);
  });
  for (const auto& [key, weight] : in.weights) (*out.mutable_weights())[key] = weight;
  for (const auto& [key, throttle] : in.throttles) {
    v1::QueueSettings::Throttle& wire = (*out.mutable_throttles())[key];
    wire.set_rate(throttle.rate);
    wire.set_burst(throttle.burst);
  }
}

EnqueueResult take(v1::EnqueueResult& result) {
  EnqueueResult out{.id = std::move(*result.mutable_id()),
                    .duplicate = result.duplicate(),
                    .error = std::nullopt};
  if (result.has_error()) out.error = from_proto(result.error());
  return out;
}

void take(v1::LeasedMessage& message, LeasedMessage& out) {
  out.id = std::move(*message.mutable_id());
  out.payload = std::move(*message.mutable_payload());
  take_headers(message, out.headers);
  if (!message.fairness_key().empty())
    out.fairness_key = std::move(*message.mutable_fairness_key());
  out.attempt = message.attempt();
  out.enqueued_at = instant(std::chrono::nanoseconds(message.enqueued_at_ns()));
  out.lease_deadline = instant(std::chrono::nanoseconds(message.lease_deadline_ns()));
  out.token.bytes = std::move(*message.mutable_lease_token());
  for (std::string& key : *message.mutable_throttle_keys()) {
    out.throttle_keys.push_back(std::move(key));
  }
}

PeekedMessage take(v1::PeekedMessage& message) {
  PeekedMessage out;
  out.id = std::move(*message.mutable_id());
  out.payload = std::move(*message.mutable_payload());
  take_headers(message, out.headers);
  out.fairness_key = std::move(*message.mutable_fairness_key());
  out.attempts = message.attempts();
  out.enqueued_at = instant(since_1970(message.enqueued_at()));
  out.state = static_cast<MessageState>(message.state());
  out.consumer_id = std::move(*message.mutable_consumer_id());
  out.visible_at = instant(since_1970(message.visible_at()));
  return out;
}

QueueInfo from_proto(const v1::Queue& queue) {
  return {.name = queue.name(),
          .id = queue.id(),
          .settings = settings_of(queue.settings()),
          .stats = stats_of(queue.stats())};
}

Status from_proto(const v1::ItemResult& result) {
  if (result.has_error()) return from_proto(result.error());
  return {};
}

}  // namespace baton::client
