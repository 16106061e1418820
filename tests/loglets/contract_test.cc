// The contract of every engine, on real NATS servers, and which servers and streams are refused.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cluster/loglet/loglet_contract.h"
#include "loglets/nats_bench.h"
#include "stores/programs.h"

namespace baton::loglet {
namespace {

using loglets::NatsBench;
using std::chrono::seconds;

/// The servers of this program, started when the first test needs them.
stores::Server* nats(int members) {
  static std::unique_ptr<stores::Server> one;
  static std::unique_ptr<stores::Server> three;
  auto& server = members == 1 ? one : three;
  if (server == nullptr) server = loglets::start_nats(members);
  return server.get();
}

std::vector<LogletKind> engines() {
  std::vector<LogletKind> kinds;
  kinds.push_back({"nats", [] { return NatsBench::make(*nats(1)); }});
  if (e2e::is_long_run()) kinds.push_back({"nats_r3", [] { return NatsBench::make(*nats(3)); }});
  return kinds;
}

std::string missing_program() { return stores::nats_program(loglets::kNatsMin).missing; }

INSTANTIATE_TEST_SUITE_P(Engines, LogletContract,
                         testing::ValuesIn(missing_program().empty() ? engines()
                                                                     : std::vector<LogletKind>{}),
                         [](const auto& kind) { return kind.param.name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LogletContract);

class LogStream : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = missing_program(); !missing.empty()) {
      GTEST_SKIP() << "SKIPPED: " << missing;
    }
    link_ = loglets::connect(*nats(1));
    ASSERT_NE(link_, nullptr);
  }
  nlohmann::json ask(const std::string& subject, const nlohmann::json& body) {
    return link_->api(subject, body.dump(), deadline()).value();
  }
  static coord::Deadline deadline() { return coord::Deadline(seconds{10}); }
  std::shared_ptr<coord::NatsLink> link_;
};

TEST_F(LogStream, IsMadeOnceAndFoundAgain) {
  const LogName name = loglets::new_log_name();
  EXPECT_EQ(check_log_stream(*link_, name, deadline()).error().code, Errc::not_found);
  ASSERT_TRUE(create_log_stream(*link_, name, 1, deadline()).has_value());
  EXPECT_TRUE(check_log_stream(*link_, name, deadline()).has_value());
  // An `init` that was interrupted is run again.
  EXPECT_TRUE(create_log_stream(*link_, name, 1, deadline()).has_value());
  EXPECT_TRUE(check_log_versions(*link_, deadline()).has_value());
}

TEST_F(LogStream, OfAnotherClusterOfThatNameIsRefused) {
  LogName name = loglets::new_log_name();
  ASSERT_TRUE(create_log_stream(*link_, name, 1, deadline()).has_value());
  name.cluster_id = "x2";
  const Status created = create_log_stream(*link_, name, 1, deadline());
  ASSERT_FALSE(created.has_value());
  EXPECT_NE(created.error().text.find("belongs to another cluster"), std::string::npos);
  EXPECT_FALSE(check_log_stream(*link_, name, deadline()).has_value());
}

// Each of these settings loses, refuses or hides entries.
TEST_F(LogStream, WithAnotherSettingIsRefusedByThatName) {
  const std::vector<std::pair<std::string, nlohmann::json>> wrong{
      {"max_msgs", 10},       {"max_bytes", 1'000'000},    {"max_age", 60'000'000'000},
      {"discard", "old"},     {"deny_delete", false},      {"allow_direct", false},
      {"storage", "memory"},  {"max_msgs_per_subject", 5}, {"max_msg_size", 1000},
      {"no_ack", true},       {"allow_rollup_hdrs", true}, {"retention", "interest"},
      {"subjects", {"other"}}};
  for (const auto& [setting, value] : wrong) {
    const LogName name = loglets::new_log_name();
    const std::string stream = log_stream(name);
    nlohmann::json config{
        {"name", stream},       {"subjects", {log_subject(stream)}},
        {"num_replicas", 1},    {"storage", "file"},
        {"discard", "new"},     {"deny_delete", true},
        {"allow_direct", true}, {"metadata", {{"baton-cluster-id", name.cluster_id}}}};
    config[setting] = value;
    const auto made = ask("$JS.API.STREAM.CREATE." + stream, config);
    ASSERT_FALSE(made.contains("error")) << made.dump();
    const Status checked = check_log_stream(*link_, name, deadline());
    ASSERT_FALSE(checked.has_value()) << setting;
    EXPECT_NE(checked.error().text.find(setting + " is "), std::string::npos)
        << checked.error().text;
    ask("$JS.API.STREAM.DELETE." + stream, nlohmann::json::object());
  }
}

TEST(LogVersions, LinesBeginWithTheirFirstFitVersion) {
  for (const char* const fit : {"2.12.15", "2.12.16", "2.14.9", "2.15.2", "2.16.0", "3.0.0"}) {
    EXPECT_TRUE(is_fit_for_logs(*coord::parse_nats_version(fit))) << fit;
  }
  for (const char* const unfit : {"2.9.21", "2.12.14", "2.13.9", "2.14.8", "2.15.1"}) {
    EXPECT_FALSE(is_fit_for_logs(*coord::parse_nats_version(unfit))) << unfit;
  }
}

TEST(LogVersions, AnOldServerIsRefused) {
  const stores::Program program = stores::debian_nats_program();
  if (!program.missing.empty()) GTEST_SKIP() << "SKIPPED: " << program.missing;
  if (is_fit_for_logs(stores::nats_version_of(program.path))) {
    GTEST_SKIP() << "SKIPPED: Debian's server is new enough";
  }
  stores::Server server({.kind = stores::Kind::nats, .program = program.path});
  ASSERT_TRUE(server.start());
  const auto link = loglets::connect(server);
  ASSERT_NE(link, nullptr);
  const Status checked = check_log_versions(*link, coord::Deadline(seconds{10}));
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().code, Errc::failed_precondition);
  EXPECT_NE(checked.error().text.find("2.12.15"), std::string::npos) << checked.error().text;
}

}  // namespace
}  // namespace baton::loglet
