#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/engine/source.h"
#include "pipeline/kafka/kafka_member.h"
#include "pipeline/kafka/kafka_source_options.h"

namespace baton::pipeline {

/// A Kafka topic, read as a member of a consumer group. Each assignment of a partition has its own
/// epoch; a commit of an earlier one is refused.
class KafkaSource : public Source {
 public:
  explicit KafkaSource(KafkaSourceOptions options) : options_(std::move(options)) {}

  Status start(SourceListener& listener) override;
  Status commit(std::uint32_t partition, std::uint64_t epoch, std::int64_t next) override;
  void pause() override;
  void resume() override;
  Result<Findings> check() override;
  Status stop(std::chrono::milliseconds timeout) override;
  [[nodiscard]] std::vector<PartitionLag> ends() const override;
  [[nodiscard]] std::optional<std::string> trouble() const override;
  std::optional<std::int64_t> oldest(std::uint32_t partition) override;
  [[nodiscard]] std::string name() const override { return "kafka:" + options_.topic; }

 private:
  [[nodiscard]] std::shared_ptr<KafkaMember> member() const;

  KafkaSourceOptions options_;
  mutable std::mutex mutex_;
  std::shared_ptr<KafkaMember> member_;
};

}  // namespace baton::pipeline
