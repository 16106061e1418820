// The SDK as a stranger meets it: installed into a folder, found by find_package(), and used by the
// programs in examples/cpp, which are built as a project of their own and run against a real
// broker.

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "e2e/broker_process.h"
#include "e2e/process.h"
#include "paths.h"

namespace baton::e2e {
namespace {

using Lines = std::vector<std::string>;

constexpr const char* kEnv = "/usr/bin/env";  // Finds cmake on the PATH.

Lines lines_of(const std::string& text) {
  Lines lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

/// One installation, one build of the examples and one broker for all tests.
class InstalledSdkTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    shared_ = new Shared;
    const std::filesystem::path build = std::filesystem::path(paths::kBinary).parent_path();
    const std::filesystem::path examples =
        std::filesystem::path(paths::kTests).parent_path() / "examples" / "cpp";
    run({kEnv, "cmake", "--install", build, "--component", "sdk", "--prefix", prefix()});
    run({kEnv, "cmake", "-S", examples, "-B", shared_->folder / "build", "-G", "Ninja",
         "-DCMAKE_PREFIX_PATH=" + prefix()});
    run({kEnv, "cmake", "--build", shared_->folder / "build"});
    ASSERT_TRUE(shared_->broker.start());
  }
  static void TearDownTestSuite() { delete shared_; }

  static std::string prefix() { return shared_->folder / "prefix"; }
  static std::string program(const std::string& name) {
    return shared_->folder / ("build/" + name);
  }
  static std::string address() { return shared_->broker.address(); }
  static BrokerProcess& broker() { return shared_->broker; }

  /// Runs an example to its end; what it printed.
  static Lines example(std::vector<std::string> command) {
    command.front() = program(command.front());
    return lines_of(run(std::move(command)));
  }

  /// An example that runs until it is told to end.
  class Running {
   public:
    Running(std::vector<std::string> command, const std::string& name)
        : out_(shared_->folder / name),
          child_({.command = with_path(std::move(command)),
                  .out_file = out_,
                  .err_file = out_ + ".err"}) {}
    [[nodiscard]] Lines lines() const { return lines_of(read_file(out_)); }
    [[nodiscard]] bool says(const std::string& line) const {
      return std::ranges::any_of(lines(), [&](const auto& one) { return one.starts_with(line); });
    }
    [[nodiscard]] bool will_say(const std::string& line) const {
      return eventually([&] { return says(line); });
    }
    ChildProcess& child() { return child_; }

   private:
    static std::vector<std::string> with_path(std::vector<std::string> command) {
      command.front() = program(command.front());
      return command;
    }
    std::string out_;
    ChildProcess child_;
  };

 private:
  static std::string run(std::vector<std::string> command) {
    const std::string name = command.at(1) + " " + command.at(2);
    const CommandResult result = run_command(std::move(command), {.within = seconds{120}});
    EXPECT_EQ(result.exit_code, 0) << name << "\n" << result.out << result.err;
    return result.out;
  }

  struct Shared {
    TempFolder folder;
    BrokerProcess broker;
  };
  static inline Shared* shared_ = nullptr;
};

TEST_F(InstalledSdkTest, AMessageGoesFromTheProducerToTheConsumer) {
  EXPECT_EQ(example({"producer", address(), "orders", "3"}), Lines{"sent 3 messages to orders"});
  // Deduplicated: nothing comes twice.
  EXPECT_EQ(example({"producer", address(), "orders", "4"}), Lines{"sent 4 messages to orders"});
  EXPECT_EQ(example({"consumer", address(), "orders", "4"}),
            (Lines{"handled order 0", "handled order 1", "handled order 2", "handled order 3"}));
  EXPECT_EQ(broker().depth("orders"), 0U);
}

// The public headers ask for nothing but the standard library, and an error says what is wrong.
TEST_F(InstalledSdkTest, AnErrorIsASentence) {
  const CommandResult refused = run_command({program("consumer"), address(), "nowhere", "1"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(refused.err, "consumer: queue_not_found: there is no queue 'nowhere'\n");
}

TEST_F(InstalledSdkTest, OneReaderOfAGroupIsActiveAndTheNextGoesOnWhereItWas) {
  ASSERT_EQ(broker().cli({"stream", "create", "events", "--partitions", "1"}).exit_code, 0);
  const auto append = [&](std::vector<std::string> values) {
    values.insert(values.begin(), {"stream", "append", "events"});
    ASSERT_EQ(broker().cli(std::move(values)).exit_code, 0);
  };
  append({"a", "b", "c"});
  Running first({"reader", address(), "events", "billing", "5"}, "first");
  ASSERT_TRUE(first.will_say("record 2: c"));
  Running second({"reader", address(), "events", "billing", "1"}, "second");
  append({"d", "e", "f"});

  ASSERT_EQ(first.child().wait(seconds{20}), 0);
  ASSERT_EQ(second.child().wait(seconds{20}), 0);

  EXPECT_EQ(first.lines(), (Lines{"active on partition 0, epoch 1", "record 0: a", "record 1: b",
                                  "record 2: c", "record 3: d", "record 4: e"}));
  EXPECT_EQ(second.lines(), (Lines{"active on partition 0, epoch 2", "record 5: f"}));
}

TEST_F(InstalledSdkTest, WorkersDivideThePartitions) {
  const std::string store = "baton://" + address();
  Running first({"worker", store, "shop", "2"}, "worker-1");
  ASSERT_TRUE(first.will_say("acquired partition 0") && first.will_say("acquired partition 1"));
  Running second({"worker", store, "shop", "2"}, "worker-2");
  ASSERT_TRUE(second.will_say("acquired partition"));
  EXPECT_TRUE(first.says("gave up partition"));

  second.child().signal(SIGTERM);
  EXPECT_EQ(second.child().wait(seconds{20}), 0);
  EXPECT_EQ(second.lines().back(), "left");
  first.child().signal(SIGTERM);
  EXPECT_EQ(first.child().wait(seconds{20}), 0);
  EXPECT_EQ(first.lines().back(), "left");
}

std::uint64_t token_in(const Lines& lines) {
  for (const std::string& line : lines) {
    if (line.starts_with("holding ")) return std::stoull(line.substr(line.rfind(' ') + 1));
  }
  return 0;
}

TEST_F(InstalledSdkTest, ALockHasOneHolderAndOutlivesNoKilledOne) {
  Running first({"lock", address(), "ledger", "60000"}, "lock-1");
  ASSERT_TRUE(first.will_say("holding ledger"));
  Running second({"lock", address(), "ledger", "60000"}, "lock-2");
  ASSERT_TRUE(second.will_say("waiting"));
  EXPECT_FALSE(second.says("holding"));

  // The waiting process hears of it at once, and has the lock when the lease has ended.
  first.child().kill();
  EXPECT_TRUE(second.will_say("the holder's connection broke"));
  EXPECT_TRUE(second.will_say("holding ledger"));
  EXPECT_GT(token_in(second.lines()), token_in(first.lines()));
  second.child().kill();

  // A lock that was released is free at once.
  const Lines third = example({"lock", address(), "other", "1"});
  EXPECT_EQ(third.back(), "releasing other");
  EXPECT_EQ(example({"lock", address(), "other", "1"}).back(), "releasing other");
}

// Another minor version is another API.
TEST_F(InstalledSdkTest, ThePackageKnowsItsVersion) {
  const TempFolder folder;
  write_file(folder / "CMakeLists.txt",
             "cmake_minimum_required(VERSION 3.25)\nproject(x LANGUAGES CXX)\n"
             "find_package(baton 0.2 REQUIRED)\n");
  const CommandResult refused = run_command({kEnv, "cmake", "-S", folder.path(), "-B",
                                             folder / "build", "-DCMAKE_PREFIX_PATH=" + prefix()});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_NE(refused.err.find("with requested version \"0.2\""), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace baton::e2e
