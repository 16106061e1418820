#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "pipeline/kafka/kafka_config.h"
#include "pipeline/kafka/kafka_handles.h"

namespace baton::pipeline {

struct KafkaProducerOptions {
  std::string brokers{};
  std::string topic{};
  KafkaProperties properties{};  // For librdkafka.
  client::SecurityOptions security{};
  // Of one record, after which it has failed.
  Duration delivery_timeout = std::chrono::seconds(60);
  std::size_t queued_records_max = 100'000;
  std::size_t queued_kilobytes_max = std::size_t{64} << 10U;
};

/// A record to send; an empty key means no key.
struct KafkaOutgoing {
  std::string_view key{};
  std::string_view value{};
  std::span<const std::pair<std::string, std::string>> headers{};
};

/// Writes to one topic: each record once, in order, and stored by all in-sync replicas.
/// Thread-safe.
class KafkaProducer {
 public:
  /// Fails if no broker answers. The first record may create the topic, if the brokers allow that.
  static Result<std::unique_ptr<KafkaProducer>> open(KafkaProducerOptions options);
  ~KafkaProducer();
  KafkaProducer(const KafkaProducer&) = delete;
  KafkaProducer& operator=(const KafkaProducer&) = delete;

  /// Queues a record; waits while the queue is full. flush() reports its delivery.
  Status send(std::string_view key, std::string_view value,
              std::span<const std::pair<std::string, std::string>> headers = {});
  /// Waits for everything sent; fails if any record since the last flush was not delivered, or is
  /// not yet.
  Status flush(Duration time);
  /// Sends these records and waits for them only; OK if the brokers have confirmed all of them.
  Status send_all(std::span<const KafkaOutgoing> records, Duration time);

  /// Whether librdkafka cannot recover from an error: another producer is needed.
  [[nodiscard]] bool is_broken() const;

 private:
  class Receipts;
  explicit KafkaProducer(KafkaProducerOptions options);

  static void on_delivery(rd_kafka_t* handle, const rd_kafka_message_t* message, void* opaque);
  Status connect();
  Status produce(const KafkaOutgoing& record, const std::shared_ptr<Receipts>& receipts,
                 Instant end);
  rd_kafka_resp_err_t try_produce(const KafkaOutgoing& record,
                                  const std::shared_ptr<Receipts>& receipts);

  const KafkaProducerOptions options_;
  KafkaHandle handle_;
  std::shared_ptr<Receipts> receipts_;  // Of records sent by send().
  std::jthread poller_;
};

}  // namespace baton::pipeline
