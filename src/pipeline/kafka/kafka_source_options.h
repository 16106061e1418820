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
  // Where a partition begins when the offset that is due is not there. "error": halt rather than
  // skip. "first": the oldest record there is. "next": the next one to be produced. A group that
  // has never committed begins at the oldest with "error", too: nothing is skipped by that.
  std::string from = "error";
  KafkaProperties properties{};  // For librdkafka.
  client::SecurityOptions security{};
  // Of a member that was killed the group knows after this long: until then nobody has its
  // partitions.
  Duration session_timeout = std::chrono::seconds(10);
  // Not empty: a static member. One that is killed and started again under the same id has its
  // partitions back at once.
  std::string instance{};
  Duration drain = std::chrono::seconds(30);  // How long a stop may take the polling thread.
  Duration missing_topic_patience = std::chrono::seconds(30);  // Metadata comes and goes.
  KafkaLog log{};                                              // Called from several threads.
};

}  // namespace baton::pipeline
