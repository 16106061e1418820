#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"

namespace baton {

/// A token bucket's rate (tokens a second) and the most it saves up.
struct ThrottleRate {
  double rate = 0;
  std::uint64_t burst = 1;
  bool operator==(const ThrottleRate&) const = default;
};

enum class FairnessCost : std::uint8_t { message = 1, byte = 2 };

/// What an operator sets on a queue. Live: a change counts from the next decision on.
struct QueueSettings {
  Duration visibility_timeout = std::chrono::seconds{30};
  std::uint32_t max_attempts = 16;  // 0 = no limit.
  std::string dead_letter_queue;    // Empty = "<name>.dlq"; a queue named so has none.
  Duration retry_delay = std::chrono::milliseconds{100};
  Duration retry_delay_max = std::chrono::seconds{60};
  bool release_on_disconnect = true;
  std::uint64_t payload_bytes_max = limits::kPayloadBytesDefault;
  std::uint64_t messages_max = 0;  // 0 = no limit.
  std::uint64_t bytes_max = 0;
  Duration retention{0};  // 0 = for ever.
  Duration dedup_window = std::chrono::minutes{5};
  std::uint64_t dedup_ids_max = 1'000'000;
  FairnessCost fairness_cost = FairnessCost::message;
  std::map<std::string, std::uint32_t, std::less<>> weights;
  std::map<std::string, ThrottleRate, std::less<>> throttles;

  bool operator==(const QueueSettings&) const = default;
};

/// Names the first setting that is out of its limits.
Status validate(const QueueSettings& settings);

/// Some settings, to be laid over others: what an update request carries.
struct QueueSettingsPatch {
  std::optional<Duration> visibility_timeout;
  std::optional<std::uint32_t> max_attempts;
  std::optional<std::string> dead_letter_queue;
  std::optional<Duration> retry_delay;
  std::optional<Duration> retry_delay_max;
  std::optional<bool> release_on_disconnect;
  std::optional<std::uint64_t> payload_bytes_max;
  std::optional<std::uint64_t> messages_max;
  std::optional<std::uint64_t> bytes_max;
  std::optional<Duration> retention;
  std::optional<Duration> dedup_window;
  std::optional<std::uint64_t> dedup_ids_max;
  std::optional<FairnessCost> fairness_cost;
  std::map<std::string, std::uint32_t, std::less<>> weights;   // 0 removes.
  std::map<std::string, ThrottleRate, std::less<>> throttles;  // Rate 0 removes.
};

QueueSettings patched(QueueSettings settings, const QueueSettingsPatch& patch);

void encode(Encoder& out, const QueueSettings& settings);
/// Fails the decoder on nonsense.
QueueSettings decode_settings(Decoder& in);

}  // namespace baton
