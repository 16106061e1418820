#include "pipeline/kafka/kafka_source.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "pipeline/kafka/kafka_config.h"
#include "pipeline/kafka/kafka_lookup.h"

namespace baton::pipeline {
namespace {

constexpr Duration kLookUp = std::chrono::seconds(5);

}  // namespace

std::shared_ptr<KafkaMember> KafkaSource::member() const {
  const std::scoped_lock lock(mutex_);
  return member_;
}

Status KafkaSource::start(SourceListener& listener) {
  BATON_TRY(std::shared_ptr<KafkaMember> joined, KafkaMember::join(options_, listener));
  const std::scoped_lock lock(mutex_);
  member_ = std::move(joined);
  return {};
}

Status KafkaSource::commit(std::uint32_t partition, std::uint64_t epoch, std::int64_t next) {
  const auto joined = member();
  if (joined == nullptr) return Error{Errc::stale_epoch, "not a member of the group yet"};
  return joined->store(partition, epoch, next);
}

void KafkaSource::pause() {
  if (const auto joined = member()) joined->pause(true);
}

void KafkaSource::resume() {
  if (const auto joined = member()) joined->pause(false);
}

Status KafkaSource::stop(std::chrono::milliseconds timeout) {
  const auto joined = member();
  if (joined == nullptr) return {};
  return joined->leave(timeout);
}

std::vector<PartitionLag> KafkaSource::ends() const {
  const auto joined = member();
  return joined == nullptr ? std::vector<PartitionLag>() : joined->ends();
}

std::optional<std::string> KafkaSource::trouble() const {
  const auto joined = member();
  return joined == nullptr ? std::nullopt : joined->trouble();
}

std::optional<std::int64_t> KafkaSource::oldest(std::uint32_t partition) {
  const auto joined = member();
  return joined == nullptr ? std::nullopt : joined->oldest(partition);
}

Result<Findings> KafkaSource::check() {
  BATON_TRY(const KafkaHandle handle, make_onlooker(options_));
  const auto partitions = find_topic(
      *handle,
      {.brokers = options_.brokers, .topic = options_.topic, .security = options_.security},
      kAnswerTime);
  if (!partitions.has_value()) return partitions.error();
  const auto bounds = session_bounds_of(*handle, kLookUp);
  if (bounds.has_value() &&
      (options_.session_timeout < bounds->least || options_.session_timeout > bounds->most)) {
    return session_refused(options_, bounds);
  }
  std::vector<std::uint32_t> all(*partitions);
  std::iota(all.begin(), all.end(), 0);
  BATON_TRY(const KafkaCommitted committed, committed_of(*handle, options_.topic, all, kLookUp));
  const auto fresh =
      std::ranges::count_if(committed, [](const auto& one) { return !one.second.has_value(); });
  Findings said{fact(fmt::format("reads {} with {} partitions, as group {}", name(), *partitions,
                                 options_.group))};
  if (fresh > 0) {
    said.push_back(
        fact(fmt::format("the group has committed nothing for {} of them: they begin at {}", fresh,
                         options_.from == "next" ? "the next record to be produced"
                                                 : "the oldest record there is")));
  }
  return said;
}

}  // namespace baton::pipeline
