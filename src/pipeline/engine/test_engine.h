#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "pipeline/engine/engine.h"
#include "pipeline/engine/test_sink.h"

/// For tests: an engine with ends in memory.
namespace baton::pipeline {

/// Delivers numbered records from its own thread, and remembers what was committed.
class TestSource : public Source {
 public:
  TestSource(std::uint32_t partitions, std::int64_t records)
      : partitions_(partitions), records_(records) {}

  Status start(SourceListener& listener) override {
    if (failing_starts > 0) {
      --failing_starts;
      return Error{start_code, "no broker answers"};
    }
    listener_ = &listener;
    for (std::uint32_t p = 0; p < partitions_; ++p) {
      listener.assigned(p, ++epoch_, 0);
      threads_.emplace_back([this, p](const std::stop_token& stop) { deliver(p, stop); });
    }
    return {};
  }
  Status commit(std::uint32_t partition, std::uint64_t /*epoch*/, std::int64_t next) override {
    const std::scoped_lock lock(mutex_);
    EXPECT_GE(next, committed_[partition]);
    committed_[partition] = next;
    return {};
  }
  void pause() override { ++pauses; }
  Status stop(std::chrono::milliseconds /*timeout*/) override {
    for (auto& thread : threads_) thread.request_stop();
    for (std::uint32_t p = 0; p < partitions_; ++p) listener_->revoking(p);
    threads_.clear();
    for (std::uint32_t p = 0; p < partitions_; ++p) {
      if (const auto mark = listener_->revoked(p, false)) {
        EXPECT_TRUE(commit(p, 0, *mark).has_value());
      }
    }
    return {};
  }
  Result<Findings> check() override { return Findings(); }
  [[nodiscard]] std::vector<PartitionLag> ends() const override { return {{0, records_}}; }
  [[nodiscard]] std::string name() const override { return "test"; }
  [[nodiscard]] std::optional<std::string> trouble() const override {
    return away ? std::optional<std::string>("no broker answers") : std::nullopt;
  }
  std::optional<std::int64_t> oldest(std::uint32_t /*partition*/) override { return first; }
  SourceListener& listener() { return *listener_; }

  std::int64_t committed(std::uint32_t partition) {
    const std::scoped_lock lock(mutex_);
    return committed_[partition];
  }
  std::function<std::string(std::int64_t)> value = [](std::int64_t) { return "good"; };
  std::atomic<int> pauses{0};
  std::atomic<int> failing_starts{0};
  std::atomic<Errc> start_code{Errc::unavailable};
  std::atomic<bool> away{false};
  std::atomic<std::int64_t> first{0};  // The oldest record that still exists.
  std::atomic<int> over{0};            // Partitions without further records.
  // The number of records of partition 0, if it has fewer.
  std::optional<std::int64_t> records_of_first{};

 private:
  void deliver(std::uint32_t partition, const std::stop_token& stop) {
    const std::int64_t end = partition == 0 ? records_of_first.value_or(records_) : records_;
    for (std::int64_t offset = 0; offset < end && !stop.stop_requested(); offset += 10) {
      std::vector<Record> records;
      for (std::int64_t i = offset; i < std::min(offset + 10, end); ++i) {
        Record record;
        record.partition = partition;
        record.offset = i;
        record.key = "key" + std::to_string(i % 7);
        record.value = value(i);
        record.tombstone = record.value.empty();
        records.push_back(std::move(record));
      }
      if (!listener_->deliver(partition, std::move(records))) break;
    }
    ++over;
  }

  std::uint32_t partitions_;
  std::int64_t records_;
  SourceListener* listener_ = nullptr;
  std::uint64_t epoch_ = 0;
  std::mutex mutex_;
  std::map<std::uint32_t, std::int64_t> committed_;
  std::vector<std::jthread> threads_;
};

class EngineTest : public ::testing::Test {
 protected:
  static EngineOptions quick() {
    EngineOptions options;
    options.window_records = 200;
    options.commit_interval = std::chrono::milliseconds(5);
    options.drain = std::chrono::seconds(10);
    options.lane.linger = std::chrono::milliseconds(1);
    options.lane.retries = 2;
    options.lane.backoff = {.first = std::chrono::milliseconds(1),
                            .most = std::chrono::milliseconds(2)};
    options.lane.pipeline = "p";
    options.lane.source = "s";
    options.breaker.probe = {.first = std::chrono::milliseconds(1),
                             .most = std::chrono::milliseconds(5)};
    options.breaker.slow_start = std::chrono::milliseconds(1);
    return options;
  }

  void start(EngineOptions options) {
    if (!options.log) {
      options.log = [this](bool /*warning*/, const std::string& line) {
        const std::scoped_lock lock(log_mutex_);
        log_.push_back(line);
      };
    }
    engine_ = std::make_unique<Engine>(std::move(options), *source_, sink_, letters_);
    thread_ = std::jthread([this](const std::stop_token& stop) { ending_ = engine_->run(stop); });
  }
  Ending stop() {
    thread_.request_stop();
    thread_.join();
    return ending_.value();
  }
  template <class Condition>
  static bool eventually(Condition condition) {
    for (int i = 0; i < 2000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  std::ptrdiff_t count_in_log(const std::string& part) {
    const std::scoped_lock lock(log_mutex_);
    return std::ranges::count_if(
        log_, [&](const std::string& line) { return line.find(part) != std::string::npos; });
  }
  std::uint64_t ended() {
    const Counters& counters = engine_->counters();
    return counters.applied + counters.duplicates + counters.dead_letters;
  }

  std::mutex log_mutex_;
  std::vector<std::string> log_;
  std::unique_ptr<TestSource> source_ = std::make_unique<TestSource>(3, 1000);
  MemorySink sink_;
  MemoryLetters letters_;
  std::unique_ptr<Engine> engine_;
  Result<Ending> ending_{Ending::undrained};
  std::jthread thread_;
};

}  // namespace baton::pipeline
