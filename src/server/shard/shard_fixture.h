#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "server/shard/shard.h"
#include "sim/fake_disk.h"
#include "sim/fake_store.h"

namespace baton {

/// For tests: a call that keeps its command after completion. `Kind` is what a machine takes, for
/// example QueueCommand.
template <class Kind>
class DoneCall final : public Call {
 public:
  DoneCall(Kind wanted, std::vector<Kind>& done) : Call(std::move(wanted)), done_(done) {}
  void complete() override { done_.push_back(std::get<Kind>(std::move(command))); }

 private:
  std::vector<Kind>& done_;
};

/// For tests: a shard on a fake disk and store, with rounds and a clock that the test drives.
class ShardOnFakes : public testing::Test {
 protected:
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

  FakeDisk disk_{1};
  std::shared_ptr<FakeStoreMedia> media_ = std::make_shared<FakeStoreMedia>(2);
  Shard::Options options_;
  std::unique_ptr<ShardLog> log_;
  std::unique_ptr<FakeStore> store_;
  std::unique_ptr<Shard> shard_;
  std::deque<std::unique_ptr<Call>> calls_;
  Instant now_{1'700'000'000'000'000'000};
};

}  // namespace baton
