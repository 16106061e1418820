// The command line as documented: each command, its output for people and for programs, its exit
// code.
#include <csignal>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "e2e/broker_process.h"
#include "paths.h"

namespace baton::e2e {
namespace {

using Json = nlohmann::json;

/// One object per line.
std::vector<Json> lines_of(const std::string& text) {
  std::vector<Json> objects;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    objects.push_back(Json::parse(line, nullptr, false));
    EXPECT_TRUE(objects.back().is_object()) << line;
  }
  return objects;
}

class Cli : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(broker_.start()) << broker_.log(); }

  /// Runs a command that must succeed, and returns its output.
  std::string run(std::vector<std::string> arguments, std::string_view in = {}) {
    std::string line;
    for (const std::string& word : arguments) line += word + " ";
    const CommandResult result = broker_.cli(std::move(arguments), in);
    EXPECT_EQ(result.exit_code, 0) << line << "\n" << result.err;
    EXPECT_EQ(result.err, "") << line;
    return result.out;
  }
  std::vector<Json> run_json(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    return lines_of(run(std::move(arguments)));
  }

  BrokerProcess broker_;
};

TEST_F(Cli, QueuesAreCreatedUpdatedListedDescribedAndDeleted) {
  const auto created =
      run_json({"queue", "create", "jobs", "--visibility-timeout", "45s", "--attempts-max", "5",
                "--dead-letter", "morgue", "--weight", "vip=10", "--throttle", "smtp=2.5/20"});
  ASSERT_EQ(created.size(), 1U);
  EXPECT_EQ(created[0].at("name"), "jobs");
  const Json& settings = created[0].at("settings");
  EXPECT_EQ(settings.at("visibility_timeout_ms"), 45'000);
  EXPECT_EQ(settings.at("attempts_max"), 5);
  EXPECT_EQ(settings.at("dead_letter_queue"), "morgue");
  EXPECT_EQ(settings.at("weights").at("vip"), 10);
  EXPECT_EQ(settings.at("throttles").at("smtp").at("rate"), 2.5);
  EXPECT_EQ(settings.at("throttles").at("smtp").at("burst"), 20);
  EXPECT_EQ(settings.at("payload_bytes_max"), 1'048'576);

  run({"queue", "update", "jobs", "--visibility-timeout", "1m", "--weight", "vip=0"});
  const auto described = run_json({"queue", "describe", "jobs"});
  ASSERT_EQ(described.size(), 1U);
  EXPECT_EQ(described[0].at("settings").at("visibility_timeout_ms"), 60'000);
  EXPECT_EQ(described[0].at("settings").at("attempts_max"), 5);
  EXPECT_FALSE(described[0].at("settings").at("weights").contains("vip"));
  EXPECT_EQ(described[0].at("stats").at("ready"), 0);

  run({"queue", "create", "other"});
  EXPECT_EQ(run_json({"queue", "list"}).size(), 2U);
  EXPECT_EQ(run_json({"queue", "list", "oth"}).size(), 1U);
  EXPECT_NE(run({"queue", "list"}).find("other"), std::string::npos);
  EXPECT_NE(run({"queue", "describe", "jobs"}).find("1m"), std::string::npos);

  run({"queue", "delete", "other"});
  EXPECT_EQ(run_json({"queue", "list"}).size(), 1U);
  EXPECT_EQ(broker_.cli({"queue", "delete", "other"}).exit_code, 3);
}

TEST_F(Cli, SendAndLeaseCarryEverything) {
  run({"queue", "create", "jobs"});
  const std::string id = run({"queue", "send", "jobs", "hello", "--key", "tenant-7", "--header",
                              "type=greeting", "--header", "n=1"});
  const auto leased = run_json({"queue", "lease", "jobs", "--ack"});

  ASSERT_EQ(leased.size(), 1U);
  EXPECT_EQ(leased[0].at("id").get<std::string>() + "\n", id);
  EXPECT_EQ(leased[0].at("payload"), "hello");
  EXPECT_EQ(leased[0].at("headers"), (Json{{"type", "greeting"}, {"n", "1"}}));
  EXPECT_EQ(leased[0].at("fairness_key"), "tenant-7");
  EXPECT_EQ(leased[0].at("attempt"), 1);
  EXPECT_GT(leased[0].at("lease_deadline_ns"), leased[0].at("enqueued_at_ns"));
  EXPECT_FALSE(leased[0].at("lease_token").get<std::string>().empty());
  EXPECT_EQ(broker_.depth("jobs"), 0U);
}

TEST_F(Cli, SendTakesArgumentsFilesLinesSizesAndCounts) {
  run({"queue", "create", "jobs"});
  write_file(broker_.folder() / "file", "from a file");
  EXPECT_EQ(run_json({"queue", "send", "jobs", "one", "two"}).size(), 2U);
  run({"queue", "send", "jobs", "--file", broker_.folder() / "file"});
  run({"queue", "send", "jobs", "-"}, "line 1\nline 2\nline 3\n");
  EXPECT_NE(run({"queue", "send", "jobs", "--size", "1KiB", "--count", "100"}).find("100"),
            std::string::npos);

  const auto leased =
      run_json({"queue", "lease", "jobs", "--max", "0", "--ack", "--wait", "300ms"});

  ASSERT_EQ(leased.size(), 106U);
  const std::vector<std::string> expected{"one",    "two",    "from a file",
                                          "line 1", "line 2", "line 3"};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(leased[i].at("payload"), expected[i]);
  EXPECT_EQ(leased[6].at("payload").get<std::string>().size(), 1'024U);
}

TEST_F(Cli, DelayAndDedup) {
  run({"queue", "create", "jobs"});
  const std::string first = run({"queue", "send", "jobs", "a", "--dedup-id", "x"});
  const auto second = run_json({"queue", "send", "jobs", "b", "--dedup-id", "x"});
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].at("duplicate"), true);
  EXPECT_EQ(second[0].at("id").get<std::string>() + "\n", first);

  run({"queue", "send", "jobs", "later", "--delay", "1s"});
  EXPECT_EQ(run_json({"queue", "describe", "jobs"})[0].at("stats").at("delayed"), 1);
  EXPECT_EQ(run_json({"queue", "lease", "jobs", "--ack"})[0].at("payload"), "a");
  EXPECT_EQ(run_json({"queue", "lease", "jobs", "--ack", "--wait", "10s"})[0].at("payload"),
            "later");
}

TEST_F(Cli, LeaseWithoutAModeGivesBackUncounted) {
  run({"queue", "create", "jobs"});
  run({"queue", "send", "jobs", "look"});
  EXPECT_EQ(run_json({"queue", "lease", "jobs"})[0].at("attempt"), 1);
  EXPECT_EQ(run_json({"queue", "lease", "jobs"})[0].at("attempt"), 1);
  EXPECT_EQ(run_json({"queue", "lease", "jobs", "--nack", "--delay", "0"})[0].at("attempt"), 1);
  EXPECT_EQ(run_json({"queue", "lease", "jobs"})[0].at("attempt"), 2);
  EXPECT_EQ(broker_.depth("jobs"), 1U);
  EXPECT_EQ(run_json({"queue", "purge", "jobs", "--yes"})[0].at("purged"), 1);
  const CommandResult none = broker_.cli({"queue", "lease", "jobs", "--wait", "100ms"});
  EXPECT_EQ(none.exit_code, 8);
  EXPECT_EQ(none.out, "");
}

TEST_F(Cli, HoldKeepsTheLeaseUntilInterrupted) {
  run({"queue", "create", "jobs", "--visibility-timeout", "2s"});
  run({"queue", "send", "jobs", "held"});
  const TempFolder folder;
  ChildProcess holder({.command = {binary(), "queue", "lease", "jobs", "--hold", "--json",
                                   "--address", broker_.address()},
                       .out_file = folder / "out",
                       .err_file = folder / "err"});
  ASSERT_TRUE(eventually([&] { return !read_file(folder / "out").empty(); }));
  // Waits for two visibility timeouts; the lease is extended each time.
  EXPECT_EQ(broker_.cli({"queue", "lease", "jobs", "--wait", "5s"}).exit_code, 8);
  EXPECT_EQ(broker_.stats("jobs").leased, 1U);

  holder.signal(SIGINT);

  EXPECT_EQ(holder.wait(seconds{20}), 0) << read_file(folder / "err");
  EXPECT_EQ(run_json({"queue", "lease", "jobs", "--ack"})[0].at("attempt"), 1);
}

TEST_F(Cli, PeekAndCancelDoNotLease) {
  run({"queue", "create", "jobs"});
  run({"queue", "send", "jobs", "first", "second"});
  const auto peeked = run_json({"queue", "peek", "jobs"});
  ASSERT_EQ(peeked.size(), 2U);
  EXPECT_EQ(peeked[0].at("state"), "MESSAGE_STATE_READY");
  EXPECT_EQ(peeked[0].at("attempts"), 0);
  EXPECT_EQ(peeked[1].at("payload"), "second");
  const std::string id = peeked[0].at("id");
  EXPECT_EQ(run_json({"queue", "peek", "jobs", "--id", id}).size(), 1U);
  EXPECT_EQ(run_json({"queue", "peek", "jobs", "--max", "1"}).size(), 1U);

  EXPECT_NE(run({"queue", "cancel", "jobs", id}).find(id), std::string::npos);
  EXPECT_EQ(run_json({"queue", "lease", "jobs", "--ack"})[0].at("payload"), "second");
}

TEST_F(Cli, DeadLettersAreSeenAndRedriven) {
  run({"queue", "create", "jobs", "--attempts-max", "1"});
  run({"queue", "send", "jobs", "bad", "worse"});
  run({"queue", "lease", "jobs", "--nack", "--max", "2", "--reason", "no such customer"});
  ASSERT_TRUE(eventually([&] { return broker_.depth("jobs.dlq") == 2; }));
  const auto letters = run_json({"queue", "peek", "jobs.dlq"});
  ASSERT_EQ(letters.size(), 2U);
  const std::string headers = letters[0].at("headers").dump();
  EXPECT_NE(headers.find("no such customer"), std::string::npos) << headers;
  EXPECT_NE(headers.find("jobs"), std::string::npos) << headers;

  // A mistake creates no queue anywhere.
  for (const char* name : {"typo-a", "typo-b", "typo-c", "typo-d"}) {
    const auto wrong = broker_.cli({"queue", "redrive", "jobs.dlq", "--to", name});
    EXPECT_EQ(wrong.exit_code, broker_.cli({"queue", "describe", name}).exit_code) << wrong.err;
    EXPECT_NE(wrong.err.find(name), std::string::npos) << wrong.err;
  }
  const auto dry = run_json({"queue", "redrive", "jobs.dlq", "--dry-run"});
  EXPECT_EQ(dry[0].at("matched"), 2);
  EXPECT_EQ(dry[0].at("moved"), 0);
  EXPECT_EQ(run_json({"queue", "redrive", "jobs.dlq", "--reason-contains", "other"})[0].at("moved"),
            0);
  EXPECT_EQ(run_json({"queue", "redrive", "jobs.dlq", "--max", "1"})[0].at("moved"), 1);
  EXPECT_EQ(run_json({"queue", "redrive", "jobs.dlq"})[0].at("moved"), 1);
  EXPECT_TRUE(eventually([&] { return broker_.depth("jobs") == 2; }));
  EXPECT_EQ(broker_.depth("jobs.dlq"), 0U);
}

TEST_F(Cli, StoreInspectReadsALiveBrokerAndAStoppedOnesFolder) {
  run({"queue", "create", "jobs"});
  run({"queue", "send", "jobs", "x", "--delay", "1h"});
  const auto check = [](const Json& report) {
    const Json& shard = report.at("shards").at(0);
    EXPECT_GT(shard.at("journal_next"), 1);
    EXPECT_GT(shard.at("boot"), 0);
    EXPECT_EQ(shard.at("format_version"), 2);
    std::map<std::string, std::uint64_t> rows;
    for (const auto& each : report.at("shards")) {
      for (const auto& table : each.at("tables")) {
        rows[table.at("name")] += table.at("rows").get<std::uint64_t>();
      }
    }
    for (const auto* name : {"messages", "keys", "ids", "leases", "lease_expiry", "delayed",
                             "dedup", "queues", "state"}) {
      EXPECT_TRUE(rows.contains(name)) << name;
    }
    EXPECT_EQ(rows["queues"], 1U);
    EXPECT_EQ(rows["delayed"], 1U);
  };
  check(Json::parse(run({"store", "inspect", "--json"})));
  EXPECT_NE(run({"store", "inspect"}).find("lease_expiry"), std::string::npos);
  EXPECT_EQ(broker_.cli({"store", "inspect", "--data", broker_.data()}).exit_code, 9);

  ASSERT_EQ(broker_.terminate(), 0);
  check(Json::parse(run({"store", "inspect", "--data", broker_.data(), "--json"})));
  EXPECT_NE(broker_.cli({"store", "inspect", "--data", "/no/such/folder"}).exit_code, 0);
}

// src/cli/command_line_test.cc checks every page.
TEST_F(Cli, HelpIsThere) {
  const std::string all = run({"--help"});
  EXPECT_NE(all.find("Exit codes"), std::string::npos);
  EXPECT_NE(run({"queue", "send", "--help"}).find("Example:"), std::string::npos);
}

TEST_F(Cli, HttpServesHealthReadinessAndMetrics) {
  run({"queue", "create", "jobs"});
  run({"queue", "send", "jobs", "x"});
  EXPECT_TRUE(broker_.http_get("/healthz").has_value());
  EXPECT_TRUE(broker_.http_get("/readyz").has_value());
  EXPECT_FALSE(broker_.http_get("/nothing").has_value());
  const auto metrics = broker_.http_get("/metrics");
  ASSERT_TRUE(metrics.has_value());
  EXPECT_NE(metrics->find("# TYPE baton_"), std::string::npos) << *metrics;
}

// Load balancers use this service.
TEST_F(Cli, TheStandardGrpcHealthServiceIsOn) {
  grpc::GenericStub stub(broker_.channel());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + seconds{20});
  grpc::CompletionQueue events;
  const grpc::Slice nothing;
  const grpc::ByteBuffer request(&nothing, 1);
  const auto call =
      stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", request, &events);
  call->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status status;
  call->Finish(&answer, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(events.Next(&tag, &ok));
  ASSERT_TRUE(status.ok()) << status.error_message();
  grpc::Slice bytes;
  ASSERT_TRUE(answer.DumpToSingleSlice(&bytes).ok());
  const std::string serving("\x08\x01");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size()), serving);
}

/// The commands of the README that need a broker: for queues, streams, groups and keys.
std::vector<std::string> readme_commands() {
  std::vector<std::string> commands;
  std::istringstream readme(read_file(std::filesystem::path(paths::kTests) / "../README.md"));
  constexpr std::string_view kIndent = "    baton ";
  for (std::string line; std::getline(readme, line);) {
    if (!line.starts_with(kIndent)) continue;
    const std::string command = line.substr(kIndent.size());
    for (const std::string_view noun : {"queue ", "stream ", "group ", "kv "}) {
      if (command.starts_with(noun)) commands.push_back(command);
    }
  }
  return commands;
}

TEST_F(Cli, TheCommandsOfTheReadmeRun) {
  const auto commands = readme_commands();
  ASSERT_GE(commands.size(), 11U);
  std::string printed;
  for (const std::string& command : commands) {
    const CommandResult result =
        run_command({"/bin/sh", "-c", fmt::format("{} {}", binary(), command)},
                    {.environment = {"BATON_ADDRESS=" + broker_.address()}});
    EXPECT_EQ(result.exit_code, 0) << command << "\n" << result.err;
    printed += result.out;
  }
  EXPECT_NE(printed.find("first order"), std::string::npos) << printed;
}

// Settings of a config file count, and flags win over them.
TEST(CliServer, ReadsAConfigFile) {
  BrokerProcess broker;
  const std::string file = broker.folder() / "config.yaml";
  write_file(file,
             "# A comment.\nfsync: interval:50\nshards: 3\nlog-json: true\nlog-level: error\n");
  broker.flags() = {"--config", file, "--log-level", "info"};
  ASSERT_TRUE(broker.start()) << broker.log();
  EXPECT_TRUE(read_file(broker.data() + "/FORMAT").starts_with("baton-data 2\nshards 3\nid "));
  // The ready file may come before the line.
  ASSERT_TRUE(eventually([&] {
    const auto lines = lines_of(broker.log());
    return !lines.empty() && lines.back().at("event") == "ready";
  })) << broker.log();
  const auto lines = lines_of(broker.log());
  EXPECT_EQ(lines.back().at("fsync"), "interval:50");
  EXPECT_EQ(lines.back().at("shards"), 3);
}

}  // namespace
}  // namespace baton::e2e
