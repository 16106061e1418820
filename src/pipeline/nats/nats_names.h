#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

/// The forms of a partitioned JetStream subject, of its consumers and of their acknowledgements.
namespace baton::pipeline {

/// Stands for the number of the partition in a subject.
inline constexpr std::string_view kPartitionPlaceholder = "{partition}";

/// A durable consumer of this source. A partition has one for each owner, and a new one after each
/// reconnect: "{group}-{partition}-{epoch}-{generation}".
struct NatsConsumerName {
  std::uint64_t epoch = 0;
  std::uint64_t generation = 0;

  auto operator<=>(const NatsConsumerName&) const = default;
};
std::string to_string(const NatsConsumerName& name, std::string_view group,
                      std::uint32_t partition);
/// nullopt if it is not a consumer of this source.
std::optional<NatsConsumerName> parse_nats_consumer(std::string_view text, std::string_view group,
                                                    std::uint32_t partition);

/// The contents of a delivered message's reply subject.
struct NatsDelivery {
  std::uint64_t stream_sequence = 0;
  std::uint64_t consumer_sequence = 0;  // Counts deliveries, which shows that one is missing.
  std::uint64_t deliveries = 0;         // Of this message; 1 for the first.
  std::int64_t timestamp_ns = 0;        // Since 1970.
  std::uint64_t pending = 0;            // Messages in the stream for this consumer.
};
/// nullopt if it is not such a subject.
std::optional<NatsDelivery> parse_nats_delivery(std::string_view reply_subject);

/// "orders.{partition}.>" for partition 3: "orders.3.>".
std::string nats_subject(std::string_view pattern, std::uint32_t partition);
/// The part of the subject that matches the filter's final wildcard: "customer-7" of
/// "orders.3.customer-7". Empty if the filter has none.
std::string_view nats_subject_rest(std::string_view filter, std::string_view subject);
/// Whether every subject that matches `filter` matches `pattern` as well.
bool nats_covers(std::string_view pattern, std::string_view filter);

/// Whether a consumer's name can begin with the group's.
Status check_nats_group(std::string_view group);

}  // namespace baton::pipeline
