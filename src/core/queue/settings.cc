#include "core/queue/settings.h"

#include <bit>
#include <cmath>

#include <fmt/format.h>

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
    // Below one token a day a bucket's refill no longer fits the arithmetic, nor anybody's purpose.
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

template <class T>
void lay(T& value, const std::optional<T>& patch) {
  if (patch.has_value()) value = *patch;
}

void encode_span(Encoder& out, Duration span) { out.fixed(span.count()); }
Duration decode_span(Decoder& in) { return Duration{in.fixed<std::int64_t>()}; }

}  // namespace

Status validate(const QueueSettings& settings) {
  BATON_TRY_STATUS(check_span("visibility_timeout", settings.visibility_timeout,
                              limits::kVisibilityTimeoutMin, limits::kVisibilityTimeoutMax));
  BATON_TRY_STATUS(check_number("max_attempts", settings.max_attempts, 0, limits::kMaxAttemptsMax));
  if (!settings.dead_letter_queue.empty()) {
    BATON_TRY_STATUS(validate_queue_name(settings.dead_letter_queue));
  }
  BATON_TRY_STATUS(check_span("retry_delay", settings.retry_delay, Duration{0}, limits::kDelayMax));
  BATON_TRY_STATUS(check_span("retry_delay_max", settings.retry_delay_max, settings.retry_delay,
                              limits::kDelayMax));
  BATON_TRY_STATUS(
      check_number("payload_bytes_max", settings.payload_bytes_max, 1, limits::kPayloadBytesMax));
  BATON_TRY_STATUS(check_span("retention", settings.retention, Duration{0}, limits::kRetentionMax));
  BATON_TRY_STATUS(
      check_span("dedup_window", settings.dedup_window, Duration{0}, limits::kDedupWindowMax));
  BATON_TRY_STATUS(check_number("dedup_ids_max", settings.dedup_ids_max, 0, limits::kDedupIdsMax));
  BATON_TRY_STATUS(check_weights(settings));
  return check_throttles(settings);
}

QueueSettings patched(QueueSettings settings, const QueueSettingsPatch& patch) {
  lay(settings.visibility_timeout, patch.visibility_timeout);
  lay(settings.max_attempts, patch.max_attempts);
  lay(settings.dead_letter_queue, patch.dead_letter_queue);
  lay(settings.retry_delay, patch.retry_delay);
  lay(settings.retry_delay_max, patch.retry_delay_max);
  lay(settings.release_on_disconnect, patch.release_on_disconnect);
  lay(settings.payload_bytes_max, patch.payload_bytes_max);
  lay(settings.messages_max, patch.messages_max);
  lay(settings.bytes_max, patch.bytes_max);
  lay(settings.retention, patch.retention);
  lay(settings.dedup_window, patch.dedup_window);
  lay(settings.dedup_ids_max, patch.dedup_ids_max);
  lay(settings.fairness_cost, patch.fairness_cost);
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
  encode_span(out, settings.visibility_timeout);
  out.varint(settings.max_attempts);
  out.blob(settings.dead_letter_queue);
  encode_span(out, settings.retry_delay);
  encode_span(out, settings.retry_delay_max);
  out.u8(settings.release_on_disconnect ? 1 : 0);
  out.varint(settings.payload_bytes_max);
  out.varint(settings.messages_max);
  out.varint(settings.bytes_max);
  encode_span(out, settings.retention);
  encode_span(out, settings.dedup_window);
  out.varint(settings.dedup_ids_max);
  out.u8(static_cast<std::uint8_t>(settings.fairness_cost));
  out.varint(settings.weights.size());
  for (const auto& [key, weight] : settings.weights) {
    out.blob(key);
    out.varint(weight);
  }
  out.varint(settings.throttles.size());
  for (const auto& [key, throttle] : settings.throttles) {
    out.blob(key);
    out.fixed(std::bit_cast<std::uint64_t>(throttle.rate));
    out.varint(throttle.burst);
  }
}

QueueSettings decode_settings(Decoder& in) {
  QueueSettings settings;
  settings.visibility_timeout = decode_span(in);
  settings.max_attempts = static_cast<std::uint32_t>(in.varint());
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
  for (std::uint64_t left = in.count(2); left > 0; --left) {
    const std::string key{in.blob()};
    settings.weights[key] = static_cast<std::uint32_t>(in.varint());
  }
  for (std::uint64_t left = in.count(10); left > 0; --left) {
    const std::string key{in.blob()};
    ThrottleRate& throttle = settings.throttles[key];
    throttle.rate = std::bit_cast<double>(in.fixed<std::uint64_t>());
    throttle.burst = in.varint();
  }
  if (in.ok() && !validate(settings).has_value()) in.fail();
  return settings;
}

}  // namespace baton
