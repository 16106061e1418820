#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <variant>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"

namespace baton {

/// A token bucket's rate (tokens per second), and the most tokens that it saves up.
struct ThrottleRate {
  double rate = 0;
  std::uint64_t burst = 1;
  bool operator==(const ThrottleRate&) const = default;
};

enum class FairnessCost : std::uint8_t { message = 1, byte = 2 };

/// The settings of a queue. All of them have a value, or, in a patch, any of them may be absent.
template <bool IsPatch>
struct BasicQueueSettings {
  template <class T>
  using Value = std::conditional_t<IsPatch, std::optional<T>, T>;
  template <class T>
  static constexpr Value<T> initially(T value) {
    if constexpr (IsPatch) return std::nullopt;
    return value;
  }

  // These defaults are part of the format: a setting that has its default is not written. A later
  // version must not change them, because existing queues would change with them.
  Value<Duration> visibility_timeout = initially<Duration>(std::chrono::seconds{30});
  Value<std::uint32_t> attempts_max = initially<std::uint32_t>(16);  // 0 = no limit.
  // Empty = "<name>.dlq"; a queue with such a name has none.
  Value<std::string> dead_letter_queue = initially<std::string>({});
  Value<Duration> retry_delay = initially<Duration>(std::chrono::milliseconds{100});
  Value<Duration> retry_delay_max = initially<Duration>(std::chrono::seconds{60});
  Value<bool> release_on_disconnect = initially<bool>(true);
  Value<std::uint64_t> payload_bytes_max = initially<std::uint64_t>(limits::kPayloadBytesDefault);
  Value<std::uint64_t> messages_max = initially<std::uint64_t>(0);  // 0 = no limit.
  Value<std::uint64_t> bytes_max = initially<std::uint64_t>(0);
  Value<Duration> retention = initially<Duration>({});  // 0 = for ever.
  Value<Duration> dedup_window = initially<Duration>(std::chrono::minutes{5});
  Value<std::uint64_t> dedup_ids_max = initially<std::uint64_t>(1'000'000);
  Value<FairnessCost> fairness_cost = initially<FairnessCost>(FairnessCost::message);
  std::map<std::string, std::uint32_t, std::less<>> weights;   // In a patch: 0 removes.
  std::map<std::string, ThrottleRate, std::less<>> throttles;  // In a patch: rate 0 removes.

  bool operator==(const BasicQueueSettings&) const = default;
};

/// What an operator sets on a queue. A change takes effect with the next decision.
using QueueSettings = BasicQueueSettings<false>;
/// Some settings, to be applied over others: the content of an update request.
using QueueSettingsPatch = BasicQueueSettings<true>;

/// What generic code needs to know of one setting: its number in stored bytes, which is also its
/// field number in queues.proto, its name, its member, and its limits.
template <class T>
struct QueueSetting {
  std::uint64_t number;
  std::string_view name;
  T QueueSettings::* value;
  std::optional<T> QueueSettingsPatch::* patch;
  // A text has no numeric limits.
  using Limit = std::conditional_t<std::is_same_v<T, std::string>, std::monostate, T>;
  Limit least{};
  Limit most{};
};

/// Every setting that is one value. Numbers are never used again; the next one is 16.
inline constexpr auto kQueueSettings = [] {
  using All = QueueSettings;
  using Some = QueueSettingsPatch;
  using Span = QueueSetting<Duration>;
  using Count = QueueSetting<std::uint64_t>;
  constexpr auto kAny = std::numeric_limits<std::uint64_t>::max();
  return std::tuple{
      Span{1, "visibility_timeout", &All::visibility_timeout, &Some::visibility_timeout,
           limits::kVisibilityTimeoutMin, limits::kVisibilityTimeoutMax},
      QueueSetting<std::uint32_t>{2, "attempts_max", &All::attempts_max, &Some::attempts_max, 0,
                                  limits::kAttemptsMax},
      QueueSetting<std::string>{3, "dead_letter_queue", &All::dead_letter_queue,
                                &Some::dead_letter_queue},
      Span{4, "retry_delay", &All::retry_delay, &Some::retry_delay, {}, limits::kDelayMax},
      Span{5,
           "retry_delay_max",
           &All::retry_delay_max,
           &Some::retry_delay_max,
           {},
           limits::kDelayMax},
      QueueSetting<bool>{6, "release_on_disconnect", &All::release_on_disconnect,
                         &Some::release_on_disconnect, false, true},
      Count{7, "payload_bytes_max", &All::payload_bytes_max, &Some::payload_bytes_max, 1,
            limits::kPayloadBytesMax},
      Count{8, "messages_max", &All::messages_max, &Some::messages_max, 0, kAny},
      Count{9, "bytes_max", &All::bytes_max, &Some::bytes_max, 0, kAny},
      Span{10, "retention", &All::retention, &Some::retention, {}, limits::kRetentionMax},
      Span{
          11, "dedup_window", &All::dedup_window, &Some::dedup_window, {}, limits::kDedupWindowMax},
      Count{12, "dedup_ids_max", &All::dedup_ids_max, &Some::dedup_ids_max, 0,
            limits::kDedupIdsMax},
      QueueSetting<FairnessCost>{13, "fairness_cost", &All::fairness_cost, &Some::fairness_cost,
                                 FairnessCost::message, FairnessCost::byte},
  };
}();

/// Calls `visit` with each of kQueueSettings.
template <class Visit>
constexpr void for_each_queue_setting(const Visit& visit) {
  std::apply([&](const auto&... setting) { (visit(setting), ...); }, kQueueSettings);
}

/// Fails with the first setting that is out of its limits.
Status validate(const QueueSettings& settings);

QueueSettings patched(QueueSettings settings, const QueueSettingsPatch& patch);

/// A blob of the settings that differ from QueueSettings{}, as numbered fields (base/growing.h).
void encode(Encoder& out, const QueueSettings& settings);
/// Fails the decoder on invalid bytes, and on an unknown setting that must be understood.
QueueSettings decode_settings(Decoder& in);
/// The same from format 1, which is no longer written: every setting in a fixed order, without a
/// length.
QueueSettings decode_settings_1(Decoder& in);

}  // namespace baton
