// A real Kafka that demands TLS, certificates and logins (BATON_LONG: it takes its time to start).

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
constexpr const char* kSecret = "MARKED-KAFKA-31d0";
constexpr const char* kMark = "MARKED-";

const Certificates& files() { return Certificates::get(); }

class SecureKafka : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why = e2e::is_long_run() ? KafkaServer::missing() : "only with BATON_LONG=1";
    if (!why.empty()) {
      fmt::print("SKIPPED: {}\n", why);
      GTEST_SKIP() << why;
    }
    ASSERT_TRUE(server_.start());
  }
  static std::string keystore() {
    const Pair pair = files().server();
    return files().file("kafka.pem", e2e::read_file(pair.key) + e2e::read_file(pair.certificate));
  }
  /// Makes records at `url` with these flags, and runs a pipeline with these settings on them.
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
  void expect_refused(PipelineFolder::Settings settings, const std::string& text) {
    const e2e::BrokerProcess nobody;
    settings.emplace("dead_letters.url", "file:letters");
    const CommandResult refused = PipelineFolder(nobody, std::move(settings)).check();
    EXPECT_EQ(refused.exit_code, kUsage) << refused.err;
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
  expect_refused({{"source.url", "kafkas://" + server_.sasl_ssl() + topic},
                  {"source.tls.ca", files().ca()},
                  {"source.login.user", "worker"},
                  {"source.login.password", "MARKED-WRONG"}},
                 "Authentication failed");
  expect_refused({{"source.url", "kafka://" + server_.ssl() + topic}}, "speaks TLS");
  expect_refused(
      {{"source.url", "kafkas://" + server_.brokers() + topic}, {"source.tls.ca", files().ca()}},
      "speaks plain text");
  expect_refused(
      {{"source.url", "kafkas://" + server_.ssl() + topic}, {"source.tls.ca", files().ca()}},
      "certificate");
  expect_refused({{"source.url", "kafkas://" + server_.sasl_ssl() + topic},
                  {"source.tls.ca", files().other_ca()},
                  {"source.login.user", "worker"},
                  {"source.login.password", kSecret}},
                 "certificate");
}

}  // namespace
}  // namespace baton::secure_tests
