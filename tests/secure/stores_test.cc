// NATS and etcd that demand TLS and a login: with workers and pipelines, and the errors of refused
// ones. No output, log or status holds a secret.

#include <atomic>
#include <chrono>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "e2e/broker_process.h"
#include "pipeline/pipeline_process.h"
#include "secure/certificates.h"
#include "stores/server.h"
#include "worker/fleet.h"
#include "worker/nats/nats_link.h"
#include "worker/registry/registry.h"

namespace baton::secure_tests {
namespace {

using coord::open_store;
using e2e::CommandResult;
using e2e::eventually;
using std::chrono::seconds;
using stores::Kind;
using stores::Server;
using Words = std::vector<std::string>;

constexpr int kUsage = 2;
constexpr Duration kTimeout = seconds(10);
// The secret, which must appear nowhere.
constexpr const char* kSecret = "MARKED-PASSWORD-5c1f";
constexpr const char* kToken = "MARKED-TOKEN-77ab";
constexpr const char* kMark = "MARKED-";

const Certificates& files() { return Certificates::get(); }

client::SecurityOptions with_ca() { return {.tls = client::TlsOptions{.ca_file = files().ca()}}; }
client::SecurityOptions with_client(const Pair& pair) {
  return {.tls = client::TlsOptions{
              .ca_file = files().ca(), .certificate_file = pair.certificate, .key_file = pair.key}};
}

CommandResult baton(Words arguments, Words environment = {}) {
  arguments.insert(arguments.begin(), e2e::binary());
  CommandResult result =
      e2e::run_command(std::move(arguments), {.environment = std::move(environment)});
  EXPECT_EQ(result.out.find(kMark), std::string::npos) << result.out;
  EXPECT_EQ(result.err.find(kMark), std::string::npos) << result.err;
  return result;
}

/// The error of open_store(), which must say that settings are wrong, without a secret.
std::string refusal(const std::string& url, const client::SecurityOptions& security) {
  const auto store = open_store(url, {.connect_timeout = kTimeout, .security = security});
  if (store) return "none";
  EXPECT_EQ(store.error().code, Errc::invalid_argument) << store.error().text;
  EXPECT_EQ(store.error().text.find(kMark), std::string::npos) << store.error().text;
  return store.error().text;
}

void expect_refusal(const std::string& url, const client::SecurityOptions& security,
                    const std::string& text) {
  const std::string said = refusal(url, security);
  EXPECT_NE(said.find(text), std::string::npos) << said << "\ninstead of: " << text;
}

void expect_works(const std::string& url, const client::SecurityOptions& security) {
  const auto store = open_store(url, {.connect_timeout = kTimeout, .security = security});
  ASSERT_TRUE(store.has_value()) << store.error().text;
  EXPECT_TRUE((*store)->cas("g.a", 0, "value", std::nullopt, kTimeout).has_value());
}

std::unique_ptr<Server> start(const stores::ServerOptions& options) {
  if (const std::string why = Server::missing(options); !why.empty()) {
    fmt::print("SKIPPED: {}\n", why);
    return nullptr;
  }
  auto server = std::make_unique<Server>(options);
  EXPECT_TRUE(server->start());
  return server;
}

Words nats_tls() {
  const Pair pair = files().server();
  return {"--tls", "--tlscert", pair.certificate, "--tlskey", pair.key};
}

/// The same address with another scheme.
std::string in_plain(std::string url) { return url.erase(url.find("s://"), 1); }

TEST(SecureNats, TlsWithUserAndPassword) {
  Words flags = nats_tls();
  flags.insert(flags.end(), {"--user", "worker", "--pass", kSecret});
  const auto server = start({.kind = Kind::nats, .tls = true, .flags = flags});
  if (server == nullptr) GTEST_SKIP();
  const std::string url = server->url("leases");
  client::SecurityOptions right = with_ca();
  right.user = "worker";
  right.password = kSecret;

  expect_works(url, right);
  expect_works("tls" + url.substr(url.find("://")), right);
  expect_works(in_plain(url), right);  // The file asks for TLS.
  client::SecurityOptions wrong = right;
  wrong.password = "MARKED-WRONG";
  expect_refusal(url, wrong, "refuses the login");
  expect_refusal(url, with_ca(), "wants a login: give --user and --password-file");
  wrong = right;
  wrong.tls.reset();
  expect_refusal(in_plain(url), wrong, "speaks TLS: write natss://");
  wrong.tls = client::TlsOptions{.ca_file = files().other_ca()};
  expect_refusal(url, wrong, "the TLS handshake failed");

  const std::string password = files().file("password", std::string(kSecret) + "\n");
  worker_tests::Fleet fleet({.store = url,
                             .flags = {"--profile", "fast", "--tls-ca", files().ca(), "--user",
                                       "worker", "--password-file", password}});
  auto& worker = fleet.start("one");
  EXPECT_TRUE(fleet.settles({{"one", 4}})) << fleet.story();
  const CommandResult status =
      baton({"worker", "status", "--group", "orders", "--store", url, "--json"},
            {"BATON_TLS_CA=" + files().ca(), "BATON_USER=worker",
             fmt::format("BATON_PASSWORD={}", kSecret)});
  EXPECT_EQ(status.exit_code, 0) << status.err;
  EXPECT_EQ(worker.leave(), 0) << worker.err();
  EXPECT_EQ(worker.err().find(kMark), std::string::npos) << worker.err();
  const CommandResult refused =
      baton({"worker", "run", "--group", "orders", "--partitions", "4", "--store", url, "--json"},
            {"BATON_TLS_CA=" + files().ca(), "BATON_USER=worker", "BATON_PASSWORD=MARKED-WRONG"});
  EXPECT_EQ(refused.exit_code, kUsage) << refused.err;
  EXPECT_NE(refused.err.find("refuses the login"), std::string::npos) << refused.err;
}

// The certificate has to name the server that was asked for.
TEST(SecureNats, ACertificateOfAnotherNameIsRefused) {
  const Pair pair = files().elsewhere();
  const auto server =
      start({.kind = Kind::nats,
             .tls = true,
             .flags = {"--tls", "--tlscert", pair.certificate, "--tlskey", pair.key}});
  if (server == nullptr) GTEST_SKIP();
  client::SecurityOptions named = with_ca();
  named.tls->server_name = "broker.example";

  expect_works(server->url("leases"), named);
  expect_refusal(server->url("leases"), with_ca(), "the TLS handshake failed");
}

TEST(SecureNats, ATokenWithoutTls) {
  const auto server = start({.kind = Kind::nats, .flags = {"--auth", kToken}});
  if (server == nullptr) GTEST_SKIP();
  const std::string url = server->url("leases");

  expect_works(url, {.token = kToken});
  expect_refusal(url, {.token = "MARKED-WRONG"}, "refuses the login");
  expect_refusal(url, {}, "wants a login");
  client::SecurityOptions tls = with_ca();
  tls.token = kToken;
  expect_refusal("natss" + url.substr(url.find("://")), tls, "speaks plain text: write nats://");
  const CommandResult status =
      baton({"worker", "status", "--group", "orders", "--store", url, "--json"},
            {fmt::format("BATON_TOKEN={}", kToken)});
  EXPECT_EQ(status.exit_code, 3) << status.err;  // There is no such group.
}

TEST(SecureNats, APipelineReadsWithClientCertificateAndToken) {
  Words flags = nats_tls();
  flags.insert(flags.end(), {"--tlsverify", "--tlscacert", files().ca(), "--auth", kToken});
  const auto server = start({.kind = Kind::nats, .tls = true, .flags = flags});
  if (server == nullptr) GTEST_SKIP();
  const std::string address = server->member(0).address();
  client::SecurityOptions security = with_client(files().client());
  security.token = kToken;
  {
    const coord::Deadline deadline(kTimeout);
    const auto link = coord::NatsLink::connect({address}, deadline, security);
    ASSERT_TRUE(link.has_value()) << link.error().text;
    const nlohmann::json config{
        {"name", "ORDERS"}, {"subjects", {"orders.>"}}, {"storage", "file"}};
    const auto made = (*link)->api("$JS.API.STREAM.CREATE.ORDERS", config.dump(), deadline);
    ASSERT_TRUE(made.has_value() && !made->contains("error"));
  }
  const std::string url = "natss://" + address + "/ORDERS/orders.{partition}";
  const Pair pair = files().client();
  const std::string token = files().file("token", std::string(kToken) + "\n");
  const CommandResult made =
      baton({"pipeline", "generate", "orders", "--count", "200", "--partitions", "2", "--to", url,
             "--tls-ca", files().ca(), "--tls-cert", pair.certificate, "--tls-key", pair.key,
             "--token-file", token});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  e2e::BrokerProcess broker;  // Only for its name in the config: letters go to a file.
  pipeline::PipelineFolder folder(broker, {{"source.url", url},
                                           {"source.partitions", "2"},
                                           {"source.tls.ca", files().ca()},
                                           {"source.tls.certificate", pair.certificate},
                                           {"source.tls.key", pair.key},
                                           {"source.login.token_file", token},
                                           {"dead_letters.url", "file:letters"}});
  pipeline::PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(eventually([&] { return pipeline.ended() == 200; })) << pipeline.log();
  EXPECT_EQ(pipeline.status().dump().find(kMark), std::string::npos);
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
  EXPECT_EQ((pipeline.log() + pipeline.out()).find(kMark), std::string::npos) << pipeline.log();

  folder.settings().erase("source.login.token_file");
  folder.settings()["source.login.token"] = "MARKED-WRONG";
  const CommandResult refused = folder.check();
  EXPECT_EQ(refused.exit_code, kUsage) << refused.err;
  EXPECT_NE(refused.err.find("refuses the login"), std::string::npos) << refused.err;
  EXPECT_EQ(refused.err.find(kMark), std::string::npos) << refused.err;
  folder.settings().erase("source.tls.certificate");
  folder.settings().erase("source.tls.key");
  const CommandResult uncertified = folder.check();
  EXPECT_EQ(uncertified.exit_code, kUsage) << uncertified.err;
  EXPECT_NE(uncertified.err.find("want a client certificate"), std::string::npos)
      << uncertified.err;
}

TEST(SecureEtcd, TlsWithClientCertificates) {
  const Pair pair = files().server();
  const auto server = start({.kind = Kind::etcd,
                             .tls = true,
                             .flags = {"--cert-file", pair.certificate, "--key-file", pair.key,
                                       "--client-cert-auth", "--trusted-ca-file", files().ca()}});
  if (server == nullptr) GTEST_SKIP();
  const std::string url = server->url("leases");

  expect_works(url, with_client(files().client()));
  expect_refusal(url, with_ca(), "wants a client certificate");
  expect_refusal(url, with_client(files().stranger()), "does not accept the certificate in");
  expect_refusal(in_plain(url), {}, "speaks TLS: write etcds://");
  client::SecurityOptions untrusted = with_client(files().client());
  untrusted.tls->ca_file = files().other_ca();
  expect_refusal(url, untrusted, "does not vouch for");

  worker_tests::Fleet fleet(
      {.store = url,
       .flags = {"--profile", "fast", "--tls-ca", files().ca(), "--tls-cert",
                 files().client().certificate, "--tls-key", files().client().key}});
  fleet.start("one");
  EXPECT_TRUE(fleet.settles({{"one", 4}})) << fleet.story();
}

/// etcd's users are created with its JSON API.
void post(httplib::Client& http, const std::string& path, const nlohmann::json& body) {
  const auto answer = http.Post("/v3/auth/" + path, body.dump(), "application/json");
  ASSERT_TRUE(answer && answer->status == 200) << path << (answer ? answer->body : "");
}

TEST(SecureEtcd, UserAndPasswordWithTokensThatEnd) {
  const auto server = start({.kind = Kind::etcd, .flags = {"--auth-token-ttl", "1"}});
  if (server == nullptr) GTEST_SKIP();
  const std::string url = server->url("leases");
  client::SecurityOptions right{.user = "worker", .password = kSecret};
  expect_refusal(url, right, "has no logins: leave out the user");
  httplib::Client http("http://" + server->member(0).address());
  post(http, "user/add", {{"name", "root"}, {"password", "MARKED-ROOT"}});
  post(http, "role/add", {{"name", "root"}});
  post(http, "user/grant", {{"user", "root"}, {"role", "root"}});
  post(http, "user/add", {{"name", "worker"}, {"password", kSecret}});
  post(http, "role/add", {{"name", "workers"}});
  post(http, "role/grant",
       {{"name", "workers"},
        {"perm",
         {{"permType", "READWRITE"},
          {"key", base64("leases/")},
          {"range_end", base64("leases0")}}}});
  post(http, "user/grant", {{"user", "worker"}, {"role", "workers"}});
  post(http, "enable", nlohmann::json::object());

  const auto store = open_store(url, {.connect_timeout = kTimeout, .security = right});
  ASSERT_TRUE(store.has_value()) << store.error().text;
  EXPECT_TRUE((*store)->cas("g.a", 0, "value", std::nullopt, kTimeout).has_value());
  // After a second without a call etcd forgets the token, and after a restart all tokens.
  std::this_thread::sleep_for(seconds(3));
  EXPECT_EQ((*store)->get("g.a", kTimeout).value()->value, "value");
  server->stop();
  ASSERT_TRUE(server->start());
  const auto found = (*store)->get("g.a", kTimeout);
  ASSERT_TRUE(found.has_value()) << found.error().text;
  std::atomic<int> seen = 0;
  const auto watch =
      (*store)->watch({.prefix = "g."}, [&](const coord::WatchEvent&) { ++seen; }, kTimeout);
  ASSERT_TRUE(watch.has_value());
  EXPECT_TRUE(eventually([&] { return seen >= 2; }));  // The key, and the snapshot's end.

  client::SecurityOptions wrong = right;
  wrong.password = "MARKED-WRONG";
  expect_refusal(url, wrong, "refuses the login of user worker");
  expect_refusal(url, {}, "wants a login: give --user and --password-file");
  worker_tests::Fleet fleet({.store = url, .flags = {"--profile", "fast", "--user", "worker"}});
  auto& worker = fleet.start("one", {}, {fmt::format("BATON_PASSWORD={}", kSecret)});
  EXPECT_TRUE(fleet.settles({{"one", 4}})) << fleet.story();
  EXPECT_EQ(worker.leave(), 0) << worker.err();
  EXPECT_EQ((fleet.story() + worker.err()).find(kMark), std::string::npos) << fleet.story();
}

}  // namespace
}  // namespace baton::secure_tests
