#include "kafka/kafka_dead_letters.h"

#include <algorithm>
#include <vector>

namespace baton::pipeline {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

/// The record's own, and ours. Of a record that was a dead letter before, ours are the new ones.
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

}  // namespace

Result<std::unique_ptr<KafkaDeadLetters>> KafkaDeadLetters::open(KafkaDeadLetterOptions options) {
  std::unique_ptr<KafkaDeadLetters> target(new KafkaDeadLetters(std::move(options)));
  BATON_TRY(const auto opened, target->producer());
  return target;
}

Result<std::shared_ptr<KafkaProducer>> KafkaDeadLetters::producer() {
  const std::scoped_lock lock(mutex_);
  if (producer_ != nullptr && !producer_->is_broken()) return producer_;
  // Each record has its report before we stop waiting for it.
  BATON_TRY(producer_, KafkaProducer::open({.brokers = options_.brokers,
                                            .topic = options_.topic,
                                            .properties = options_.properties,
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
