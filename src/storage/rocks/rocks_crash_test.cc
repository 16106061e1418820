// Kills real processes that write to a store, at random moments, and checks what they leave behind.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/time.h"
#include "storage/disk/checkpoint_store_contract.h"
#include "storage/rocks/rocks_store.h"
#include "storage/rocks/temp_folder.h"

namespace baton {
namespace {

using contract::kIds;
using contract::kMessages;
using contract::kState;

constexpr const char* kFolderVariable = "BATON_CRASH_TEST_FOLDER";
constexpr int kReportFile = 3;
// Each commit rewrites all of these rows: 256 KiB in two tables, four times a write buffer, so that
// RocksDB has every reason to flush by itself in the middle.
constexpr int kBulkRows = 128;
constexpr std::array<Table, 3> kAllTables{kMessages, kIds, kState};

RocksOptions tiny() {
  return {.cache_bytes = 1U << 20U,
          .write_buffer_bytes = 64U << 10U,
          .write_buffers_bytes_max = 128U << 10U};
}

std::string bulk_key(int row) { return "bulk" + std::to_string(1000 + row); }

/// Every row of this batch holds `counter`, in all tables: at its head, in its middle, at its end.
RowBatch counter_batch(std::uint64_t counter) {
  const std::string text = std::to_string(counter);
  RowBatch batch;
  batch.put(kState, "first", text);
  batch.erase_range(kMessages, "bulk", "bulk9");
  const int rows = counter % 3 == 0 ? kBulkRows : 2;
  for (int row = 0; row < rows; ++row) {
    batch.put(kMessages, bulk_key(row), text + std::string(1024, ' '));
    batch.put(kIds, bulk_key(row), text + std::string(1024, ' '));
  }
  batch.erase_range(kIds, bulk_key(rows), "bulk9");
  batch.put(kMessages, "count", std::to_string(rows));
  for (const Table table : kAllTables) batch.put(table, "counter", text);
  return batch;
}

std::uint64_t to_number(const std::string& text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Fails the test unless all rows of the last commit are there, and returns its number.
std::uint64_t check(const CheckpointStore& store) {
  const std::string state = contract::get(store, kState, "counter");
  if (state == "absent") {
    for (const Table table : kAllTables) {
      EXPECT_EQ(contract::get(store, table, "counter"), "absent");
    }
    return 0;
  }
  EXPECT_EQ(contract::get(store, kState, "first"), state);
  for (const Table table : kAllTables) EXPECT_EQ(contract::get(store, table, "counter"), state);
  const std::uint64_t rows = to_number(contract::get(store, kMessages, "count"));
  for (const Table table : {kMessages, kIds}) {
    const auto bulk = store.scan({.table = table,
                                  .begin = "bulk",
                                  .end = "bulk9",
                                  .rows_max = contract::kNoLimit,
                                  .bytes_max = contract::kNoLimit});
    EXPECT_TRUE(bulk.has_value()) << to_string(bulk.error());
    if (!bulk.has_value()) continue;
    EXPECT_EQ(bulk->size(), rows);
    for (const Row& row : *bulk) EXPECT_EQ(row.value.substr(0, state.size() + 1), state + " ");
  }
  return to_number(state);
}

void end_unless(const Status& status) {
  if (status.has_value()) return;
  std::cerr << to_string(status.error()) << "\n";
  ::_exit(1);
}

void spill_for_ever(CheckpointStore& store) {
  for (std::uint64_t n = 0;; ++n) {
    RowBatch batch;
    batch.put(kMessages, "spill" + std::to_string(n % 1000), std::string(2000, 's'));
    batch.put(kIds, "spill" + std::to_string(n % 1000), "s");
    end_unless(store.spill(batch));
  }
}

// Not a test: the process that is killed. It reports each number it committed, eight bytes at a
// time.
TEST(RocksCrashChild, DISABLED_CommitsUntilItIsKilled) {
  const char* folder = std::getenv(kFolderVariable);
  ASSERT_NE(folder, nullptr);
  auto store = open_rocks_store(folder, contract::kTables, tiny());
  ASSERT_TRUE(store.has_value()) << to_string(store.error());
  std::thread([&] { spill_for_ever(**store); }).detach();
  for (std::uint64_t counter = check(**store) + 1;; ++counter) {
    end_unless((*store)->commit(counter_batch(counter)));
    if (::write(kReportFile, &counter, sizeof counter) != sizeof counter) ::_exit(1);
  }
}

/// A process started anew, not forked: RocksDB's threads do not survive a fork.
class Child {
 public:
  explicit Child(const std::string& folder) {
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    report_ = pipe[0];
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, pipe[1], kReportFile);
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    std::vector<std::string> arguments{"child", "--gtest_filter=RocksCrashChild.*",
                                       "--gtest_also_run_disabled_tests"};
    std::string variable = std::string(kFolderVariable) + "=" + folder;
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    std::array<char*, 2> environment{variable.data(), nullptr};
    EXPECT_EQ(
        ::posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, argv.data(), environment.data()),
        0);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(pipe[1]);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::close(report_);
  }

  /// The next number the child committed; 0 when it is dead and has reported everything.
  std::uint64_t next_report() {
    std::uint64_t counter = 0;
    return ::read(report_, &counter, sizeof counter) == sizeof counter ? counter : 0;
  }
  void run_on_for(Duration time) const {
    timespec wait{.tv_sec = 0, .tv_nsec = time.count()};
    ::ppoll(nullptr, 0, &wait, nullptr);
  }
  void kill() {
    ::kill(pid_, SIGKILL);
    // The destructor collects the child.
    ::waitid(P_PID, static_cast<id_t>(pid_), nullptr, WEXITED | WNOWAIT);
  }

 private:
  pid_t pid_ = 0;
  int report_ = -1;
};

// The reason for atomic_flush, and for the flush in a commit: without either this fails.
TEST(RocksCrash, AKilledProcessLeavesWholeCommitsAndAllItReported) {
  const TempFolder folder;
  Random random(static_cast<std::uint64_t>(::getpid()));
  std::uint64_t reached = 0;
  for (int round = 0; round < 10; ++round) {
    std::uint64_t reported = 0;
    {
      Child child(folder / "store");
      for (std::uint64_t left = 1 + random.below(4); left > 0; --left) {
        reported = child.next_report();
        ASSERT_NE(reported, 0U) << "the child failed";
      }
      child.run_on_for(Duration{random.below(20'000'000)});
      child.kill();
      while (const std::uint64_t more = child.next_report()) reported = more;
    }
    ASSERT_GT(reported, reached);
    auto store = open_rocks_store(folder / "store", contract::kTables, tiny());
    ASSERT_TRUE(store.has_value()) << to_string(store.error());
    const std::uint64_t found = check(**store);
    ASSERT_GE(found, reported) << "a commit that had returned is gone";
    ASSERT_FALSE(HasFailure()) << "round " << round << ", last report " << reported;
    reached = found;
  }
}

TEST(RocksCrash, AFolderAnotherProcessHasOpenIsRefused) {
  const TempFolder folder;
  Child child(folder / "store");
  ASSERT_NE(child.next_report(), 0U);

  const auto store = open_rocks_store(folder / "store", contract::kTables);
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().code, Errc::folder_in_use) << store.error().text;
  const auto reader = open_rocks_store_read_only(folder / "store", contract::kTables);
  ASSERT_FALSE(reader.has_value());
  EXPECT_EQ(reader.error().code, Errc::folder_in_use) << reader.error().text;
}

}  // namespace
}  // namespace baton
