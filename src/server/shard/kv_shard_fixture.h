#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "server/shard/kv_shard.h"
#include "server/shard/shard_fixture.h"

/// For tests: a shard that only has buckets.
namespace baton::kv_shard_test {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Verdict = KvOutcome::Verdict;

constexpr KvWatchId kOne{1};
constexpr KvWatchId kTwo{2};

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
class KvShardTest : public ShardOnFakes {
 protected:
  void SetUp() override {
    start();
    create("b");
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
    calls_.push_back(std::make_unique<DoneCall<KvCommand>>(std::move(command), done_));
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

  std::vector<KvCommand> done_;
};

}  // namespace baton::kv_shard_test
