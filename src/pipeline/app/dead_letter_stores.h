#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/app/endpoint.h"
#include "pipeline/engine/dead_letter_store.h"

namespace baton::pipeline {

/// librdkafka's properties for a topic of dead letters. A cluster that asks for credentials asks
/// both times: they are the source's, if that is on the same brokers.
std::vector<std::pair<std::string, std::string>> letter_properties(
    const Endpoint& letters, const Endpoint& source,
    const std::vector<std::pair<std::string, std::string>>& of_source);

struct DeadLetterStoreOptions {
  std::string pipeline{};
  std::vector<std::pair<std::string, std::string>> properties{};  // kafka: librdkafka's.
};
/// What the target of dead letters at `endpoint` has written.
Result<std::unique_ptr<DeadLetterStore>> open_dead_letter_store(
    const Endpoint& endpoint, const DeadLetterStoreOptions& options);

}  // namespace baton::pipeline
