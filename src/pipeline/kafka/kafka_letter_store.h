#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/engine/dead_letter_store.h"
#include "pipeline/kafka/kafka_config.h"
#include "pipeline/kafka/kafka_handles.h"
#include "pipeline/kafka/redriven_offsets.h"

namespace baton::pipeline {

struct KafkaLetterStoreOptions {
  std::string brokers{};
  std::string topic{};
  std::string group{};  // The consumer group whose offsets tell which letters are gone.
  KafkaProperties properties{};
  client::SecurityOptions security{};
};

/// The dead letters that KafkaDeadLetters writes; an id is "PARTITION/OFFSET".
///
/// A topic cannot delete single records, so the letters that were taken are remembered in the
/// offsets of a group: RedrivenOffsets says how, and that a partition with too many separate ranges
/// needs more than one run. The group never commits past a letter that stays.
class KafkaLetterStore : public DeadLetterStore {
 public:
  /// Fails with not_found if the topic does not exist; asking does not create it.
  static Result<std::unique_ptr<KafkaLetterStore>> open(KafkaLetterStoreOptions options);

  Status read(const std::function<bool(FoundLetter)>& see) override;
  Result<StoredLetter> find(const std::string& id) override;
  Result<std::uint64_t> take(LetterTaker& taker) override;

 private:
  /// A partition, and the part of it to examine.
  struct Part {
    std::uint32_t partition = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    RedrivenOffsets redriven{};
  };
  /// Takes a record and its offset; false: stop.
  using See = std::function<Result<bool>(std::int64_t offset, FoundLetter letter)>;

  /// The offset without further records; nullopt if the scan was stopped before it.
  using End = std::optional<std::int64_t>;

  explicit KafkaLetterStore(KafkaLetterStoreOptions options) : options_(std::move(options)) {}
  Status connect();
  Result<std::vector<Part>> parts();
  /// Visits every record of `part` from its begin to its end, until see() returns false.
  Result<End> scan(const Part& part, const See& see);
  Result<End> poll(const Part& part, const See& see);
  Status assign(const Part& part);
  [[nodiscard]] Error reading_failed(const Part& part, rd_kafka_resp_err_t error) const;
  Result<std::uint64_t> take_from(Part& part, LetterTaker& taker);
  Status commit_changes(const Part& part, RedrivenOffsets& committed);
  Status commit(const Part& part);

  const KafkaLetterStoreOptions options_;
  std::uint32_t partitions_ = 0;
  KafkaHandle handle_;
};

}  // namespace baton::pipeline
