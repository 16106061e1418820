// Handler processes and their guardian: restarted, signalled, and never left behind.

#include <signal.h>

#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "worker/on_each_store.h"

namespace baton::worker_tests {
namespace {

/// A worker with a shell script as its handler.
class Handlers : public OnBroker {
 protected:
  WorkerProcess& start(const std::string& script, const std::vector<std::string>& flags = {},
                       std::uint32_t partitions = 2) {
    e2e::write_file(folder_ / "handler", "#!/bin/sh\n" + script);
    return start_command({"/bin/sh", folder_ / "handler", "{partition}", "{epoch}"}, flags,
                         partitions);
  }
  WorkerProcess& start_command(std::vector<std::string> command,
                               const std::vector<std::string>& flags = {},
                               std::uint32_t partitions = 2) {
    std::vector<std::string> all{"--profile", "fast"};
    all.insert(all.end(), flags.begin(), flags.end());
    worker_ = std::make_unique<WorkerProcess>(
        WorkerProcess::Options{.name = "w1",
                               .store = store(),
                               .partitions = partitions,
                               .flags = std::move(all),
                               .handler = std::move(command),
                               .environment = {"OUT=" + out_file(), "PARTITION=not this one"},
                               .folder = folder_.path().string()});
    return *worker_;
  }
  [[nodiscard]] std::string out_file() const { return folder_ / "written"; }
  [[nodiscard]] std::string written() const { return e2e::read_file(out_file()); }
  [[nodiscard]] bool writes(const std::string& part) const {
    return eventually([&] { return written().find(part) != std::string::npos; });
  }
  /// Numbers that the handlers wrote as "NAME number".
  [[nodiscard]] std::vector<pid_t> pids_written(const std::string& name) const {
    std::ifstream file(out_file());
    std::vector<pid_t> pids;
    std::string word;
    for (pid_t pid = 0; file >> word >> pid;) {
      if (word == name) pids.push_back(pid);
    }
    return pids;
  }
  static bool all_end(const std::vector<pid_t>& pids, milliseconds within = seconds{5}) {
    return eventually([&] { return std::ranges::none_of(pids, is_alive); }, within);
  }
  /// The children of a process.
  static std::vector<pid_t> children_of(pid_t parent) {
    std::ifstream file(fmt::format("/proc/{0}/task/{0}/children", parent));
    std::vector<pid_t> pids;
    for (pid_t pid = 0; file >> pid;) pids.push_back(pid);
    return pids;
  }
  [[nodiscard]] pid_t guardian() const {
    std::ifstream file(fmt::format("/proc/{0}/task/{0}/children", worker_->pid()));
    pid_t pid = 0;
    file >> pid;
    return pid;
  }

  e2e::TempFolder folder_;
  std::unique_ptr<WorkerProcess> worker_;
};

TEST_F(Handlers, KnowTheirPartitionAndEpoch) {
  start("echo \"$1 $2 $BATON_PARTITION $BATON_EPOCH $BATON_GROUP\" >> $OUT; exec sleep 60");
  EXPECT_TRUE(writes("0 1 0 1 orders\n"));
  EXPECT_TRUE(writes("1 1 1 1 orders\n"));
  EXPECT_EQ(worker_->leave(), 0);
}

TEST_F(Handlers, OneThatFailsIsStartedAgainWithAPause) {
  start("echo \"run $$\" >> $OUT; exit 7", {}, 1);
  ASSERT_TRUE(eventually([&] { return worker_->events("handler_ended").size() >= 2; }));
  const auto ended = worker_->events("handler_ended");
  EXPECT_EQ(ended[0]["code"], 7);
  EXPECT_EQ(ended[0]["restart_in_ms"], 1'000);
  EXPECT_EQ(ended[1]["restart_in_ms"], 2'000);
  EXPECT_EQ(pids_written("run").size(), 2U);
  EXPECT_TRUE(worker_->events("stopped").empty()) << "the partition is kept all the time";
  EXPECT_EQ(worker_->leave(), 0);
}

TEST_F(Handlers, OneThatIsDoneIsStartedAgainToo) {
  start_command({"/bin/true"}, {}, 1);
  ASSERT_TRUE(eventually([&] { return worker_->events("handler_ended").size() >= 2; }));
  const auto ended = worker_->events("handler_ended");
  EXPECT_EQ(ended[0]["code"], 0);
  EXPECT_EQ(ended[1]["restart_in_ms"], 1'000);
  EXPECT_EQ(worker_->leave(), 0);
}

// A program whose name depends on the partition is not checked before the worker joins.
TEST_F(Handlers, AProgramThatIsNotThereIsNamed) {
  start_command({"./no-such-program-{partition}"}, {}, 1);
  ASSERT_TRUE(eventually([&] { return !worker_->events("handler_ended").empty(); }));
  EXPECT_EQ(worker_->events("handler_ended")[0]["code"], 127);
  EXPECT_NE(worker_->err().find("cannot run ./no-such-program-0: No such file"), std::string::npos)
      << worker_->err();
  EXPECT_EQ(worker_->leave(), 0);
}

constexpr const char* kFamily =
    "sleep 1000 & echo \"child $!\" >> $OUT\n"
    "setsid sleep 1000 & echo \"escaped $!\" >> $OUT\n"
    "echo \"self $$\" >> $OUT; wait; wait";

// Processes that a handler starts end with it, even those that left its group, whichever process is
// killed.
TEST_F(Handlers, AKilledRunnerLeavesNobodyBehind) {
  start(kFamily);
  ASSERT_TRUE(eventually([&] { return pids_written("self").size() == 2; }));
  const pid_t guard = guardian();
  EXPECT_TRUE(is_alive(guard));
  worker_->kill();
  EXPECT_TRUE(all_end(pids_written("self")));
  EXPECT_TRUE(all_end(pids_written("child")));
  EXPECT_TRUE(all_end(pids_written("escaped")));
  EXPECT_TRUE(all_end({guard}));
}

TEST_F(Handlers, AKilledGuardianTakesTheHandlersAlongAndTheWorkerLeaves) {
  start(kFamily);
  ASSERT_TRUE(eventually([&] { return pids_written("self").size() == 2; }));
  ASSERT_TRUE(eventually([&] { return worker_->handler_pids().size() == 2; }));
  ::kill(guardian(), SIGKILL);
  EXPECT_TRUE(all_end(pids_written("self")));
  EXPECT_TRUE(all_end(pids_written("child")));
  EXPECT_EQ(worker_->wait(), 1) << worker_->err();
  EXPECT_NE(worker_->err().find("guardian"), std::string::npos) << worker_->err();
  // The only ones that nothing can find any more.
  for (const pid_t pid : pids_written("escaped")) ::kill(pid, SIGKILL);
}

// Its parent has left the group and never reaps it: the zombie does nothing, and blocks nothing.
TEST_F(Handlers, AZombieInTheGroupHoldsNothingUp) {
  e2e::write_file(folder_ / "family.py",
                  "import os, time\n"
                  "if os.fork() == 0:\n"
                  "    if os.fork() == 0: time.sleep(1000)\n"
                  "    os.setsid()\n"
                  "    time.sleep(1000)\n"
                  "time.sleep(0.3)\n"
                  "os._exit(3)\n");
  start_command({"/usr/bin/python3", folder_ / "family.py"}, {}, 1);
  EXPECT_TRUE(eventually([&] { return worker_->events("handler_started").size() >= 2; }));
  EXPECT_EQ(worker_->leave(), 0);
}

TEST_F(Handlers, ThoseThatDoNotStopAreKilledAfterTheDrain) {
  start("trap '' TERM; echo \"self $$\" >> $OUT; while :; do sleep 0.05; done",
        {"--drain", "700ms"});
  ASSERT_TRUE(eventually([&] { return pids_written("self").size() == 2; }));
  const std::int64_t told = boot_ns();
  EXPECT_EQ(worker_->leave(), 0) << worker_->err();
  const std::int64_t took = boot_ns() - told;
  EXPECT_GE(took, 600'000'000);
  EXPECT_LT(took, 10'000'000'000);
  EXPECT_TRUE(all_end(pids_written("self")));
}

TEST_F(Handlers, ASecondSignalDoesNotWaitForThem) {
  start("trap '' TERM; echo \"self $$\" >> $OUT; while :; do sleep 0.05; done", {"--drain", "30s"});
  ASSERT_TRUE(eventually([&] { return pids_written("self").size() == 2; }));
  worker_->signal(SIGTERM);
  std::this_thread::sleep_for(milliseconds{300});
  EXPECT_FALSE(worker_->wait(milliseconds{1}).has_value());
  worker_->signal(SIGINT);
  EXPECT_EQ(worker_->wait(seconds{5}), 0) << worker_->err();
  EXPECT_TRUE(all_end(pids_written("self")));
}

TEST_F(Handlers, GetTheSignalsThatAreForThem) {
  start(
      "trap 'echo \"hup 1\" >> $OUT' HUP; trap 'echo \"usr1 1\" >> $OUT' USR1\n"
      "trap 'echo \"usr2 1\" >> $OUT' USR2; echo \"self $$\" >> $OUT; while :; do sleep 0.05; "
      "done");
  ASSERT_TRUE(eventually([&] { return pids_written("self").size() == 2; }));
  worker_->signal(SIGHUP);
  worker_->signal(SIGUSR1);
  worker_->signal(SIGUSR2);
  for (const char* word : {"hup", "usr1", "usr2"}) {
    EXPECT_TRUE(eventually([&] { return pids_written(word).size() == 2; })) << word;
  }
  EXPECT_EQ(worker_->leave(), 0);
}

// A reader that is stuck must not cost the lease.
TEST_F(Handlers, OutputThatNobodyReadsHoldsNothingUp) {
  const std::string fifo = folder_ / "fifo";
  ASSERT_EQ(e2e::run_command({"/usr/bin/mkfifo", fifo}).exit_code, 0);
  const std::string command = fmt::format(
      "exec 9<>{} ; exec {} worker run --group orders --partitions 512 --id w1 --store {} "
      "--profile "
      "fast --show-renewals >&9",
      fifo, e2e::binary(), store());
  e2e::ChildProcess worker({.command = {"/bin/sh", "-c", command}, .err_file = folder_ / "err"});
  const auto held = [&] {
    const auto result = e2e::run_command(
        {e2e::binary(), "worker", "status", "--group", "orders", "--store", store(), "--json"});
    const auto shown = nlohmann::json::parse(result.out, nullptr, false);
    return shown.is_object() && shown["workers"].size() == 1 &&
           shown["workers"][0]["holds"] == 512 && shown["workers"][0]["silent"] == false;
  };
  ASSERT_TRUE(eventually(held)) << e2e::read_file(folder_ / "err");
  std::this_thread::sleep_for(seconds{2});
  EXPECT_TRUE(held());
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(seconds{10}), 0) << e2e::read_file(folder_ / "err");
}

}  // namespace
}  // namespace baton::worker_tests
