#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "pipeline/engine/dead_letter.h"
#include "pipeline/kafka/kafka_producer.h"

namespace baton::pipeline {

struct KafkaDeadLetterOptions {
  std::string brokers{};
  std::string topic{};
  KafkaProperties properties{};
  client::SecurityOptions security{};
  // How long the brokers may take to confirm a batch.
  Duration patience = std::chrono::seconds(30);
};

/// Dead letters as records of a topic, with the original key, value and headers, and headers that
/// say why. A letter that is written again is stored twice, under one id.
class KafkaDeadLetters : public DeadLetterTarget {
 public:
  /// Whether the topic exists; asking does not create it.
  static Result<bool> has_topic(const KafkaDeadLetterOptions& options);
  /// Creates the topic if it does not exist. Fails if no broker answers.
  static Result<std::unique_ptr<KafkaDeadLetters>> open(KafkaDeadLetterOptions options);

  Status write(std::span<const DeadLetter> letters) override;
  [[nodiscard]] std::string name() const override { return "kafka:" + options_.topic; }

 private:
  explicit KafkaDeadLetters(KafkaDeadLetterOptions options) : options_(std::move(options)) {}
  /// The producer, replaced if the last one failed permanently.
  Result<std::shared_ptr<KafkaProducer>> producer();

  const KafkaDeadLetterOptions options_;
  std::mutex mutex_;
  std::shared_ptr<KafkaProducer> producer_;
};

}  // namespace baton::pipeline
