#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "server/shard/kv_shard.h"
#include "server/shard/shard.h"
#include "sim/fake_disk.h"
#include "sim/fake_store.h"

/// For tests: a shard that only has buckets.
namespace baton::kv_shard_test {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Verdict = KvOutcome::Verdict;

constexpr KvWatchId kOne{1};
constexpr KvWatchId kTwo{2};

/// Keeps its command after completion.
class DoneCall final : public Call {
 public:
  DoneCall(KvCommand wanted, std::vector<KvCommand>& done) : Call(std::move(wanted)), done_(done) {}
  void complete() override { done_.push_back(std::get<KvCommand>(std::move(command))); }

 private:
  std::vector<KvCommand>& done_;
};

/// What a watch received: "a=@1 b-@2 c~@3 lost d".
class Sink final : public KvWatchSink {
 public:
  void told(const KvWatchEffect& effect) override {
    for (const KvChange& change : effect.changes) {
      const char mark = change.kind == KvChange::Kind::put       ? '='
                        : change.kind == KvChange::Kind::removed ? '-'
                                                                 : '~';
      text += fmt::format("{}{}@{} ", change.entry->key, mark, change.entry->revision.value);
    }
    for (const KvSessionLost& lost : effect.sessions_lost)
      text += fmt::format("lost {} ", lost.key);
    complete_to = effect.complete_to;
    end = effect.end;
  }
  std::string text;
  Revision complete_to;
  std::optional<KvWatchEnd> end;
};

/// The buckets of a shard on a fake disk, with rounds and a clock that the test drives.
class KvShardTest : public testing::Test {
 protected:
  void SetUp() override {
    start();
    create("b");
  }

  void start() {
    shard_.reset();
    log_.reset();
    auto log = open_local_log(disk_, "journal", "streams",
                              {.segment_bytes = std::uint64_t{16} << 20U, .spares_max = 4});
    ASSERT_TRUE(log.has_value()) << to_string(log.error());
    log_ = *std::move(log);
    store_ = std::make_unique<FakeStore>(media_);
    auto shard = Shard::recover(options_, {.log = *log_, .store = *store_}, now_);
    ASSERT_TRUE(shard.has_value()) << to_string(shard.error());
    shard_ = *std::move(shard);
    now_ = std::max(now_, shard_->started_at());
    shard_->begin_serving(now_);
  }
  /// The power is cut and comes back.
  void crash() {
    disk_.crash();
    media_->crash();
    start();
  }
  Held decide() { return shard_->round(calls_, {}, now_); }
  void round() {
    Held held = decide();
    ASSERT_TRUE(log_->sync().has_value());
    held.release();
    ASSERT_TRUE(log_->prepare().has_value());
  }
  void checkpoint() {
    shard_->request_checkpoint();
    ASSERT_TRUE(log_->sync().has_value());
    const auto job = shard_->next_checkpoint(log_->next(), now_);
    ASSERT_TRUE(job.has_value());
    ASSERT_TRUE(run_checkpoint_job(*store_, *job).has_value());
    shard_->checkpoint_done(job->position, now_);
    ASSERT_TRUE(log_->trim(job->position).has_value());
  }
  void pass(Duration time) {
    now_ = now_ + time;
    round();
  }
  void submit(KvCommand command) {
    calls_.push_back(std::make_unique<DoneCall>(std::move(command), done_));
  }
  template <class Wanted>
  Wanted execute(Wanted command) {
    submit(KvCommand(std::move(command)));
    round();
    Wanted result = std::get<Wanted>(std::move(done_.back()));
    done_.clear();
    return result;
  }

  void create(const std::string& bucket, const KvSettings& settings = {}) {
    const auto done = execute(CreateBucketCommand{
        .bucket = bucket, .settings = settings, .error = {}, .description = {}});
    ASSERT_FALSE(done.error.has_value()) << to_string(*done.error);
  }
  static KvPutCommand make_put(const std::string& key, const std::string& value,
                               std::optional<Revision> expected = {},
                               std::optional<Duration> ttl = {}) {
    KvPutCommand command;
    command.request = {.bucket = "b", .key = key, .value = value, .expected = expected, .ttl = ttl};
    return command;
  }
  KvOutcome put(const std::string& key, const std::string& value,
                std::optional<Revision> expected = {}, std::optional<Duration> ttl = {}) {
    const auto done = execute(make_put(key, value, expected, ttl));
    EXPECT_FALSE(done.error.has_value()) << to_string(*done.error);
    return done.outcome;
  }
  KvRemoveCommand remove(const std::string& key) {
    KvRemoveCommand command;
    command.request = {.bucket = "b", .key = key, .expected = {}};
    return execute(std::move(command));
  }
  /// "value@revision"; "-" if the key does not exist.
  std::string get(const std::string& key) {
    const auto done =
        execute(KvGetCommand{.bucket = "b", .key = key, .error = {}, .entry = nullptr});
    EXPECT_FALSE(done.error.has_value()) << to_string(*done.error);
    if (done.entry == nullptr) return "-";
    return fmt::format("{}@{}", done.entry->value, done.entry->revision.value);
  }
  KvBucketDescription describe() {
    return execute(DescribeBucketCommand{.bucket = "b", .error = {}, .description = {}})
        .description;
  }
  static KvWatchCommand make_watch(KvWatchId id, const std::shared_ptr<Sink>& sink,
                                   std::optional<Revision> after = {},
                                   const std::string& session = {}) {
    KvWatchCommand command;
    command.request = {.watch = id,
                       .bucket = "b",
                       .filter = {},
                       .after = after,
                       .credit = 100,
                       .session = session};
    command.sink = sink;
    return command;
  }
  KvUnwatchCommand unwatch(KvWatchId id, bool broken) {
    return execute(KvUnwatchCommand{.bucket = "b", .watch = id, .broken = broken});
  }

  FakeDisk disk_{1};
  std::shared_ptr<FakeStoreMedia> media_ = std::make_shared<FakeStoreMedia>(2);
  Shard::Options options_;
  std::unique_ptr<ShardLog> log_;
  std::unique_ptr<FakeStore> store_;
  std::unique_ptr<Shard> shard_;
  std::deque<std::unique_ptr<Call>> calls_;
  std::vector<KvCommand> done_;
  Instant now_{1'700'000'000'000'000'000};
};

}  // namespace baton::kv_shard_test
