#include "core/queue/settings.h"

#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "base/growing.h"
#include "core/queue/types.h"

namespace baton {
namespace {

Error out_of_range(std::string_view field, std::string_view value, std::string_view least,
                   std::string_view most) {
  return {Errc::invalid_argument,
          fmt::format("{} is {}; it may be {} to {}", field, value, least, most)};
}

Status check_span(std::string_view field, Duration value, Duration least, Duration most) {
  if (value >= least && value <= most) return {};
  return out_of_range(field, format_duration(value), format_duration(least), format_duration(most));
}

Status check_number(std::string_view field, std::uint64_t value, std::uint64_t least,
                    std::uint64_t most) {
  if (value >= least && value <= most) return {};
  return out_of_range(field, std::to_string(value), std::to_string(least), std::to_string(most));
}

Status check_weights(const QueueSettings& settings) {
  BATON_TRY_STATUS(
      check_number("number of weights", settings.weights.size(), 0, limits::kWeightsPerQueue));
  for (const auto& [key, weight] : settings.weights) {
    BATON_TRY_STATUS(
        check_number("length of a key in weights", key.size(), 0, limits::kFairnessKeyBytes));
    BATON_TRY_STATUS(
        check_number(fmt::format("weight of '{}'", key), weight, 1, limits::kWeightMax));
  }
  return {};
}

Status check_throttles(const QueueSettings& settings) {
  BATON_TRY_STATUS(check_number("number of throttles", settings.throttles.size(), 0,
                                limits::kThrottlesPerQueue));
  for (const auto& [key, throttle] : settings.throttles) {
    BATON_TRY_STATUS(
        check_number("length of a key in throttles", key.size(), 1, limits::kThrottleKeyBytes));
    // Below one token a day the bucket's arithmetic would overflow, and no user needs such a rate.
    if (!(throttle.rate >= 1e-5) || throttle.rate > limits::kThrottleRateMax) {
      return out_of_range(fmt::format("rate of throttle '{}'", key),
                          fmt::format("{}", throttle.rate), "0.00001",
                          fmt::format("{}", limits::kThrottleRateMax));
    }
    BATON_TRY_STATUS(check_number(fmt::format("burst of throttle '{}'", key), throttle.burst, 1,
                                  limits::kThrottleBurstMax));
  }
  return {};
}

/// A text has no limits of its own here.
Status check(const QueueSetting<std::string>& setting, const std::string& name) {
  if (name.empty()) return {};
  const Status valid = validate_queue_name(name);
  if (valid.has_value()) return {};
  return Error{valid.error().code, fmt::format("{}: {}", setting.name, valid.error().text)};
}
Status check(const QueueSetting<Duration>& setting, Duration value) {
  return check_span(setting.name, value, setting.least, setting.most);
}
template <class T>
Status check(const QueueSetting<T>& setting, T value) {
  return check_number(setting.name, static_cast<std::uint64_t>(value),
                      static_cast<std::uint64_t>(setting.least),
                      static_cast<std::uint64_t>(setting.most));
}

// Values in the form in which fields store them.
std::string_view stored(const std::string& value) { return value; }
std::uint64_t stored(Duration value) { return static_cast<std::uint64_t>(value.count()); }
template <class T>
std::uint64_t stored(T value) {
  return static_cast<std::uint64_t>(value);
}

void read_value(Decoder& in, std::string& value) { value = in.raw(in.rest().size()); }
template <class T>
void read_value(Decoder& in, T& value) {
  const std::uint64_t number = in.varint();
  if constexpr (std::is_same_v<T, Duration>) {
    value = Duration{static_cast<std::int64_t>(number)};
  } else {
    value = static_cast<T>(number);
  }
  // A number beyond the type's range would become another value.
  if (stored(value) != number) in.fail();
}

constexpr std::uint64_t kWeights = 14;
constexpr std::uint64_t kThrottles = 15;

void encode_fields(Encoder& out, const QueueSettings& settings) {
  static const QueueSettings kInitial;
  for_each_queue_setting([&](const auto& setting) {
    const auto& value = settings.*setting.value;
    if (value != kInitial.*setting.value) put_field(out, setting.number, stored(value));
  });
  std::string entry;
  for (const auto& [key, weight] : settings.weights) {
    entry.clear();
    Encoder(entry).blob(key);
    Encoder(entry).varint(weight);
    put_field(out, kWeights, entry);
  }
  for (const auto& [key, throttle] : settings.throttles) {
    entry.clear();
    Encoder(entry).blob(key);
    Encoder(entry).fixed(std::bit_cast<std::uint64_t>(throttle.rate));
    Encoder(entry).varint(throttle.burst);
    put_field(out, kThrottles, entry);
  }
}

void read_weight(Decoder& in, QueueSettings& settings) {
  const std::string key{in.blob()};
  read_value(in, settings.weights[key]);
}

void read_throttle(Decoder& in, QueueSettings& settings) {
  const std::string key{in.blob()};
  ThrottleRate& throttle = settings.throttles[key];
  throttle.rate = std::bit_cast<double>(in.fixed<std::uint64_t>());
  throttle.burst = in.varint();
}

/// Reads the field if it is a setting of one value.
bool read_setting(FieldReader& field, QueueSettings& settings) {
  bool known = false;
  for_each_queue_setting([&](const auto& setting) {
    if (setting.number != field.number()) return;
    known = true;
    read_value(field.value(), settings.*setting.value);
  });
  return known;
}

void check_read(Decoder& in, const QueueSettings& settings) {
  if (in.ok() && !validate(settings).has_value()) in.fail();
}

Duration decode_span(Decoder& in) { return Duration{in.fixed<std::int64_t>()}; }

}  // namespace

Status validate(const QueueSettings& settings) {
  Status valid;
  for_each_queue_setting([&](const auto& setting) {
    if (valid.has_value()) valid = check(setting, settings.*setting.value);
  });
  BATON_TRY_STATUS(valid);
  BATON_TRY_STATUS(check_span("retry_delay_max", settings.retry_delay_max, settings.retry_delay,
                              limits::kDelayMax));
  BATON_TRY_STATUS(check_weights(settings));
  return check_throttles(settings);
}

QueueSettings patched(QueueSettings settings, const QueueSettingsPatch& patch) {
  for_each_queue_setting([&](const auto& setting) {
    const auto& value = patch.*setting.patch;
    if (value.has_value()) settings.*setting.value = *value;
  });
  for (const auto& [key, weight] : patch.weights) {
    if (weight == 0) {
      settings.weights.erase(key);
    } else {
      settings.weights[key] = weight;
    }
  }
  for (const auto& [key, throttle] : patch.throttles) {
    if (throttle.rate == 0) {
      settings.throttles.erase(key);
    } else {
      settings.throttles[key] = throttle;
    }
  }
  return settings;
}

void encode(Encoder& out, const QueueSettings& settings) {
  out.blob_of(0, [&] { encode_fields(out, settings); });
}

QueueSettings decode_settings(Decoder& in) {
  QueueSettings settings;
  Decoder bytes(in.blob());
  for (FieldReader field(bytes); field.next();) {
    if (read_setting(field, settings)) continue;
    switch (field.number()) {
      case kWeights: read_weight(field.value(), settings); break;
      case kThrottles: read_throttle(field.value(), settings); break;
      default: field.skip();
    }
  }
  if (!bytes.ok()) in.fail_as(bytes, "settings");
  check_read(in, settings);
  return settings;
}

QueueSettings decode_settings_1(Decoder& in) {
  QueueSettings settings;
  settings.visibility_timeout = decode_span(in);
  settings.attempts_max = static_cast<std::uint32_t>(in.varint());
  settings.dead_letter_queue = in.blob();
  settings.retry_delay = decode_span(in);
  settings.retry_delay_max = decode_span(in);
  settings.release_on_disconnect = in.u8() != 0;
  settings.payload_bytes_max = in.varint();
  settings.messages_max = in.varint();
  settings.bytes_max = in.varint();
  settings.retention = decode_span(in);
  settings.dedup_window = decode_span(in);
  settings.dedup_ids_max = in.varint();
  settings.fairness_cost = static_cast<FairnessCost>(in.u8());
  if (settings.fairness_cost != FairnessCost::message &&
      settings.fairness_cost != FairnessCost::byte) {
    in.fail();
  }
  for (std::uint64_t left = in.count(2); left > 0; --left) read_weight(in, settings);
  for (std::uint64_t left = in.count(10); left > 0; --left) read_throttle(in, settings);
  check_read(in, settings);
  return settings;
}

}  // namespace baton
