#include "pipeline/kafka/kind.h"

#include <utility>

#include "pipeline/kafka/kafka_dead_letters.h"
#include "pipeline/kafka/kafka_letter_store.h"
#include "pipeline/kafka/kafka_producer.h"
#include "pipeline/kafka/kafka_source.h"

namespace baton::pipeline {
namespace {

class KafkaOutput : public RecordOutput {
 public:
  explicit KafkaOutput(std::unique_ptr<KafkaProducer> producer) : producer_(std::move(producer)) {}

  Status send(Record record) override {
    return producer_->send(record.key, record.value, record.headers);
  }
  Status flush(std::chrono::milliseconds timeout) override { return producer_->flush(timeout); }

 private:
  std::unique_ptr<KafkaProducer> producer_;
};

Result<std::unique_ptr<RecordOutput>> open_output(const Endpoint& endpoint,
                                                  const OutputOptions& options) {
  BATON_TRY(auto producer, KafkaProducer::open({.brokers = endpoint.address,
                                                .topic = endpoint.name,
                                                .properties = options.properties,
                                                .security = endpoint.security}));
  return std::make_unique<KafkaOutput>(std::move(producer));
}

Result<std::unique_ptr<Source>> make_source(const PipelineConfig& config) {
  KafkaSourceOptions options;
  options.brokers = config.source.endpoint.address;
  options.topic = config.source.endpoint.name;
  options.group = config.source.group;
  if (!config.source.from.empty()) options.from = config.source.from;
  options.properties = config.source.properties;
  options.security = config.source.endpoint.security;
  options.session_timeout = config.source.session_timeout;
  options.instance = config.id;
  options.drain = config.engine.drain;
  options.log = config.engine.log;
  return std::make_unique<KafkaSource>(std::move(options));
}

KafkaDeadLetterOptions letter_topic(const PipelineConfig& config) {
  const Endpoint& to = config.dead_letters.endpoint;
  return {.brokers = to.address,
          .topic = to.name,
          .properties = letter_properties(config),
          .security = to.security};
}

Result<std::optional<Finding>> find_missing_topic(const PipelineConfig& config) {
  BATON_TRY(const bool there, KafkaDeadLetters::has_topic(letter_topic(config)));
  if (there) return std::nullopt;
  return missing(false, "topic", config.dead_letters.endpoint.name);
}

Result<std::unique_ptr<DeadLetterTarget>> open_letters(const PipelineConfig& config) {
  BATON_TRY(std::unique_ptr<DeadLetterTarget> target, KafkaDeadLetters::open(letter_topic(config)));
  return target;
}

Result<std::unique_ptr<DeadLetterStore>> open_letter_store(const Endpoint& endpoint,
                                                           const DeadLetterStoreOptions& options) {
  BATON_TRY(std::unique_ptr<DeadLetterStore> store,
            KafkaLetterStore::open({.brokers = endpoint.address,
                                    .topic = endpoint.name,
                                    .group = "baton-redrive-" + options.pipeline,
                                    .properties = options.properties,
                                    .security = endpoint.security}));
  return store;
}

}  // namespace

const SourceKind kKafkaSource{.make = make_source, .open_output = open_output};
const DeadLetterKind kKafkaLetters{
    .find_missing = find_missing_topic, .open = open_letters, .open_store = open_letter_store};

}  // namespace baton::pipeline
