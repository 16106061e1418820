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
  Duration delivery_timeout = std::chrono::seconds(60);  // Of one record; then it has failed.
  std::size_t queued_records_max = 100'000;
  std::size_t queued_kilobytes_max = std::size_t{64} << 10U;
};

/// A record to be; without a key when that is empty.
struct KafkaOutgoing {
  std::string_view key{};
  std::string_view value{};
  std::span<const std::pair<std::string, std::string>> headers{};
};

/// Writes to one topic: each record once, in order, and kept by all in-sync replicas. Thread-safe.
class KafkaProducer {
 public:
  /// Fails if no broker answers. The topic may be made by the first record, if the brokers do so.
  static Result<std::unique_ptr<KafkaProducer>> open(KafkaProducerOptions options);
  ~KafkaProducer();
  KafkaProducer(const KafkaProducer&) = delete;
  KafkaProducer& operator=(const KafkaProducer&) = delete;

  /// Takes it in; waits while the queue is full. What becomes of it flush() says.
  Status send(std::string_view key, std::string_view value,
              std::span<const std::pair<std::string, std::string>> headers = {});
  /// Waits for everything that was sent; an error if anything since the last flush was not
  /// delivered, or is not yet.
  Status flush(Duration time);
  /// Sends these and waits for these alone; OK: the brokers have confirmed every one.
  Status send_all(std::span<const KafkaOutgoing> records, Duration time);

  /// An error from which librdkafka does not recover: another producer is needed.
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
  std::shared_ptr<Receipts> receipts_;  // Of send().
  std::jthread poller_;
};

}  // namespace baton::pipeline
