#include "pipeline/kafka/kafka_lookup.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/parse.h"
#include "base/secure/probe.h"
#include "pipeline/kafka/kafka_config.h"

namespace baton::pipeline {
namespace {

constexpr Duration kFirstSlice = std::chrono::seconds(1);
constexpr Duration kExplainWithin = std::chrono::seconds(2);

/// librdkafka calls back on the polling thread, which is the thread that asks.
thread_local std::optional<Error> g_noted;

void on_error(rd_kafka_t* /*handle*/, int code, const char* text, void* /*opaque*/) {
  const auto error = static_cast<rd_kafka_resp_err_t>(code);
  const std::string_view why = text == nullptr ? "" : text;
  if (is_refusal(error)) {
    g_noted = Error{
        Errc::invalid_argument,
        fmt::format("Kafka refuses the login: look at --user, --password-file and --mechanism "
                    "(login.user, login.password_file, login.mechanism): {}",
                    why)};
  } else if (error == RD_KAFKA_RESP_ERR__SSL && why.find("Disconnected") == why.npos) {
    g_noted = Error{Errc::invalid_argument, fmt::format("TLS with Kafka: {}", why)};
  } else if (!g_noted.has_value() && why.find("might require SASL") != why.npos) {
    // A broker that is shutting down does this, too.
    g_noted = Error{Errc::unavailable,
                    "Kafka closes the connection at the first request: it wants a login (give "
                    "--user and --password-file; login.user and login.password_file), or is not "
                    "up yet"};
  }
}

/// An error that waiting will not change.
std::optional<Error> why_not(rd_kafka_t& handle, const KafkaPlace& place) {
  for (std::size_t i = 0; i <= place.brokers.size();) {
    const std::size_t end = std::min(place.brokers.find(',', i), place.brokers.size());
    auto found =
        secure::explain_failure({.who = "Kafka",
                                 .address = std::string_view(place.brokers).substr(i, end - i),
                                 .plain = "kafka",
                                 .secure = "kafkas",
                                 .tls = place.security.tls},
                                kExplainWithin);
    if (found.has_value()) return found;
    i = end + 1;
  }
  g_noted.reset();
  (void)rd_kafka_poll(&handle, 0);
  return std::exchange(g_noted, std::nullopt);
}

}  // namespace

void note_errors(rd_kafka_conf_t& conf) { rd_kafka_conf_set_error_cb(&conf, on_error); }

Result<std::uint32_t> find_topic(rd_kafka_t& handle, const KafkaPlace& place, Duration time) {
  // In growing slices: librdkafka keeps retrying even if the login is refused.
  Duration slice = kFirstSlice;
  while (true) {
    auto found = count_partitions(handle, place.topic, std::min(slice, time));
    if (found.has_value() || found.error().code == Errc::not_found) return found;
    const auto why = why_not(handle, place);
    time -= std::min(slice, time);
    slice *= 2;
    if (!why.has_value() && found.error().code == Errc::unavailable && time > Duration::zero()) {
      continue;
    }
    const Error& error = why.has_value() ? *why : found.error();
    return Error{error.code, fmt::format("{} ({})", error.text, place.brokers)};
  }
}

Result<std::uint32_t> count_partitions(rd_kafka_t& handle, const std::string& topic,
                                       Duration time) {
  const KafkaTopic asked(rd_kafka_topic_new(&handle, topic.c_str(), nullptr));
  if (asked == nullptr) return to_error(rd_kafka_last_error(), fmt::format("topic '{}'", topic));
  const rd_kafka_metadata_t* answer = nullptr;
  const rd_kafka_resp_err_t error =
      rd_kafka_metadata(&handle, 0, asked.get(), &answer, milliseconds_of(time));
  const KafkaMetadata metadata(answer);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return to_error(error, "no Kafka broker answers");
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

Status create_topic(rd_kafka_t& handle, const std::string& topic, Duration time) {
  constexpr int kAsTheBrokersSay = -1;
  std::array<char, 512> why{};
  const KafkaNewTopic wanted(rd_kafka_NewTopic_new(topic.c_str(), kAsTheBrokersSay,
                                                   kAsTheBrokersSay, why.data(), why.size()));
  if (wanted == nullptr) {
    return Error{Errc::invalid_argument, fmt::format("topic '{}': {}", topic, why.data())};
  }
  const KafkaAdminOptions options(
      rd_kafka_AdminOptions_new(&handle, RD_KAFKA_ADMIN_OP_CREATETOPICS));
  const KafkaQueue queue(rd_kafka_queue_new(&handle));
  rd_kafka_NewTopic_t* one = wanted.get();
  rd_kafka_CreateTopics(&handle, &one, 1, options.get(), queue.get());
  const KafkaEvent event(rd_kafka_queue_poll(queue.get(), milliseconds_of(time)));
  const std::string what = fmt::format("topic '{}' cannot be created", topic);
  if (event == nullptr) return to_error(RD_KAFKA_RESP_ERR__TIMED_OUT, what);
  rd_kafka_resp_err_t error = rd_kafka_event_error(event.get());
  const rd_kafka_CreateTopics_result_t* result = rd_kafka_event_CreateTopics_result(event.get());
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR && result != nullptr) {
    std::size_t count = 0;
    const rd_kafka_topic_result_t** topics = rd_kafka_CreateTopics_result_topics(result, &count);
    if (count > 0) error = rd_kafka_topic_result_error(*topics);
  }
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR || error == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) {
    return {};
  }
  return to_error(error, what);
}

namespace {

/// The name of the first broker that answers; all brokers of a cluster should be configured alike.
std::optional<std::string> any_broker(rd_kafka_t& handle, Duration time) {
  const rd_kafka_metadata_t* answer = nullptr;
  (void)rd_kafka_metadata(&handle, 0, nullptr, &answer, milliseconds_of(time));
  const KafkaMetadata metadata(answer);
  if (metadata == nullptr || metadata->broker_cnt == 0) return std::nullopt;
  return std::to_string(metadata->brokers[0].id);
}

std::optional<Duration> milliseconds_in(const rd_kafka_ConfigResource_t& resource,
                                        std::string_view name) {
  std::size_t count = 0;
  const rd_kafka_ConfigEntry_t** entries = rd_kafka_ConfigResource_configs(&resource, &count);
  for (const rd_kafka_ConfigEntry_t* entry : std::span(entries, count)) {
    const char* value = rd_kafka_ConfigEntry_value(entry);
    if (name != rd_kafka_ConfigEntry_name(entry) || value == nullptr) continue;
    const auto number = parse_number(value, 0, std::numeric_limits<std::int32_t>::max());
    if (number.has_value()) return std::chrono::milliseconds(*number);
  }
  return std::nullopt;
}

}  // namespace

std::optional<KafkaSessionBounds> session_bounds_of(rd_kafka_t& handle, Duration time) {
  const std::optional<std::string> broker = any_broker(handle, time);
  if (!broker.has_value()) return std::nullopt;
  const KafkaResource wanted(
      rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_BROKER, broker->c_str()));
  const KafkaAdminOptions options(
      rd_kafka_AdminOptions_new(&handle, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS));
  const KafkaQueue queue(rd_kafka_queue_new(&handle));
  rd_kafka_ConfigResource_t* one = wanted.get();
  rd_kafka_DescribeConfigs(&handle, &one, 1, options.get(), queue.get());
  const KafkaEvent event(rd_kafka_queue_poll(queue.get(), milliseconds_of(time)));
  const auto* result =
      event == nullptr ? nullptr : rd_kafka_event_DescribeConfigs_result(event.get());
  if (result == nullptr) return std::nullopt;
  std::size_t count = 0;
  const rd_kafka_ConfigResource_t** resources =
      rd_kafka_DescribeConfigs_result_resources(result, &count);
  if (count == 0) return std::nullopt;
  const auto least = milliseconds_in(**resources, "group.min.session.timeout.ms");
  const auto most = milliseconds_in(**resources, "group.max.session.timeout.ms");
  if (!least.has_value() || !most.has_value()) return std::nullopt;
  return KafkaSessionBounds{.least = *least, .most = *most};
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
