#include "kafka/kafka_lookup.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "kafka/kafka_config.h"

namespace baton::pipeline {

Result<std::uint32_t> count_partitions(rd_kafka_t& handle, const std::string& topic,
                                       Duration time) {
  const KafkaTopic asked(rd_kafka_topic_new(&handle, topic.c_str(), nullptr));
  if (asked == nullptr) return to_error(rd_kafka_last_error(), fmt::format("topic '{}'", topic));
  const rd_kafka_metadata_t* answer = nullptr;
  const rd_kafka_resp_err_t error =
      rd_kafka_metadata(&handle, 0, asked.get(), &answer, milliseconds_of(time));
  const KafkaMetadata metadata(answer);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return to_error(error, "no broker of Kafka answers");
  const std::span topics(metadata->topics, static_cast<std::size_t>(metadata->topic_cnt));
  const auto found =
      std::ranges::find_if(topics, [&](const auto& one) { return topic == one.topic; });
  if (found == topics.end()) {
    return to_error(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, fmt::format("topic '{}'", topic));
  }
  if (found->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return to_error(found->err, fmt::format("topic '{}'", topic));
  }
  return static_cast<std::uint32_t>(found->partition_cnt);
}

Result<KafkaRange> range_of(rd_kafka_t& handle, const std::string& topic, std::uint32_t partition,
                            Duration time) {
  KafkaRange range;
  const rd_kafka_resp_err_t error =
      rd_kafka_query_watermark_offsets(&handle, topic.c_str(), static_cast<std::int32_t>(partition),
                                       &range.first, &range.next, milliseconds_of(time));
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return range;
  return to_error(error, fmt::format("the range of topic '{}', partition {}", topic, partition));
}

Result<KafkaCommits> commits_of(rd_kafka_t& handle, const std::string& topic,
                                const std::vector<std::uint32_t>& partitions, Duration time) {
  const KafkaPartitionList list(
      rd_kafka_topic_partition_list_new(static_cast<int>(partitions.size())));
  for (const std::uint32_t partition : partitions) {
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(),
                                      static_cast<std::int32_t>(partition));
  }
  const std::string what = fmt::format("the committed offsets of topic '{}'", topic);
  const rd_kafka_resp_err_t error = rd_kafka_committed(&handle, list.get(), milliseconds_of(time));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return to_error(error, what);
  KafkaCommits result;
  for (const auto& one : std::span(list->elems, static_cast<std::size_t>(list->cnt))) {
    if (one.err != RD_KAFKA_RESP_ERR_NO_ERROR) return to_error(one.err, what);
    auto& commit = result[static_cast<std::uint32_t>(one.partition)];
    if (one.offset < 0) continue;
    const auto* note = static_cast<const char*>(one.metadata);
    commit = {.next = one.offset,
              .note = note == nullptr ? std::string() : std::string(note, one.metadata_size)};
  }
  return result;
}

Result<KafkaCommitted> committed_of(rd_kafka_t& handle, const std::string& topic,
                                    const std::vector<std::uint32_t>& partitions, Duration time) {
  BATON_TRY(const KafkaCommits commits, commits_of(handle, topic, partitions, time));
  KafkaCommitted result;
  for (const auto& [partition, commit] : commits) {
    auto& committed = result[partition];
    if (commit.has_value()) committed = commit->next;
  }
  return result;
}

Record to_record(const rd_kafka_message_t& message) {
  Record record;
  record.partition = static_cast<std::uint32_t>(message.partition);
  record.offset = message.offset;
  if (message.key != nullptr) {
    record.key.assign(static_cast<const char*>(message.key), message.key_len);
  }
  record.tombstone = message.payload == nullptr;
  if (!record.tombstone) {
    record.value.assign(static_cast<const char*>(message.payload), message.len);
  }
  rd_kafka_timestamp_type_t type{};
  const std::int64_t time = rd_kafka_message_timestamp(&message, &type);
  record.timestamp = std::chrono::milliseconds(std::max<std::int64_t>(time, 0));
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(&message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return record;
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  for (std::size_t i = 0;
       rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR;
       ++i) {
    record.headers.emplace_back(name, value == nullptr
                                          ? std::string()
                                          : std::string(static_cast<const char*>(value), size));
  }
  return record;
}

}  // namespace baton::pipeline
