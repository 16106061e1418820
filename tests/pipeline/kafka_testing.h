#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "kafka/kafka_handles.h"
#include "kafka/kafka_lookup.h"
#include "kafka/kafka_source.h"

/// For tests on Kafka, mocked or real: a sink in memory, an engine that runs, a look from outside.
namespace baton::pipeline::kafka_test {

using flow::SinkError;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// Which record: by partition and offset.
using Id = std::pair<std::uint32_t, std::int64_t>;

/// A table in memory, which can be out, hang, or be slow. Shared by several engines like a
/// database.
class MemorySink : public Sink {
 public:
  MemorySink() = default;
  /// Of the same table, but out or up on its own: a second way to one database.
  explicit MemorySink(MemorySink& other) : rows_(other.rows_) {}

  Result<std::vector<std::string>> check(bool apply) override;
  std::unique_ptr<Preparer> preparer() override;
  std::unique_ptr<LaneWriter> writer(std::uint32_t lane) override;
  std::optional<SinkError> probe() override;
  [[nodiscard]] std::string name() const override { return "memory"; }
  [[nodiscard]] bool is_transactional() const override { return true; }
  std::expected<SinkMarks, SinkError> claim(std::uint32_t partition, std::int64_t next) override;

  void set_out(bool out) { out_ = out; }
  /// Writes neither fail nor end.
  void set_hanging(bool hanging) { hanging_ = hanging; }
  void set_delay(milliseconds delay) { delay_ = delay; }
  /// Claims of partitions from this one on fail.
  void set_claimable(std::uint32_t partitions) { claimable_ = partitions; }
  /// Where claims say that a partition begins.
  void set_begin(std::int64_t begin) { begin_ = begin; }

  [[nodiscard]] std::size_t size() const;
  /// Written more than once.
  [[nodiscard]] std::size_t repeated() const;
  [[nodiscard]] std::set<Id> ids() const;
  /// The first offset from `begin` on that is not in.
  [[nodiscard]] std::int64_t contiguous(std::uint32_t partition, std::int64_t begin = 0) const;
  [[nodiscard]] Record record(const Id& id) const;
  [[nodiscard]] int claims() const { return claims_; }

 private:
  class Writer;
  struct Rows {
    std::mutex mutex;
    std::map<Id, std::pair<Record, int>> by_id;
  };
  std::optional<SinkError> write(std::span<Item> items);

  std::shared_ptr<Rows> rows_ = std::make_shared<Rows>();
  std::atomic<bool> out_{false};
  std::atomic<bool> hanging_{false};
  std::atomic<milliseconds> delay_{milliseconds(0)};
  std::atomic<std::uint32_t> claimable_{1000};
  std::atomic<std::int64_t> begin_{0};
  std::atomic<int> claims_{0};
};

/// Holds its engine to account.
class MemoryLetters : public DeadLetterTarget {
 public:
  Status write(std::span<const DeadLetter> letters) override {
    count_ += letters.size();
    return {};
  }
  [[nodiscard]] std::string name() const override { return "memory"; }
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  std::atomic<std::size_t> count_{0};
};

EngineOptions quick_engine();

/// A pipeline from a topic to a MemorySink, on a thread of its own.
class KafkaRun {
 public:
  KafkaRun(KafkaSourceOptions source, EngineOptions engine, Sink& sink);
  ~KafkaRun();
  KafkaRun(const KafkaRun&) = delete;
  KafkaRun& operator=(const KafkaRun&) = delete;

  Result<Ending> stop();
  /// Waits until it ends by itself.
  Result<Ending> wait();
  [[nodiscard]] bool ended() const { return ended_; }
  Engine& engine() { return *engine_; }
  KafkaSource& source() { return source_; }
  [[nodiscard]] std::size_t letters() const { return letters_.count(); }
  /// By partition.
  std::map<std::uint32_t, std::uint64_t> epochs();
  bool has_partitions(std::size_t count);
  std::vector<std::string> log();
  std::size_t count_in_log(const std::string& part);

 private:
  std::function<void(bool, const std::string&)> logger();

  std::mutex mutex_;
  std::vector<std::string> log_;
  KafkaSource source_;
  MemoryLetters letters_;
  std::unique_ptr<Engine> engine_;
  Result<Ending> ending_{Ending::undrained};
  std::atomic<bool> ended_{false};
  std::jthread thread_;
};

/// What the brokers say, asked by nobody's member.
class KafkaView {
 public:
  KafkaView(const std::string& brokers, const std::string& topic, const std::string& group);

  /// -1: never.
  [[nodiscard]] std::int64_t committed(std::uint32_t partition) const;
  [[nodiscard]] KafkaRange range(std::uint32_t partition) const;
  void commit(std::uint32_t partition, std::int64_t next) const;
  [[nodiscard]] std::uint32_t partitions() const;
  [[nodiscard]] std::int64_t records() const;  // By the ends of all partitions.
  /// Every partition is committed to its end.
  [[nodiscard]] bool all_committed() const;
  /// From the beginning, those that come within a few seconds.
  [[nodiscard]] std::vector<Record> read(std::size_t count) const;

 private:
  std::string topic_;
  KafkaHandle handle_;
};

/// Numbered records, with a key each.
void produce(const std::string& brokers, const std::string& topic, int count,
             std::size_t value_bytes = 20);

}  // namespace baton::pipeline::kafka_test
