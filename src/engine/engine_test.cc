#include "engine/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace baton::pipeline {
namespace {

using flow::ErrorClass;
using flow::SinkError;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// Delivers numbered records from a thread of its own; remembers what was committed.
class TestSource : public Source {
 public:
  TestSource(std::uint32_t partitions, std::int64_t records)
      : partitions_(partitions), records_(records) {}

  Status start(SourceListener& listener) override {
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
  Status stop(milliseconds /*timeout*/) override {
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
  Result<std::vector<std::string>> check() override { return std::vector<std::string>(); }
  [[nodiscard]] std::vector<PartitionLag> ends() const override { return {{0, records_}}; }
  [[nodiscard]] std::string name() const override { return "test"; }

  std::int64_t committed(std::uint32_t partition) {
    const std::scoped_lock lock(mutex_);
    return committed_[partition];
  }
  std::function<std::string(std::int64_t)> value = [](std::int64_t) { return "good"; };
  std::atomic<int> pauses{0};

 private:
  void deliver(std::uint32_t partition, const std::stop_token& stop) {
    for (std::int64_t offset = 0; offset < records_ && !stop.stop_requested(); offset += 10) {
      std::vector<Record> records;
      for (std::int64_t i = offset; i < std::min(offset + 10, records_); ++i) {
        Record record;
        record.partition = partition;
        record.offset = i;
        record.key = "key" + std::to_string(i % 7);
        record.value = value(i);
        records.push_back(std::move(record));
      }
      if (!listener_->deliver(partition, std::move(records))) return;
    }
  }

  std::uint32_t partitions_;
  std::int64_t records_;
  SourceListener* listener_ = nullptr;
  std::uint64_t epoch_ = 0;
  std::mutex mutex_;
  std::map<std::uint32_t, std::int64_t> committed_;
  std::vector<std::jthread> threads_;
};

struct Nothing : Prepared {};

/// A table in memory. What a record's value says happens to it.
class TestSink : public Sink {
 public:
  using Id = std::pair<std::uint32_t, std::int64_t>;

  class Decoder : public Preparer {
    std::expected<std::unique_ptr<Prepared>, Rejection> prepare(const Record& record) override {
      if (record.value == "broken") return std::unexpected(Rejection{"decode", "json", "broken"});
      return std::make_unique<Nothing>();
    }
  };
  class Writer : public LaneWriter {
   public:
    explicit Writer(TestSink& sink) : sink_(sink) {}
    std::optional<SinkError> write(std::span<Item> items) override { return sink_.write(items); }

   private:
    TestSink& sink_;
  };

  Result<std::vector<std::string>> check(bool /*apply*/) override {
    return std::vector<std::string>();
  }
  std::unique_ptr<Preparer> preparer() override { return std::make_unique<Decoder>(); }
  std::unique_ptr<LaneWriter> writer(std::uint32_t /*lane*/) override {
    return std::make_unique<Writer>(*this);
  }
  std::optional<SinkError> probe() override {
    const std::scoped_lock lock(mutex_);
    ++probes;
    return probe_fails && error_.has_value() ? error_ : std::nullopt;
  }
  [[nodiscard]] std::string name() const override { return "test"; }

  void set_error(std::optional<SinkError> error) {
    const std::scoped_lock lock(mutex_);
    error_ = std::move(error);
  }
  std::set<Id> rows() {
    const std::scoped_lock lock(mutex_);
    return rows_;
  }
  std::atomic<int> probes{0};
  std::atomic<bool> probe_fails{true};
  std::atomic<std::size_t> halve_above{1'000'000};
  std::atomic<bool> out_of_order{false};

 private:
  std::optional<SinkError> write(std::span<Item> items) {
    const std::scoped_lock lock(mutex_);
    if (error_.has_value()) return error_;
    if (items.size() > halve_above) {
      return SinkError{
          .error_class = ErrorClass::retry, .code = "57014", .text = "slow", .halve_batch = true};
    }
    for (const Item& item : items) {
      if (item.record.value == "poison") return SinkError{ErrorClass::poison, "22001", "too long"};
      if (item.record.value == "odd") return SinkError{ErrorClass::unknown, "XX000", "odd"};
    }
    for (Item& item : items) {
      const Record& record = item.record;
      std::int64_t& last = last_[{record.partition, record.key}];
      if (record.offset < last) out_of_order = true;
      last = record.offset;
      item.fate = record.value == "twice" ? Fate::duplicate : Fate::applied;
      if (item.fate == Fate::applied) rows_.insert({record.partition, record.offset});
    }
    return std::nullopt;
  }

  std::mutex mutex_;
  std::optional<SinkError> error_;
  std::set<Id> rows_;
  std::map<std::pair<std::uint32_t, std::string>, std::int64_t> last_;
};

class TestLetters : public DeadLetterTarget {
 public:
  Status write(std::span<const DeadLetter> letters) override {
    if (down) return Error{Errc::unavailable, "down"};
    const std::scoped_lock lock(mutex_);
    for (const DeadLetter& letter : letters) ids.insert(letter.id());
    return {};
  }
  [[nodiscard]] std::string name() const override { return "test"; }
  std::size_t size() {
    const std::scoped_lock lock(mutex_);
    return ids.size();
  }
  std::atomic<bool> down{false};
  std::set<std::string> ids;

 private:
  std::mutex mutex_;
};

class EngineTest : public ::testing::Test {
 protected:
  static EngineOptions quick() {
    EngineOptions options;
    options.window_records = 200;
    options.commit_interval = milliseconds(5);
    options.drain = seconds(10);
    options.lane.linger = milliseconds(1);
    options.lane.retries = 2;
    options.lane.backoff = {.first = milliseconds(1), .most = milliseconds(2)};
    options.lane.pipeline = "p";
    options.lane.source = "s";
    options.breaker.probe = {.first = milliseconds(1), .most = milliseconds(5)};
    options.breaker.slow_start = milliseconds(1);
    return options;
  }

  void start(EngineOptions options) {
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
      std::this_thread::sleep_for(milliseconds(5));
    }
    return false;
  }
  std::uint64_t ended() {
    const Counters& counters = engine_->counters();
    return counters.applied + counters.duplicates + counters.dead_letters;
  }

  std::unique_ptr<TestSource> source_ = std::make_unique<TestSource>(3, 1000);
  TestSink sink_;
  TestLetters letters_;
  std::unique_ptr<Engine> engine_;
  Result<Ending> ending_{Ending::undrained};
  std::jthread thread_;
};

TEST_F(EngineTest, EveryRecordEndsOnceAndIsCommitted) {
  source_->value = [](std::int64_t i) {
    return i % 50 == 3 ? "broken" : i % 50 == 7 ? "poison" : i % 50 == 9 ? "twice" : "good";
  };
  start(quick());
  EXPECT_TRUE(eventually([&] { return ended() == 3000; }));
  EXPECT_EQ(stop(), Ending::drained);
  EXPECT_EQ(sink_.rows().size(), 3000U - 180U);
  EXPECT_EQ(letters_.size(), 120U);
  EXPECT_EQ(engine_->counters().duplicates, 60U);
  for (std::uint32_t p = 0; p < 3; ++p) EXPECT_EQ(source_->committed(p), 1000);
  EXPECT_FALSE(sink_.out_of_order);
}

TEST_F(EngineTest, AnOutageLosesNothingAndFillsNoDeadLetters) {
  start(quick());
  EXPECT_TRUE(eventually([&] { return ended() > 300; }));
  sink_.set_error(SinkError{ErrorClass::outage, "", "connection refused"});
  EXPECT_TRUE(eventually([&] { return !engine_->status().gate.why.empty(); }));
  EXPECT_TRUE(eventually([&] { return source_->pauses > 0 && sink_.probes > 3; }));
  EXPECT_LE(engine_->status().window_records, 200U);
  EXPECT_EQ(letters_.size(), 0U);
  sink_.set_error(std::nullopt);
  EXPECT_TRUE(eventually([&] { return ended() == 3000; }));
  EXPECT_EQ(stop(), Ending::drained);
  EXPECT_EQ(sink_.rows().size(), 3000U);
  EXPECT_EQ(letters_.size(), 0U);
  EXPECT_FALSE(sink_.out_of_order);
}

TEST_F(EngineTest, AProbeThatLiesClosesNothing) {
  sink_.probe_fails = false;  // A read-only database answers SELECT 1.
  sink_.set_error(SinkError{ErrorClass::outage, "25006", "read-only"});
  start(quick());
  EXPECT_TRUE(eventually([&] { return sink_.probes > 10; }));
  EXPECT_EQ(ended(), 0U);
  EXPECT_EQ(letters_.size(), 0U);
  sink_.set_error(std::nullopt);
  EXPECT_TRUE(eventually([&] { return ended() == 3000; }));
  EXPECT_EQ(stop(), Ending::drained);
}

TEST_F(EngineTest, AnUnknownErrorOfOneRecordIsPoisonInTheEnd) {
  source_->value = [](std::int64_t i) { return i == 500 ? "odd" : "good"; };
  start(quick());
  EXPECT_TRUE(eventually([&] { return ended() == 3000; }));
  EXPECT_EQ(stop(), Ending::drained);
  EXPECT_EQ(letters_.ids, (std::set<std::string>{"p/s/0/500", "p/s/1/500", "p/s/2/500"}));
}

TEST_F(EngineTest, AStormHaltsBeforeItFlushesEverything) {
  source_->value = [](std::int64_t) { return "broken"; };
  start(quick());
  EXPECT_TRUE(
      eventually([&] { return engine_->status().gate.state == flow::Breaker::State::halted; }));
  EXPECT_LE(letters_.size(), 100U);
  engine_->reload(quick());
  EXPECT_TRUE(eventually([&] { return letters_.size() > 100; }));
  EXPECT_EQ(stop(), Ending::undrained);
}

TEST_F(EngineTest, AConfigErrorWaitsForAReload) {
  sink_.set_error(SinkError{ErrorClass::config, "42P01", "no such table"});
  start(quick());
  EXPECT_TRUE(
      eventually([&] { return engine_->status().gate.state == flow::Breaker::State::halted; }));
  EXPECT_EQ(letters_.size(), 0U);
  sink_.set_error(std::nullopt);
  engine_->reload(quick());
  EXPECT_TRUE(eventually([&] { return ended() == 3000; }));
  EXPECT_EQ(stop(), Ending::drained);
}

TEST_F(EngineTest, DeadLettersThatCannotBeWrittenAreWaitedFor) {
  source_->value = [](std::int64_t i) { return i == 100 ? "broken" : "good"; };
  letters_.down = true;
  start(quick());
  EXPECT_TRUE(eventually([&] { return ended() > 200; }));
  std::this_thread::sleep_for(milliseconds(50));
  for (std::uint32_t p = 0; p < 3; ++p) EXPECT_LE(source_->committed(p), 100);
  letters_.down = false;
  EXPECT_TRUE(eventually([&] { return ended() == 3000; }));
  EXPECT_EQ(stop(), Ending::drained);
  EXPECT_EQ(letters_.size(), 3U);
}

TEST_F(EngineTest, AnOutageThatIsTooLongEndsInAnOrderlyWay) {
  sink_.set_error(SinkError{ErrorClass::outage, "", "gone"});
  EngineOptions options = quick();
  options.breaker.max_outage = milliseconds(50);
  start(options);
  thread_.join();
  EXPECT_EQ(ending_.value(), Ending::outage);
  EXPECT_EQ(letters_.size(), 0U);
  for (std::uint32_t p = 0; p < 3; ++p) EXPECT_EQ(source_->committed(p), 0);
}

TEST_F(EngineTest, ARevokedPartitionStopsWaitingAtOnce) {
  sink_.set_error(SinkError{ErrorClass::outage, "", "gone"});
  start(quick());
  EXPECT_TRUE(eventually([&] { return engine_->status().window_records == 200; }));
  const auto before = std::chrono::steady_clock::now();
  engine_->revoking(1);
  EXPECT_EQ(engine_->revoked(1, false), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - before, seconds(1));
  // It comes back: the same records again, under a new assignment.
  engine_->assigned(1, 99, 0);
  sink_.set_error(std::nullopt);
  EXPECT_TRUE(eventually(
      [&] { return sink_.rows().contains({0, 999}) && sink_.rows().contains({2, 999}); }));
  stop();
}

// The one batch that may go when the sink is back is too large: nobody may wait for it for ever.
TEST_F(EngineTest, ATrialThatMustBeHalvedIsNoEnd) {
  sink_.set_error(SinkError{ErrorClass::outage, "", "gone"});
  start(quick());
  EXPECT_TRUE(eventually([&] { return engine_->status().window_records == 200; }));
  sink_.halve_above = 2;
  sink_.set_error(std::nullopt);
  EXPECT_TRUE(eventually([&] { return ended() == 3000; }));
  EXPECT_EQ(stop(), Ending::drained);
  EXPECT_FALSE(sink_.out_of_order);
}

TEST_F(EngineTest, AfterAStormTheGoodOnesGoOn) {
  source_->value = [](std::int64_t i) { return i < 150 ? "broken" : "good"; };
  start(quick());
  for (int reloads = 0; reloads < 8 && ended() < 3000; ++reloads) {
    EXPECT_TRUE(eventually([&] {
      return engine_->status().gate.state == flow::Breaker::State::halted || ended() == 3000;
    }));
    engine_->reload(quick());
  }
  EXPECT_TRUE(eventually([&] { return ended() == 3000; }));
  EXPECT_EQ(stop(), Ending::drained);
  EXPECT_EQ(letters_.size(), 450U);
}

// A few percent of poison in large batches is no storm, however it is spread over lanes.
TEST_F(EngineTest, PoisonAmongGoodOnesIsNoStorm) {
  source_->value = [](std::int64_t i) { return i % 20 == 3 ? "broken" : "good"; };
  EngineOptions options = quick();
  options.window_records = 10'000;
  options.lane.batch_records = 10'000;
  options.lane.linger = milliseconds(200);
  options.storm.in_a_row = 20;
  start(options);
  EXPECT_TRUE(eventually([&] { return ended() == 3000; }));
  EXPECT_EQ(stop(), Ending::drained);
}

// Its letters cannot be written, and it goes: the others' records in the same batch stay ours.
TEST_F(EngineTest, APartitionThatGoesTakesNobodyAlong) {
  source_->value = [](std::int64_t i) { return i == 5 ? "broken" : "good"; };
  letters_.down = true;
  EngineOptions options = quick();
  options.lanes = 1;
  options.workers = 1;
  start(options);
  EXPECT_TRUE(
      eventually([&] { return engine_->status().gate.state == flow::Breaker::State::open; }));
  engine_->revoking(0);
  (void)engine_->revoked(0, false);
  letters_.down = false;
  EXPECT_TRUE(eventually([&] {
    return sink_.rows().contains({1, 999}) && sink_.rows().contains({2, 999}) &&
           engine_->status().gate.state == flow::Breaker::State::closed;
  }));
  EXPECT_TRUE(
      eventually([&] { return source_->committed(1) == 1000 && source_->committed(2) == 1000; }));
  stop();
}

// The only one that waited for the dead letters has gone: nothing is out any more.
TEST_F(EngineTest, LettersNobodyWaitsForAreNoOutage) {
  source_ = std::make_unique<TestSource>(1, 100);
  source_->value = [](std::int64_t i) { return i == 5 ? "broken" : "good"; };
  letters_.down = true;
  start(quick());
  EXPECT_TRUE(
      eventually([&] { return engine_->status().gate.state == flow::Breaker::State::open; }));
  engine_->revoking(0);
  (void)engine_->revoked(0, false);
  EXPECT_TRUE(
      eventually([&] { return engine_->status().gate.state == flow::Breaker::State::closed; }));
  stop();
}

}  // namespace
}  // namespace baton::pipeline
