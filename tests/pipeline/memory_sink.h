#pragma once

#include <atomic>
#include <chrono>
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

#include <gtest/gtest.h>

#include "e2e/process.h"
#include "engine/engine.h"

/// The far end of a pipeline for tests of its sources: a table in memory, and dead letters there.
namespace baton::pipeline {

class SinkInMemory : public Sink {
 public:
  using Id = std::pair<std::uint32_t, std::int64_t>;

  Result<std::vector<std::string>> check(bool /*apply*/) override {
    return std::vector<std::string>();
  }
  std::unique_ptr<Preparer> preparer() override { return std::make_unique<Decoder>(); }
  std::unique_ptr<LaneWriter> writer(std::uint32_t /*lane*/) override {
    return std::make_unique<Writer>(*this);
  }
  std::optional<flow::SinkError> probe() override { return down ? outage() : std::nullopt; }
  [[nodiscard]] std::string name() const override { return "memory"; }

  std::atomic<bool> down{false};
  std::atomic<std::chrono::milliseconds> slowness{};  // Of each batch.
  std::atomic<std::uint64_t> replays{0};              // Written again, and found to be in.
  std::atomic<std::uint64_t> out_of_order{0};         // By partition and key; replays are not.

  std::size_t size() {
    const std::scoped_lock lock(mutex_);
    return rows_.size();
  }
  std::map<Id, Record> rows() {
    const std::scoped_lock lock(mutex_);
    return rows_;
  }
  std::set<std::string> values() {
    std::set<std::string> result;
    for (const auto& [id, record] : rows()) result.insert(record.value);
    return result;
  }

 private:
  struct Nothing : Prepared {};
  class Decoder : public Preparer {
    std::expected<std::unique_ptr<Prepared>, Rejection> prepare(const Record& record) override {
      if (record.value == "broken") return std::unexpected(Rejection{"decode", "json", "broken"});
      return std::make_unique<Nothing>();
    }
  };
  class Writer : public LaneWriter {
   public:
    explicit Writer(SinkInMemory& sink) : sink_(sink) {}
    std::optional<flow::SinkError> write(std::span<Item> items) override {
      return sink_.write(items);
    }

   private:
    SinkInMemory& sink_;
  };

  static std::optional<flow::SinkError> outage() {
    return flow::SinkError{flow::ErrorClass::outage, "", "connection refused"};
  }
  std::optional<flow::SinkError> write(std::span<Item> items) {
    std::this_thread::sleep_for(slowness.load());
    if (down) return outage();
    const std::scoped_lock lock(mutex_);
    for (Item& item : items) {
      const Record& record = item.record;
      item.fate = Fate::applied;
      if (!rows_.try_emplace({record.partition, record.offset}, record).second) {
        ++replays;
        continue;
      }
      std::int64_t& last = last_[{record.partition, record.key}];
      if (record.offset < last) ++out_of_order;
      last = record.offset;
    }
    return std::nullopt;
  }

  std::mutex mutex_;
  std::map<Id, Record> rows_;
  std::map<std::pair<std::uint32_t, std::string>, std::int64_t> last_;
};

class LettersInMemory : public DeadLetterTarget {
 public:
  Status write(std::span<const DeadLetter> letters) override {
    const std::scoped_lock lock(mutex_);
    for (const DeadLetter& letter : letters) ids_.insert(letter.id());
    return {};
  }
  [[nodiscard]] std::string name() const override { return "memory"; }
  std::size_t size() {
    const std::scoped_lock lock(mutex_);
    return ids_.size();
  }

 private:
  std::mutex mutex_;
  std::set<std::string> ids_;
};

/// An engine that runs on a thread of its own, into a sink that may be shared with others.
class EngineRun {
 public:
  /// Impatient enough for a test.
  static EngineOptions quick() {
    EngineOptions options;
    options.commit_interval = std::chrono::milliseconds(50);
    options.drain = std::chrono::seconds(10);
    options.lane.linger = std::chrono::milliseconds(1);
    options.lane.retries = 1;
    options.lane.backoff = {.first = std::chrono::milliseconds(1),
                            .most = std::chrono::milliseconds(5)};
    options.lane.pipeline = "test";
    options.breaker.probe = {.first = std::chrono::milliseconds(20),
                             .most = std::chrono::milliseconds(100)};
    options.breaker.slow_start = std::chrono::milliseconds(1);
    return options;
  }

  EngineRun(Source& source, SinkInMemory& sink, LettersInMemory& letters,
            EngineOptions options = quick())
      : engine_(std::move(options), source, sink, letters),
        thread_([this](const std::stop_token& stop) { ending_ = engine_.run(stop); }) {}
  EngineRun(const EngineRun&) = delete;
  EngineRun& operator=(const EngineRun&) = delete;
  ~EngineRun() { (void)stop(); }

  Result<Ending> stop() {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
    return ending_;
  }
  Engine& engine() { return engine_; }
  [[nodiscard]] const Counters& counters() const { return engine_.counters(); }
  [[nodiscard]] bool is_out() const { return !engine_.status().gate.why.empty(); }

 private:
  Engine engine_;
  Result<Ending> ending_{Ending::undrained};
  std::jthread thread_;
};

}  // namespace baton::pipeline
