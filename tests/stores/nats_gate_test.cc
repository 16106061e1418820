// Which buckets of NATS are refused: those where a compare-and-set may have two winners, and those
// that are not what the URL says.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "stores/contract.h"
#include "stores/programs.h"
#include "worker/nats/nats_link.h"

namespace baton::stores {
namespace {

std::string refusal(const std::string& url) {
  const auto store = coord::open_store(url, {.connect_timeout = seconds{5}});
  if (store) return "opened";
  EXPECT_EQ(store.error().code, Errc::failed_precondition);
  return store.error().text;
}

/// A request to JetStream's API, without our own store.
nlohmann::json ask(Server& server, const std::string& subject, const std::string& body = {}) {
  const coord::Deadline deadline(kTimeout);
  const auto link = coord::NatsLink::connect({server.member(0).address()}, deadline).value();
  return link->api(subject, body, deadline).value();
}

class NatsGate : public testing::Test {
 protected:
  /// Starts a server of that program; skips the test if there is none.
  static std::unique_ptr<Server> start(const Program& program, int members = 1) {
    auto server = std::make_unique<Server>(
        ServerOptions{.kind = Kind::nats, .members = members, .program = program.path});
    EXPECT_TRUE(server->start());
    return server;
  }
};

// Debian's own server.
TEST_F(NatsGate, AReplicatedBucketOnAnOldServerIsRefusedByVersion) {
  const Program program = debian_nats_program();
  if (!program.missing.empty()) GTEST_SKIP() << "SKIPPED: " << program.missing;
  const auto version = nats_version_of(program.path);
  if (version >= coord::kNatsReplicatedMin)
    GTEST_SKIP() << "SKIPPED: Debian's server is new enough";
  const auto server = start(program);

  EXPECT_EQ(refusal(server->url("leases", "?replicas=3")),
            fmt::format("the NATS server at {} is version {}, and a bucket with 3 replicas needs "
                        "2.9.21: before it, a compare-and-set on such a bucket may have several "
                        "winners. replicas=1 is sound on this version",
                        server->member(0).address(), to_string(version)));
  // Nothing was created, and with one copy it works.
  EXPECT_EQ(ask(*server, "$JS.API.STREAM.INFO.KV_leases")["error"]["err_code"], 10059);
  EXPECT_NE(open(server->url("leases", "?replicas=1")), nullptr);
}

// The bucket may have been created by another tool.
TEST_F(NatsGate, AReplicatedBucketThatIsThereIsRefusedAsWell) {
  const Program program = debian_nats_program();
  if (!e2e::is_long_run()) GTEST_SKIP() << "a cluster: only with BATON_LONG";
  if (!program.missing.empty()) GTEST_SKIP() << "SKIPPED: " << program.missing;
  if (nats_version_of(program.path) >= coord::kNatsReplicatedMin) {
    GTEST_SKIP() << "SKIPPED: Debian's server is new enough";
  }
  const auto server = start(program, 3);
  const nlohmann::json config{{"name", "KV_leases"},   {"subjects", {"$KV.leases.>"}},
                              {"num_replicas", 3},     {"storage", "file"},
                              {"retention", "limits"}, {"max_msgs_per_subject", 1}};
  const auto made = ask(*server, "$JS.API.STREAM.CREATE.KV_leases", config.dump());
  ASSERT_FALSE(made.contains("error")) << made.dump();

  EXPECT_NE(refusal(server->url("leases")).find("a bucket with 3 replicas needs 2.9.21"),
            std::string::npos);
}

TEST_F(NatsGate, ABucketHasTheReplicasOfTheUrlOrIsRefused) {
  const Program program = nats_program({});
  if (!program.missing.empty()) GTEST_SKIP() << "SKIPPED: " << program.missing;
  const auto server = start(program);
  ASSERT_NE(open(server->url("leases")), nullptr);

  EXPECT_EQ(refusal(server->url("leases", "?replicas=3")),
            "bucket leases has 1 replicas, and the URL asks for 3");
}

// A bucket that drops a key gives the partition to the next worker, while its owner works.
TEST_F(NatsGate, ABucketThatMayForgetIsRefusedWithTheSetting) {
  const Program program = nats_program({});
  if (!program.missing.empty()) GTEST_SKIP() << "SKIPPED: " << program.missing;
  const auto server = start(program);
  const auto refused_for = [&](const nlohmann::json& settings) {
    ask(*server, "$JS.API.STREAM.DELETE.KV_made");
    nlohmann::json config{{"name", "KV_made"},     {"subjects", {"$KV.made.>"}},
                          {"num_replicas", 1},     {"storage", "file"},
                          {"retention", "limits"}, {"max_msgs_per_subject", 1}};
    config.update(settings);
    const auto made = ask(*server, "$JS.API.STREAM.CREATE.KV_made", config.dump());
    EXPECT_FALSE(made.contains("error")) << made.dump();
    const std::string text = refusal(server->url("made"));
    const std::string_view begin =
        "bucket made is not fit for leases, which must not be forgotten: ";
    return text.starts_with(begin) ? text.substr(begin.size()) : text;
  };

  EXPECT_EQ(refused_for({{"max_age", 60'000'000'000}}), "max_age is 60000000000 and must be 0");
  EXPECT_EQ(refused_for({{"max_msgs", 3}}),
            "max_msgs is 3, so that discard must be \"new\", and it is \"old\"");
  EXPECT_EQ(refused_for({{"max_bytes", 1'500}, {"discard", "old"}}),
            "max_bytes is 1500, so that discard must be \"new\", and it is \"old\"");
  EXPECT_EQ(refused_for({{"storage", "memory"}}), "storage is \"memory\" and must be \"file\"");
  EXPECT_EQ(refused_for({{"subjects", {"made.>"}}}),
            "subjects is [\"made.>\"] and must be [\"$KV.made.>\"]");
  EXPECT_EQ(refused_for({{"retention", "interest"}}),
            "retention is \"interest\" and must be \"limits\"");
  EXPECT_EQ(refused_for({{"sources", {{{"name", "KV_other"}}}}}),
            "it has a setting sources, and must not");
  // When full, these refuse new keys, and forget none.
  EXPECT_EQ(refused_for({{"max_msgs", 100}, {"max_bytes", 1'000'000}, {"discard", "new"}}),
            "opened");
  EXPECT_EQ(refused_for({{"max_msgs_per_subject", 64}, {"discard", "old"}}), "opened");
}

// Otherwise a worker would find out, by failing to write its session again and again.
TEST_F(NatsGate, ABucketThatIsTooSmallForTheDocumentsIsRefusedWithTheNumber) {
  const Program program = nats_program({});
  if (!program.missing.empty()) GTEST_SKIP() << "SKIPPED: " << program.missing;
  const auto server = start(program);
  const nlohmann::json config{{"name", "KV_small"},
                              {"subjects", {"$KV.small.>"}},
                              {"storage", "file"},
                              {"max_msg_size", 400},
                              {"max_msgs_per_subject", 1}};
  ask(*server, "$JS.API.STREAM.CREATE.KV_small", config.dump());

  EXPECT_TRUE(coord::open_store(server->url("small"), {.value_bytes = 100}).has_value());
  const auto refused = coord::open_store(server->url("small"), {.value_bytes = 500});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::failed_precondition);
  EXPECT_NE(refused.error().text.find("cannot hold a value of 500 bytes"), std::string::npos)
      << refused.error().text;
}

TEST_F(NatsGate, AServerWithoutJetStreamIsNamed) {
  const Program program = nats_program({});
  if (!program.missing.empty()) GTEST_SKIP() << "SKIPPED: " << program.missing;
  Server server({.kind = Kind::nats, .program = program.path, .jetstream = false});
  ASSERT_TRUE(server.start());

  const auto store = coord::open_store(server.url("leases"), {.connect_timeout = seconds{1}});

  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().text,
            fmt::format("JetStream is not enabled on the server at {}: nobody answers its requests "
                        "(nats-server needs -js)",
                        server.member(0).address()));
}

// A history of 1, and no reads from replicas.
TEST_F(NatsGate, ABucketIsMadeForLeases) {
  const Program program = nats_program({});
  if (!program.missing.empty()) GTEST_SKIP() << "SKIPPED: " << program.missing;
  const auto server = start(program);
  ASSERT_NE(open(server->url("leases")), nullptr);

  const auto config = ask(*server, "$JS.API.STREAM.INFO.KV_leases")["config"];

  EXPECT_EQ(config["max_msgs_per_subject"], 1);
  EXPECT_EQ(config["num_replicas"], 1);
  EXPECT_EQ(config["storage"], "file");
  EXPECT_EQ(config.value("allow_direct", false), false);
  EXPECT_EQ(config.value("max_age", 0), 0);
}

}  // namespace
}  // namespace baton::stores
