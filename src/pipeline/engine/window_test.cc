#include "pipeline/engine/window.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

namespace baton::pipeline {
namespace {

constexpr auto kNever = [] { return false; };

/// Polls until a thread waits for room: from then on no other caller gets any.
bool is_waited_for(Window& window) {
  for (int looks = 0; looks < 10'000'000; ++looks) {
    if (!window.try_take(0)) return true;
    window.give_back(1, 0);
    std::this_thread::yield();
  }
  return false;
}

TEST(Window, IsBoundedByRecordsAndByBytes) {
  Window window(2, 100);
  EXPECT_TRUE(window.try_take(60));
  EXPECT_FALSE(window.try_take(41));
  EXPECT_TRUE(window.try_take(40));
  window.give_back(1, 60);
  EXPECT_TRUE(window.try_take(1));
  EXPECT_FALSE(window.try_take(1));
}

TEST(Window, IsFullOnceSomebodyFoundNoRoom) {
  Window window(3, 100);
  EXPECT_TRUE(window.try_take(60));
  EXPECT_FALSE(window.is_full());
  EXPECT_FALSE(window.try_take(50));
  EXPECT_TRUE(window.is_full());
  window.give_back(1, 60);
  EXPECT_FALSE(window.is_full());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(window.try_take(1));
  EXPECT_TRUE(window.is_full()) << "before anybody asks";
}

TEST(Window, ARecordLargerThanAllOfItFitsWhenItIsEmpty) {
  Window window(10, 100);
  EXPECT_TRUE(window.take(1'000, kNever));
  EXPECT_FALSE(window.try_take(1));
}

// Later small records would keep the large one waiting for ever.
TEST(Window, ALargeRecordHasItsTurn) {
  Window window(10, 100);
  ASSERT_TRUE(window.try_take(50));
  ASSERT_TRUE(window.try_take(50));
  std::jthread large([&] { EXPECT_TRUE(window.take(80, kNever)); });
  EXPECT_TRUE(is_waited_for(window));
  window.give_back(1, 50);
  EXPECT_FALSE(window.try_take(1));
  std::atomic<bool> small_is_in{false};
  std::jthread small([&] {
    EXPECT_TRUE(window.take(20, kNever));
    small_is_in = true;
    small_is_in.notify_all();
  });
  window.give_back(1, 50);
  small_is_in.wait(false);
  EXPECT_EQ(window.bytes(), 100U);
}

TEST(Window, WhoGivesUpKeepsNobodyWaiting) {
  Window window(10, 100);
  ASSERT_TRUE(window.try_take(60));
  std::atomic<bool> gone{false};
  std::jthread large([&] { EXPECT_FALSE(window.take(80, [&] { return gone.load(); })); });
  EXPECT_TRUE(is_waited_for(window));
  gone = true;
  window.look_again();
  large.join();
  EXPECT_TRUE(window.try_take(40));
}

}  // namespace
}  // namespace baton::pipeline
