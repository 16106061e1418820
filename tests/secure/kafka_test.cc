// A real Kafka that demands TLS, certificates and logins: what works, and the errors of refused
// clients.

#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "e2e/broker_process.h"
#include "pipeline/kafka_server.h"
#include "pipeline/orders.h"
#include "pipeline/pipeline_process.h"
#include "secure/certificates.h"

namespace baton::secure_tests {
namespace {

using e2e::CommandResult;
using e2e::eventually;
using pipeline::KafkaServer;
using pipeline::PipelineFolder;
using Words = std::vector<std::string>;

constexpr int kUsage = 2;
constexpr int kUnavailable = 5;
constexpr const char* kSecret = "MARKED-KAFKA-31d0";
constexpr const char* kMark = "MARKED-";

const Certificates& files() { return Certificates::get(); }

class SecureKafka : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = KafkaServer::missing(); !why.empty()) {
      fmt::print("SKIPPED: {}\n", why);
      GTEST_SKIP() << why;
    }
    ASSERT_TRUE(server_.start());
  }
  static std::string keystore() {
    const Pair pair = files().server();
    return files().file("kafka.pem", e2e::read_file(pair.key) + e2e::read_file(pair.certificate));
  }
  /// Produces records at `url` with these flags, and runs a pipeline with these settings on them.
  static void expect_works(const std::string& url, Words flags, PipelineFolder::Settings settings) {
    Words command{e2e::binary(), "pipeline", "generate", "orders", "--count",
                  "200",         "--broken", "1%",       "--to",   url};
    command.insert(command.end(), flags.begin(), flags.end());
    const CommandResult made = e2e::run_command(command);
    ASSERT_EQ(made.exit_code, 0) << made.err;
    settings["source.url"] = url;
    settings["dead_letters.url"] = url + "-letters";
    const e2e::BrokerProcess nobody;
    PipelineFolder folder(nobody, settings);
    const CommandResult checked = folder.check();
    EXPECT_EQ(checked.exit_code, 0) << checked.err;
    pipeline::PipelineProcess pipeline(folder);
    ASSERT_TRUE(pipeline.start());
    EXPECT_TRUE(eventually([&] { return pipeline.ended() == 200; }, e2e::seconds{60}))
        << pipeline.log();
    EXPECT_EQ(pipeline.status().dump().find(kMark), std::string::npos);
    EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
    const CommandResult letters = e2e::run_command(
        {e2e::binary(), "pipeline", "dlq", "ls", "orders", "--config", folder.config()},
        {.environment = folder.environment()});
    EXPECT_EQ(letters.exit_code, 0) << letters.err;
    EXPECT_NE(letters.out.find("decode"), std::string::npos) << letters.out;
    for (const std::string& text :
         {made.err, made.out, checked.out, checked.err, pipeline.log(), pipeline.out()}) {
      EXPECT_EQ(text.find(kMark), std::string::npos) << text;
    }
  }
  /// `check` says `text`, and shows no secret.
  static void expect_refused(PipelineFolder::Settings settings, const std::string& text,
                             int exit_code = kUsage) {
    const e2e::BrokerProcess nobody;
    settings.emplace("dead_letters.url", "file:letters");
    const CommandResult refused = PipelineFolder(nobody, std::move(settings)).check();
    EXPECT_EQ(refused.exit_code, exit_code) << refused.err;
    EXPECT_NE(refused.err.find(text), std::string::npos) << refused.err << "\ninstead of " << text;
    EXPECT_EQ(refused.err.find(kMark), std::string::npos) << refused.err;
  }

  KafkaServer server_{
      {.certificate = keystore(), .ca = files().ca(), .user = "worker", .password = kSecret}};
};

TEST_F(SecureKafka, TlsLoginsAndWhatIsRefused) {
  const Pair pair = files().client();
  const std::string password = files().file("kafka-password", kSecret);
  expect_works("kafkas://" + server_.ssl() + "/with-certificates",
               {"--tls-ca", files().ca(), "--tls-cert", pair.certificate, "--tls-key", pair.key},
               {{"source.tls.ca", files().ca()},
                {"source.tls.certificate", pair.certificate},
                {"source.tls.key", pair.key}});
  expect_works("kafkas://" + server_.sasl_ssl() + "/with-plain",
               {"--tls-ca", files().ca(), "--user", "worker", "--password-file", password},
               {{"source.tls.ca", files().ca()},
                {"source.login.user", "worker"},
                {"source.login.password", kSecret}});
  expect_works("kafka://" + server_.sasl_plain() + "/with-scram",
               {"--user", "worker", "--password-file", password, "--mechanism", "SCRAM-SHA-256"},
               {{"source.login.user", "worker"},
                {"source.login.password_file", password},
                {"source.login.mechanism", "SCRAM-SHA-256"}});

  const std::string topic = "/with-plain";
  const PipelineFolder::Settings login{{"source.url", "kafkas://" + server_.sasl_ssl() + topic},
                                       {"source.tls.ca", files().ca()},
                                       {"source.login.user", "worker"},
                                       {"source.login.password", kSecret}};
  // Each of them mostly waits, so they run at the same time.
  std::vector<std::jthread> checks;
  const auto refused = [&](const PipelineFolder::Settings& settings, const std::string& text,
                           int exit_code = kUsage) {
    checks.emplace_back([=] { expect_refused(settings, text, exit_code); });
  };
  const auto with = [&](const PipelineFolder::Settings& others) {
    PipelineFolder::Settings all = login;
    for (const auto& [name, value] : others) all[name] = value;
    return all;
  };
  refused(with({{"source.login.password", "MARKED-WRONG"}}),
          "source.url: Kafka refuses the login: look at --user, --password-file and "
          "--mechanism (login.user, login.password_file, login.mechanism)");
  refused(with({{"source.tls.ca", files().other_ca()}}),
          "has a certificate that " + files().other_ca() +
              " does not vouch for: give the authority that signed it with --tls-ca");
  // Dead letters have their own settings, and their errors name them.
  refused(with({{"dead_letters.url", "kafkas://" + server_.sasl_ssl() + "/letters"},
                {"dead_letters.tls.ca", files().ca()},
                {"dead_letters.login.user", "worker"},
                {"dead_letters.login.password", "MARKED-WRONG"}}),
          "dead_letters.url: Kafka refuses the login");
  refused({{"source.url", login.at("source.url")}, {"source.tls.ca", files().ca()}},
          "it wants a login (give --user and --password-file; login.user and "
          "login.password_file), or is not up yet",
          kUnavailable);
  refused({{"source.url", "kafka://" + server_.ssl() + topic}}, "speaks TLS: write kafkas://");
  refused(
      {{"source.url", "kafkas://" + server_.brokers() + topic}, {"source.tls.ca", files().ca()}},
      "it speaks plain text (kafka://), or is not up yet", kUnavailable);
  refused({{"source.url", "kafkas://" + server_.ssl() + topic}, {"source.tls.ca", files().ca()}},
          "wants a client certificate: give --tls-cert and --tls-key");
}

}  // namespace
}  // namespace baton::secure_tests
