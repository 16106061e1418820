#include "pipeline/baton/kind.h"

#include <chrono>
#include <utility>

#include <baton/broker.h>

#include "pipeline/baton/dead_letter_queue.h"
#include "pipeline/baton/outputs.h"
#include "pipeline/baton/queue_dead_letters.h"
#include "pipeline/baton/queue_source.h"
#include "pipeline/baton/stream_source.h"
#include "sdk/base/channel.h"

namespace baton::pipeline {
namespace {

constexpr std::chrono::seconds kBrokerDeadline{5};

client::ConnectionOptions hasty_connection_to(const Endpoint& endpoint) {
  client::ConnectionOptions connection = connection_to(endpoint);
  connection.deadline = kBrokerDeadline;
  return connection;
}

Result<std::unique_ptr<Source>> make_stream_source(const PipelineConfig& config) {
  StreamSourceOptions options;
  options.connection = hasty_connection_to(config.source.endpoint);
  options.stream = config.source.endpoint.name;
  options.group = config.source.group;
  if (config.source.from == "next") options.from = client::StartFrom::next();
  return std::make_unique<StreamSource>(std::move(options));
}

Result<std::unique_ptr<Source>> make_queue_source(const PipelineConfig& config) {
  QueueSourceOptions options;
  options.connection = hasty_connection_to(config.source.endpoint);
  options.queue = config.source.endpoint.name;
  options.log = config.engine.log;
  return std::make_unique<QueueSource>(std::move(options));
}

Result<std::optional<Finding>> find_missing_queue(const PipelineConfig& config) {
  const Endpoint& to = config.dead_letters.endpoint;
  auto client = client::Broker::open(hasty_connection_to(to));
  if (!client.has_value()) return client.error();
  const auto queue = client->queue(to.name).describe();
  if (queue.has_value()) return std::nullopt;
  if (queue.error().code == Errc::queue_not_found) return missing(false, "queue", to.name);
  return client::explain(connection_to(to), queue.error());
}

Result<std::unique_ptr<DeadLetterTarget>> open_letters(const PipelineConfig& config) {
  const Endpoint& to = config.dead_letters.endpoint;
  BATON_TRY(std::unique_ptr<DeadLetterTarget> target,
            QueueDeadLetters::open({.connection = hasty_connection_to(to), .queue = to.name}));
  return target;
}

Result<std::unique_ptr<DeadLetterStore>> open_letter_store(
    const Endpoint& endpoint, const DeadLetterStoreOptions& /*options*/) {
  BATON_TRY(std::unique_ptr<DeadLetterStore> store, DeadLetterQueue::open(endpoint));
  return store;
}

}  // namespace

const SourceKind kStreamSource{.make = make_stream_source, .open_output = open_stream_output};
const SourceKind kQueueSource{
    .has_offsets = false, .make = make_queue_source, .open_output = open_queue_output};
const DeadLetterKind kQueueLetters{
    .find_missing = find_missing_queue, .open = open_letters, .open_store = open_letter_store};

}  // namespace baton::pipeline
