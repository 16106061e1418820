#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/engine/engine.h"
#include "pipeline/engine/test_sink.h"
#include "pipeline/kafka/kafka_handles.h"
#include "pipeline/kafka/kafka_lookup.h"
#include "pipeline/kafka/kafka_source.h"

/// For tests on Kafka, mocked or real: a running engine, and a view from outside.
namespace baton::pipeline::kafka_test {

using std::chrono::milliseconds;
using std::chrono::seconds;

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
  [[nodiscard]] std::size_t letters() const { return letters_.size(); }
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

/// What the brokers report, without joining the group.
class KafkaView {
 public:
  KafkaView(const std::string& brokers, const std::string& topic, const std::string& group);

  /// -1 if never committed.
  [[nodiscard]] std::int64_t committed(std::uint32_t partition) const;
  [[nodiscard]] KafkaRange range(std::uint32_t partition) const;
  void commit(std::uint32_t partition, std::int64_t next) const;
  [[nodiscard]] std::uint32_t partitions() const;
  [[nodiscard]] std::int64_t records() const;  // The sum of the ends of all partitions.
  /// Every partition is committed to its end.
  [[nodiscard]] bool all_committed() const;
  /// Reads from the beginning, for a few seconds.
  [[nodiscard]] std::vector<Record> read(std::size_t count) const;

 private:
  std::string topic_;
  KafkaHandle handle_;
};

/// Numbered records, with a key each.
void produce(const std::string& brokers, const std::string& topic, int count,
             std::size_t value_bytes = 20);

}  // namespace baton::pipeline::kafka_test
