#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <baton/security.h>

#include "base/result.h"
#include "base/time.h"
#include "pipeline/engine/record.h"
#include "pipeline/kafka/kafka_handles.h"

/// Questions to the cluster, each with a time within which it is answered or fails.
namespace baton::pipeline {

/// Fails with not_found if there is no such topic: it is not made by asking.
Result<std::uint32_t> count_partitions(rd_kafka_t& handle, const std::string& topic, Duration time);

/// The same, at the beginning, on a handle with note_errors(): who cannot get in is told why. A
/// refused login, and TLS on one side alone, fail with invalid_argument; the cluster's being away
/// with unavailable.
struct KafkaPlace {
  const std::string& brokers;
  const std::string& topic;
  const client::SecurityOptions& security;
};
Result<std::uint32_t> find_topic(rd_kafka_t& handle, const KafkaPlace& place, Duration time);
/// Lets find_topic() know what librdkafka finds out by and by.
void note_errors(rd_kafka_conf_t& conf);

/// With as many partitions and replicas as the brokers give a topic that says nothing of them. One
/// that is there by now is fine.
Status create_topic(rd_kafka_t& handle, const std::string& topic, Duration time);

/// What the brokers allow as a member's session time-out.
struct KafkaSessionBounds {
  Duration least{};
  Duration most{};
};
/// Nothing: they do not say, or do not let us ask.
std::optional<KafkaSessionBounds> session_bounds_of(rd_kafka_t& handle, Duration time);

/// The oldest record there is, and the next one that will be produced.
struct KafkaRange {
  std::int64_t first = 0;
  std::int64_t next = 0;
};
Result<KafkaRange> range_of(rd_kafka_t& handle, const std::string& topic, std::uint32_t partition,
                            Duration time);

/// What a group has committed: the next offset, and what it wrote beside it.
struct KafkaCommit {
  std::int64_t next = 0;
  std::string note{};
};
/// By partition; nothing where the group has never committed.
using KafkaCommits = std::map<std::uint32_t, std::optional<KafkaCommit>>;
Result<KafkaCommits> commits_of(rd_kafka_t& handle, const std::string& topic,
                                const std::vector<std::uint32_t>& partitions, Duration time);

/// By partition; nothing where the group has never committed.
using KafkaCommitted = std::map<std::uint32_t, std::optional<std::int64_t>>;
Result<KafkaCommitted> committed_of(rd_kafka_t& handle, const std::string& topic,
                                    const std::vector<std::uint32_t>& partitions, Duration time);

/// Byte for byte. What is null becomes empty.
Record to_record(const rd_kafka_message_t& message);

}  // namespace baton::pipeline
