#include "pipeline/kafka/kafka_dead_letters.h"

#include <algorithm>
#include <vector>

#include "pipeline/kafka/kafka_lookup.h"

namespace baton::pipeline {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

/// The record's headers and the letter's. Headers of an earlier dead letter are replaced.
Headers headers_of(const DeadLetter& letter) {
  const Headers ours = letter.headers();
  const auto is_ours = [&](const auto& header) {
    return std::ranges::any_of(ours, [&](const auto& one) { return one.first == header.first; });
  };
  Headers result;
  std::ranges::remove_copy_if(letter.record->headers, std::back_inserter(result), is_ours);
  result.insert(result.end(), ours.begin(), ours.end());
  return result;
}

/// A consumer that joins no group: unlike a producer's metadata requests, its requests create no
/// topic.
Result<KafkaHandle> make_asker(const KafkaDeadLetterOptions& options) {
  BATON_TRY(KafkaConf conf, make_conf({.defaults = {{"client.id", "baton-pipeline"}},
                                       .wanted = options.properties,
                                       .fixed = {brokers_property(options.brokers),
                                                 {"allow.auto.create.topics", "false"}},
                                       .security = options.security}));
  note_errors(*conf);
  return make_handle(RD_KAFKA_CONSUMER, std::move(conf));
}

}  // namespace

Result<bool> KafkaDeadLetters::has_topic(const KafkaDeadLetterOptions& options) {
  BATON_TRY(const KafkaHandle handle, make_asker(options));
  const auto partitions = find_topic(
      *handle, {.brokers = options.brokers, .topic = options.topic, .security = options.security},
      kAnswerTime);
  if (partitions.has_value()) return true;
  if (partitions.error().code == Errc::not_found) return false;
  return partitions.error();
}

Result<std::unique_ptr<KafkaDeadLetters>> KafkaDeadLetters::open(KafkaDeadLetterOptions options) {
  BATON_TRY(const bool is_there, has_topic(options));
  if (!is_there) {
    BATON_TRY(const KafkaHandle handle, make_asker(options));
    BATON_TRY_STATUS(create_topic(*handle, options.topic, kAnswerTime));
  }
  std::unique_ptr<KafkaDeadLetters> target(new KafkaDeadLetters(std::move(options)));
  BATON_TRY(const auto opened, target->producer());
  return target;
}

Result<std::shared_ptr<KafkaProducer>> KafkaDeadLetters::producer() {
  const std::scoped_lock lock(mutex_);
  if (producer_ != nullptr && !producer_->is_broken()) return producer_;
  // Each record has its delivery report before the wait for it ends.
  BATON_TRY(producer_, KafkaProducer::open({.brokers = options_.brokers,
                                            .topic = options_.topic,
                                            .properties = options_.properties,
                                            .security = options_.security,
                                            .delivery_timeout = options_.patience * 4 / 5}));
  return producer_;
}

Status KafkaDeadLetters::write(std::span<const DeadLetter> letters) {
  BATON_TRY(const std::shared_ptr<KafkaProducer> producer, this->producer());
  std::vector<Headers> headers;
  headers.reserve(letters.size());
  std::vector<KafkaOutgoing> records;
  records.reserve(letters.size());
  for (const DeadLetter& letter : letters) {
    headers.push_back(headers_of(letter));
    records.push_back(
        {.key = letter.record->key, .value = letter.record->value, .headers = headers.back()});
  }
  return producer->send_all(records, options_.patience);
}

}  // namespace baton::pipeline
