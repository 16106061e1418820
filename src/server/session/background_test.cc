#include "server/session/background.h"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace baton {
namespace {

using std::chrono::seconds;

class BackgroundTest : public testing::Test {
 protected:
  /// Whether the future is set within a time limit that is generous on any machine.
  static bool comes(std::future<void>& future) {
    return future.wait_for(seconds{20}) == std::future_status::ready;
  }

  std::atomic<std::int64_t> now_{1'000'000'000};
  Background background_{2, [this] { return Instant{now_.load()}; }};
};

TEST_F(BackgroundTest, DoesTasksAtOnceAndOthersAtTheirTime) {
  std::promise<void> at_once;
  background_.post([&] { at_once.set_value(); });
  std::future<void> done = at_once.get_future();
  EXPECT_TRUE(comes(done));

  std::promise<void> late;
  std::promise<void> early;
  const Instant start{now_.load()};
  background_.post_at(start + seconds{20}, [&] { late.set_value(); });
  background_.post_at(start + seconds{10}, [&] { early.set_value(); });
  std::future<void> late_done = late.get_future();
  std::future<void> early_done = early.get_future();
  now_ = (start + seconds{10}).ns;
  EXPECT_TRUE(comes(early_done));
  EXPECT_EQ(late_done.wait_for(seconds{0}), std::future_status::timeout);
  now_ = (start + seconds{20}).ns;
  EXPECT_TRUE(comes(late_done));
}

// Destroying what a task holds may do anything, for example post.
TEST_F(BackgroundTest, WhatATaskHoldsGoesWithoutTheLock) {
  std::promise<void> posted;
  std::future<void> done = posted.get_future();
  {
    std::shared_ptr<void> last(nullptr,
                               [&](void*) { background_.post([&] { posted.set_value(); }); });
    background_.post([held = std::move(last)] {});
  }
  EXPECT_TRUE(comes(done));
}

TEST_F(BackgroundTest, WhatWasNotBegunIsDroppedAtTheEnd) {
  auto held = std::make_shared<int>(1);
  background_.post_at(Instant{now_.load()} + seconds{10}, [held] {});
  background_.stop();
  EXPECT_EQ(held.use_count(), 1);
  background_.post([held] {});
  background_.post_at(Instant{0}, [held] {});
  EXPECT_EQ(held.use_count(), 1);
  background_.stop();
}

}  // namespace
}  // namespace baton
