#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include "pipeline/kafka/kafka_handles.h"
#include "pipeline/kafka_testing.h"

namespace baton::pipeline::kafka_test {

/// librdkafka's own brokers, within the process.
class KafkaMock {
 public:
  // Requests, by their numbers in the protocol.
  static constexpr std::int16_t kProduce = 0;
  static constexpr std::int16_t kFetch = 1;
  static constexpr std::int16_t kOffsetCommit = 8;
  static constexpr std::int16_t kHeartbeat = 12;

  KafkaMock();

  [[nodiscard]] std::string brokers() const;
  void create(const std::string& topic, int partitions);
  void set_down(bool down);
  /// The next requests of this kind fail with these errors.
  void fail(std::int16_t request, const std::vector<rd_kafka_resp_err_t>& errors);
  void stop_failing(std::int16_t request);
  void set_topic_error(const std::string& topic, rd_kafka_resp_err_t error);

 private:
  KafkaHandle handle_;
  rd_kafka_mock_cluster_t* cluster_ = nullptr;
};

/// For a group that has a mock's topic to itself.
KafkaSourceOptions source_of(const KafkaMock& mock, const std::string& topic);

}  // namespace baton::pipeline::kafka_test
