#include "storage/log/published.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace baton {
namespace {

/// Counts its instances.
struct Counted {
  explicit Counted(std::uint64_t n, std::atomic<int>& live) : number(n), check(~n), alive(live) {
    ++alive;
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --alive; }

  std::uint64_t number;
  std::uint64_t check;
  std::atomic<int>& alive;
};

TEST(Published, TheLatestIsTakenAndOldOnesGo) {
  std::atomic<int> alive = 0;
  {
    Published<Counted> published(std::make_shared<const Counted>(1, alive));
    const auto first = published.load();
    published.store(std::make_shared<const Counted>(2, alive));
    EXPECT_EQ(first->number, 1U);
    EXPECT_EQ(published.load()->number, 2U);
    EXPECT_EQ(alive, 2);
    published.store(std::make_shared<const Counted>(3, alive));
    EXPECT_EQ(alive, 2);
  }
  EXPECT_EQ(alive, 0);
}

TEST(Published, ReadersNeverSeeAHalfOrAnOlderOne) {
  constexpr std::uint64_t kValues = 20'000;
  std::atomic<int> alive = 0;
  {
    Published<Counted> published(std::make_shared<const Counted>(0, alive));
    std::vector<std::thread> readers;
    for (int i = 0; i < 3; ++i) {
      readers.emplace_back([&] {
        std::uint64_t last = 0;
        while (last < kValues) {
          const auto value = published.load();
          ASSERT_EQ(value->check, ~value->number);
          ASSERT_GE(value->number, last);
          last = value->number;
        }
      });
    }
    for (std::uint64_t i = 1; i <= kValues; ++i) {
      published.store(std::make_shared<const Counted>(i, alive));
    }
    for (std::thread& reader : readers) reader.join();
  }
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace baton
