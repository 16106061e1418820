#include "pipeline/app/dead_letter_stores.h"

#include "pipeline/app/dead_letter_queue.h"
#include "pipeline/kafka/kafka_letter_store.h"
#include "pipeline/sinks/file_letter_store.h"

namespace baton::pipeline {

std::vector<std::pair<std::string, std::string>> letter_properties(
    const Endpoint& letters, const Endpoint& source,
    const std::vector<std::pair<std::string, std::string>>& of_source) {
  if (letters.address != source.address) return {};
  return of_source;
}

Result<std::unique_ptr<DeadLetterStore>> open_dead_letter_store(
    const Endpoint& endpoint, const DeadLetterStoreOptions& options) {
  if (endpoint.kind == "file") {
    BATON_TRY(std::unique_ptr<DeadLetterStore> store, FileLetterStore::open(endpoint.name));
    return store;
  }
  if (endpoint.kind == "kafka") {
    BATON_TRY(std::unique_ptr<DeadLetterStore> store,
              KafkaLetterStore::open({.brokers = endpoint.address,
                                      .topic = endpoint.name,
                                      .group = "baton-redrive-" + options.pipeline,
                                      .properties = options.properties,
                                      .security = endpoint.security}));
    return store;
  }
  BATON_TRY(std::unique_ptr<DeadLetterStore> store, DeadLetterQueue::open(endpoint));
  return store;
}

}  // namespace baton::pipeline
