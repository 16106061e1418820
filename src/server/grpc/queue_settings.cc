#include "server/grpc/queue_settings.h"

#include <string>

#include <fmt/format.h>

#include "base/assert.h"
#include "server/grpc/times.h"

namespace baton {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;

// The longest duration in a field before the queue's own rules are checked.
constexpr Duration kAnySetting = limits::kRetentionMax;

/// The field of one setting, in one message.
struct Field {
  const FieldDescriptor& of;
  const Reflection& reflection = *v1::QueueSettings::GetReflection();
};

Field field_of(std::uint64_t number) {
  const auto* const found =
      v1::QueueSettings::descriptor()->FindFieldByNumber(static_cast<int>(number));
  BATON_ASSERT(found != nullptr);
  return {.of = *found};
}

Status get(const Field& field, const v1::QueueSettings& in, std::optional<Duration>& out) {
  using Wire = google::protobuf::Duration;
  const auto& value = static_cast<const Wire&>(field.reflection.GetMessage(in, &field.of));
  BATON_TRY(out, convert_duration(field.of.name(), value, kAnySetting));
  return {};
}
Status get(const Field& field, const v1::QueueSettings& in, std::optional<std::uint64_t>& out) {
  out = field.reflection.GetUInt64(in, &field.of);
  return {};
}
Status get(const Field& field, const v1::QueueSettings& in, std::optional<std::uint32_t>& out) {
  out = field.reflection.GetUInt32(in, &field.of);
  return {};
}
Status get(const Field& field, const v1::QueueSettings& in, std::optional<bool>& out) {
  out = field.reflection.GetBool(in, &field.of);
  return {};
}
Status get(const Field& field, const v1::QueueSettings& in, std::optional<std::string>& out) {
  out = field.reflection.GetString(in, &field.of);
  return {};
}
Status get(const Field& field, const v1::QueueSettings& in, std::optional<FairnessCost>& out) {
  switch (const int cost = field.reflection.GetEnumValue(in, &field.of); cost) {
    case v1::FAIRNESS_COST_UNSPECIFIED: return {};
    case v1::FAIRNESS_COST_MESSAGE: out = FairnessCost::message; return {};
    case v1::FAIRNESS_COST_BYTE: out = FairnessCost::byte; return {};
    default:
      return Error{Errc::invalid_argument,
                   fmt::format("fairness_cost is {}; it may be 1 (message) or 2 (byte)", cost)};
  }
}

void set(const Field& field, v1::QueueSettings& out, Duration value) {
  field.reflection.MutableMessage(&out, &field.of)->CopyFrom(baton::to_proto(value));
}
void set(const Field& field, v1::QueueSettings& out, std::uint64_t value) {
  field.reflection.SetUInt64(&out, &field.of, value);
}
void set(const Field& field, v1::QueueSettings& out, std::uint32_t value) {
  field.reflection.SetUInt32(&out, &field.of, value);
}
void set(const Field& field, v1::QueueSettings& out, bool value) {
  field.reflection.SetBool(&out, &field.of, value);
}
void set(const Field& field, v1::QueueSettings& out, const std::string& value) {
  field.reflection.SetString(&out, &field.of, value);
}
void set(const Field& field, v1::QueueSettings& out, FairnessCost value) {
  field.reflection.SetEnumValue(&out, &field.of, static_cast<int>(value));
}
static_assert(static_cast<int>(FairnessCost::message) == v1::FAIRNESS_COST_MESSAGE);
static_assert(static_cast<int>(FairnessCost::byte) == v1::FAIRNESS_COST_BYTE);

}  // namespace

Result<QueueSettingsPatch> convert_settings(const v1::QueueSettings& in) {
  QueueSettingsPatch out;
  Status converted;
  for_each_queue_setting([&](const auto& setting) {
    const Field field = field_of(setting.number);
    if (!converted.has_value() || !field.reflection.HasField(in, &field.of)) return;
    converted = get(field, in, out.*setting.patch);
  });
  BATON_TRY_STATUS(converted);
  for (const auto& [key, weight] : in.weights()) out.weights.emplace(key, weight);
  for (const auto& [key, throttle] : in.throttles()) {
    out.throttles.emplace(key, ThrottleRate{.rate = throttle.rate(), .burst = throttle.burst()});
  }
  return out;
}

void describe_settings(const QueueSettings& in, v1::QueueSettings& out) {
  for_each_queue_setting(
      [&](const auto& setting) { set(field_of(setting.number), out, in.*setting.value); });
  for (const auto& [key, weight] : in.weights) (*out.mutable_weights())[key] = weight;
  for (const auto& [key, throttle] : in.throttles) {
    v1::QueueSettings::Throttle& shown = (*out.mutable_throttles())[key];
    shown.set_rate(throttle.rate);
    shown.set_burst(throttle.burst);
  }
}

}  // namespace baton
