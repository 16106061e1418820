#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

/// How a partitioned JetStream subject, its consumers and its acknowledgements are written.
namespace baton::pipeline {

/// A durable consumer of ours. A partition has one for each owner, and another one after each
/// break of the connection: "{group}-{partition}-{epoch}-{generation}".
struct NatsConsumerName {
  std::uint64_t epoch = 0;
  std::uint64_t generation = 0;

  auto operator<=>(const NatsConsumerName&) const = default;
};
std::string to_string(const NatsConsumerName& name, std::string_view group,
                      std::uint32_t partition);
/// None: it is a consumer of somebody else's.
std::optional<NatsConsumerName> parse_nats_consumer(std::string_view text, std::string_view group,
                                                    std::uint32_t partition);

/// What the reply subject of a delivered message says.
struct NatsDelivery {
  std::uint64_t stream_sequence = 0;
  std::uint64_t consumer_sequence = 0;  // Counts deliveries, and so shows that one is missing.
  std::uint64_t deliveries = 0;         // Of this message; 1 for the first.
  std::int64_t timestamp_ns = 0;        // Since 1970.
  std::uint64_t pending = 0;            // In the stream, for this consumer.
};
/// None: it is no such subject.
std::optional<NatsDelivery> parse_nats_delivery(std::string_view reply_subject);

/// "orders.{partition}.>" of partition 3: "orders.3.>".
std::string nats_subject(std::string_view pattern, std::uint32_t partition);
/// What stands where the filter has its wildcard at the end: "customer-7" of "orders.3.customer-7".
/// Empty without one.
std::string_view nats_subject_rest(std::string_view filter, std::string_view subject);
/// Does every subject that matches `filter` match `pattern` as well?
bool nats_covers(std::string_view pattern, std::string_view filter);

/// Can a consumer's name begin with it?
Status check_nats_group(std::string_view group);

}  // namespace baton::pipeline
