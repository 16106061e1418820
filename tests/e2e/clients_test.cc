// Clients in other languages see our errors where their gRPC libraries look for them.
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "e2e/broker_process.h"
#include "paths.h"

namespace baton::e2e {
namespace {

const std::string kClients = std::string(paths::kTests) + "/clients";

class Clients : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(broker_.start()) << broker_.log();
    broker_.create("taken");
    ASSERT_EQ(broker_.cli({"stream", "create", "events"}).exit_code, 0);
    const auto made = run_command(
        {"/usr/bin/env", "protoc", fmt::format("--proto_path={}/../proto", paths::kTests),
         "--include_imports", "--descriptor_set_out=" + descriptors_, "baton/v1/status.proto",
         "baton/v1/queues.proto", "baton/v1/streams.proto", "baton/v1/kv.proto"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }

  /// Every call of errors.json, by the client that `command` runs.
  void expect_errors(std::vector<std::string> command) const {
    for (const std::string& word : {broker_.address(), descriptors_, kClients + "/errors.json"}) {
      command.push_back(word);
    }
    const auto done = run_command(std::move(command));
    EXPECT_EQ(done.exit_code, 0) << done.out << done.err;
  }

  BrokerProcess broker_;
  std::string descriptors_ = broker_.folder() / "descriptors";
};

TEST_F(Clients, PythonReadsCodeAndDetails) {
  const std::string python = std::string(paths::kTools) + "/python/bin/python";
  if (!std::filesystem::exists(python)) GTEST_SKIP() << "SKIPPED: no grpcio (./dev setup)";
  expect_errors({python, kClients + "/errors.py"});
}

TEST_F(Clients, GoReadsCodeAndDetails) {
  const std::string program = std::string(paths::kTools) + "/errors-go";
  if (!std::filesystem::exists(program)) GTEST_SKIP() << "SKIPPED: no Go client (./dev setup)";
  expect_errors({program});
}

}  // namespace
}  // namespace baton::e2e
