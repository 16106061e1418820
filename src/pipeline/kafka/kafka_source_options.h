#pragma once

#include <chrono>
#include <string>

#include "base/time.h"
#include "pipeline/kafka/kafka_config.h"

namespace baton::pipeline {

struct KafkaSourceOptions {
  std::string brokers{};  // "127.0.0.1:9092,127.0.0.1:9093".
  std::string topic{};
  std::string group{};
  // Where a partition begins if its next offset does not exist. "error": halt rather than skip.
  // "first": the oldest record. "next": the next one to be produced. A group that has never
  // committed begins at the oldest with "error", too, because that skips nothing.
  std::string from = "error";
  KafkaProperties properties{};  // For librdkafka.
  client::SecurityOptions security{};
  // How long until the group notices that a member was killed: until then no other member gets its
  // partitions.
  Duration session_timeout = std::chrono::seconds(10);
  // Not empty: a static member. If it is killed and started again under the same id, it gets its
  // partitions back at once.
  std::string instance{};
  Duration drain = std::chrono::seconds(30);  // How long a stop may keep the polling thread.
  // Metadata may be incomplete for a while.
  Duration missing_topic_patience = std::chrono::seconds(30);
  KafkaLog log{};  // Called from several threads.
};

}  // namespace baton::pipeline
