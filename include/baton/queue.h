#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace baton::client {

/// A token bucket: `rate` tokens a second, at most `burst` saved up.
struct Throttle {
  double rate = 0;
  std::uint64_t burst = 0;

  bool operator==(const Throttle&) const = default;
};

enum class FairnessCost : std::uint8_t { unspecified, message, byte };

/// Settings of a queue. Absent ones keep their value (or, for a new queue, the default in
/// brackets).
struct QueueSettings {
  std::optional<std::chrono::milliseconds> visibility_timeout{};  // [30 s]
  std::optional<std::uint32_t> attempts_max{};                    // [16]; 0 = no limit.
  std::optional<std::string> dead_letter_queue{};                 // ["<name>.dlq"]
  std::optional<std::chrono::milliseconds> retry_delay{};         // [100 ms], doubled each time.
  std::optional<std::chrono::milliseconds> retry_delay_max{};     // [60 s]
  std::optional<bool> release_on_disconnect{};                    // [true]
  std::optional<std::uint64_t> payload_bytes_max{};               // [1 MiB]
  std::optional<std::uint64_t> messages_max{};                    // [0 = no limit]
  std::optional<std::uint64_t> bytes_max{};                       // [0 = no limit]
  std::optional<std::chrono::milliseconds> retention{};           // [0 = for ever]
  std::optional<std::chrono::milliseconds> dedup_window{};        // [5 min]
  std::optional<std::uint64_t> dedup_ids_max{};                   // [1 000 000]
  std::optional<FairnessCost> fairness_cost{};                    // [message]
  std::map<std::string, std::uint32_t> weights{};                 // Added; 0 removes a weight.
  std::map<std::string, Throttle> throttles{};                    // Added; rate 0 removes.
};

/// Calls `visit(name, value)` with each setting that is one value, so with all but weights and
/// throttles. The name is that of the wire schema, with the unit behind it if the value is a time.
template <class Settings, class Visit>
void for_each_setting(Settings& settings, const Visit& visit) {
  visit("visibility_timeout_ms", settings.visibility_timeout);
  visit("attempts_max", settings.attempts_max);
  visit("dead_letter_queue", settings.dead_letter_queue);
  visit("retry_delay_ms", settings.retry_delay);
  visit("retry_delay_max_ms", settings.retry_delay_max);
  visit("release_on_disconnect", settings.release_on_disconnect);
  visit("payload_bytes_max", settings.payload_bytes_max);
  visit("messages_max", settings.messages_max);
  visit("bytes_max", settings.bytes_max);
  visit("retention_ms", settings.retention);
  visit("dedup_window_ms", settings.dedup_window);
  visit("dedup_ids_max", settings.dedup_ids_max);
  visit("fairness_cost", settings.fairness_cost);
}

struct QueueStats {
  std::uint64_t ready = 0;
  std::uint64_t leased = 0;
  std::uint64_t delayed = 0;
  std::uint64_t bytes = 0;
  std::uint64_t active_keys = 0;
  std::uint64_t consumers = 0;
  std::uint64_t outgoing = 0;  // On their way to a dead-letter queue of another shard.
  std::uint64_t dedup_ids = 0;
  // Since the broker started:
  std::uint64_t enqueued_total = 0;
  std::uint64_t delivered_total = 0;
  std::uint64_t acked_total = 0;
  std::uint64_t nacked_total = 0;
  std::uint64_t lease_expired_total = 0;
  std::uint64_t dead_lettered_total = 0;
  std::uint64_t dropped_total = 0;  // By retention or expires_after.
  std::uint64_t deduplicated_total = 0;
};

/// A queue as the broker describes it: every setting is present.
struct QueueInfo {
  std::string name{};
  std::uint64_t id = 0;
  QueueSettings settings{};
  QueueStats stats{};
};

/// Which dead letters go back, where to, and how fast.
struct RedriveOptions {
  std::string to{};                // [The queue each message came from]
  std::uint64_t messages_max = 0;  // [0 = all]
  std::string reason_contains{};
  std::string source_queue{};  // Only messages that came from this queue.
  double rate = 0;             // [0 = no limit] Messages a second, 0.001 or more.
  bool dry_run = false;        // Only count the messages.
};

struct RedriveReport {
  std::uint64_t matched = 0;
  std::uint64_t moved = 0;
  std::uint64_t skipped = 0;
};

}  // namespace baton::client
