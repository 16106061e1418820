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

/// Questions to the cluster. Each is answered or fails within a given time.
namespace baton::pipeline {

/// How long a question to the brokers may take when an end is opened.
inline constexpr Duration kAnswerTime = std::chrono::seconds(10);

/// Fails with not_found if the topic does not exist; asking does not create it.
Result<std::uint32_t> count_partitions(rd_kafka_t& handle, const std::string& topic, Duration time);

/// The same at the start, on a handle with note_errors(): the error says why the connection fails.
/// A refused login, or TLS on one side only, fails with invalid_argument; an unavailable cluster
/// with unavailable.
struct KafkaPlace {
  const std::string& brokers;
  const std::string& topic;
  const client::SecurityOptions& security;
};
Result<std::uint32_t> find_topic(rd_kafka_t& handle, const KafkaPlace& place, Duration time);
/// Gives find_topic() the errors that librdkafka reports asynchronously.
void note_errors(rd_kafka_conf_t& conf);

/// Creates a topic with the brokers' default number of partitions and replicas. A topic that exists
/// by now is fine.
Status create_topic(rd_kafka_t& handle, const std::string& topic, Duration time);

/// The session timeouts of a member that the brokers allow.
struct KafkaSessionBounds {
  Duration least{};
  Duration most{};
};
/// nullopt if the brokers do not say, or do not allow the question.
std::optional<KafkaSessionBounds> session_bounds_of(rd_kafka_t& handle, Duration time);

/// The oldest record, and the next offset to be produced.
struct KafkaRange {
  std::int64_t first = 0;
  std::int64_t next = 0;
};
Result<KafkaRange> range_of(rd_kafka_t& handle, const std::string& topic, std::uint32_t partition,
                            Duration time);

/// A group's commit: the next offset, and the metadata text beside it.
struct KafkaCommit {
  std::int64_t next = 0;
  std::string note{};
};
/// By partition; nullopt if the group has never committed.
using KafkaCommits = std::map<std::uint32_t, std::optional<KafkaCommit>>;
Result<KafkaCommits> commits_of(rd_kafka_t& handle, const std::string& topic,
                                const std::vector<std::uint32_t>& partitions, Duration time);

/// By partition; nullopt if the group has never committed.
using KafkaCommitted = std::map<std::uint32_t, std::optional<std::int64_t>>;
Result<KafkaCommitted> committed_of(rd_kafka_t& handle, const std::string& topic,
                                    const std::vector<std::uint32_t>& partitions, Duration time);

/// Copies byte for byte. Null becomes empty.
Record to_record(const rd_kafka_message_t& message);

}  // namespace baton::pipeline
