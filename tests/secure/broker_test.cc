// A broker that demands TLS, and one that also demands client certificates: with the command line,
// workers and pipelines, and the errors when settings do not fit.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "e2e/broker_process.h"
#include "e2e/free_port.h"
#include "pipeline/orders.h"
#include "pipeline/pipeline_process.h"
#include "secure/certificates.h"
#include "worker/fleet.h"

namespace baton::secure_tests {
namespace {

using e2e::BrokerProcess;
using e2e::CommandResult;
using e2e::eventually;
using e2e::run_command;
using Words = std::vector<std::string>;

constexpr int kUsage = 2;
constexpr int kUnreachable = 5;

const Certificates& files() { return Certificates::get(); }

Words server_flags(const Pair& pair, const Words& more = {}) {
  Words flags{"--tls-cert", pair.certificate, "--tls-key", pair.key};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

CommandResult baton(Words arguments, Words environment = {}) {
  arguments.insert(arguments.begin(), e2e::binary());
  return run_command(std::move(arguments), {.environment = std::move(environment)});
}

/// All brokers are started together: each takes a second to start.
class SecureBroker : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    g_brokers = std::make_unique<Brokers>();
    for (BrokerProcess* broker :
         {&g_brokers->plain, &g_brokers->tls, &g_brokers->mutual, &g_brokers->elsewhere}) {
      ASSERT_TRUE(broker->start()) << broker->log();
    }
  }
  static void TearDownTestSuite() { g_brokers.reset(); }

  struct Brokers {
    BrokerProcess plain{};
    BrokerProcess tls{server_flags(files().server())};
    BrokerProcess mutual{server_flags(files().server(), {"--tls-ca", files().ca()})};
    BrokerProcess elsewhere{server_flags(files().elsewhere())};
  };
  static std::string plain() { return g_brokers->plain.address(); }
  static std::string tls() { return g_brokers->tls.address(); }
  static std::string mutual() { return g_brokers->mutual.address(); }

  static Words certificate_flags(const Pair& pair) {
    return {"--tls-ca", files().ca(), "--tls-cert", pair.certificate, "--tls-key", pair.key};
  }
  /// `baton queue list`, which must fail with this code and these words.
  static void expect_refused(const Words& flags, int exit_code, const std::string& text) {
    Words command{"queue", "list", "--timeout", "5s"};
    command.insert(command.end(), flags.begin(), flags.end());
    const CommandResult result = baton(command);
    EXPECT_EQ(result.exit_code, exit_code) << fmt::format("{}", fmt::join(command, " "));
    EXPECT_NE(result.err.find(text), std::string::npos) << result.err;
  }

  static inline std::unique_ptr<Brokers> g_brokers;
};

TEST_F(SecureBroker, TheCommandLineTakesFlagsUrlsAndVariables) {
  const Words list{"queue", "list"};
  const auto with = [&](const Words& flags) {
    Words all = list;
    all.insert(all.end(), flags.begin(), flags.end());
    return all;
  };
  const std::string ca = "BATON_TLS_CA=" + files().ca();
  const Pair client = files().client();

  EXPECT_EQ(baton(with({"--address", tls(), "--tls-ca", files().ca()})).exit_code, 0);
  EXPECT_EQ(baton(with({"--address", "batons://" + tls(), "--tls-ca", files().ca()})).exit_code, 0);
  EXPECT_EQ(baton(with({"--address", "batons://" + tls()}), {ca}).exit_code, 0);
  EXPECT_EQ(baton(list, {"BATON_ADDRESS=batons://" + tls(), ca}).exit_code, 0);
  EXPECT_EQ(baton(list, {"BATON_ADDRESS=" + tls(), ca}).exit_code, 0);
  // The variables of one broker do not affect another whose URL says plain text.
  EXPECT_EQ(baton(with({"--address", "baton://" + plain()}), {ca}).exit_code, 0);
  EXPECT_EQ(baton(list, {"BATON_ADDRESS=" + mutual(), ca, "BATON_TLS_CERT=" + client.certificate,
                         "BATON_TLS_KEY=" + client.key})
                .exit_code,
            0);
  EXPECT_EQ(baton(with({"--address", g_brokers->elsewhere.address(), "--tls-ca", files().ca(),
                        "--tls-server-name", "broker.example"}))
                .exit_code,
            0);
}

// A wrong file is found before a connection is made: nothing listens at this port.
TEST_F(SecureBroker, AFileThatIsNotWhatItShouldBeIsToldAtOnce) {
  const std::string nowhere = fmt::format("127.0.0.1:{}", e2e::free_port());
  const Pair client = files().client();
  const std::string junk = files().file("junk", "no PEM at all\n");
  const auto refused = [&](const Words& flags, const std::string& text) {
    Words all{"--address", nowhere};
    all.insert(all.end(), flags.begin(), flags.end());
    expect_refused(all, kUsage, text);
  };

  refused({"--tls-ca", client.key}, client.key + " holds a private key, and no certificate");
  refused({"--tls-ca", junk}, junk + " holds no certificate");
  refused({"--tls-ca", "/no/such/file"}, "cannot read the TLS file /no/such/file: No such file");
  refused({"--tls-cert", client.certificate}, client.certificate + " has no key");
  refused({"--tls-cert", client.certificate, "--tls-key", files().server().key},
          "the private key in " + files().server().key + " does not belong to the certificate in " +
              client.certificate);
}

TEST_F(SecureBroker, WhatDoesNotFitIsNamed) {
  const Pair client = files().client();
  expect_refused({"--address", tls()}, kUsage,
                 "the broker at " + tls() + " speaks TLS: write batons://, or give --tls-ca FILE");
  expect_refused({"--address", "batons://" + plain()}, kUsage,
                 "the broker at " + plain() + " speaks plain text: write baton://");
  expect_refused({"--address", plain(), "--tls-ca", files().ca()}, kUsage, "speaks plain text");
  expect_refused({"--address", mutual(), "--tls-ca", files().ca()}, kUsage,
                 "the broker at " + mutual() + " wants a client certificate: give --tls-cert");
  Words stranger = certificate_flags(files().stranger());
  stranger.insert(stranger.end(), {"--address", mutual()});
  expect_refused(stranger, kUsage,
                 "does not accept the certificate in " + files().stranger().certificate);
  expect_refused({"--address", tls(), "--tls-ca", files().other_ca()}, kUsage,
                 "has a certificate that " + files().other_ca() + " does not vouch for");
  expect_refused({"--address", g_brokers->elsewhere.address(), "--tls-ca", files().ca()}, kUsage,
                 "has a certificate of another name: give the name in it with --tls-server-name");
}

TEST_F(SecureBroker, AnAddressThatCannotBeIsNamed) {
  expect_refused({"--address", "no-such-host.invalid:7470"}, kUnreachable,
                 "no such host no-such-host.invalid");
  expect_refused({"--address", "127.0.0.1:99999"}, kUsage, "port 99999 is above 65535");
  expect_refused({"--address", "http://127.0.0.1:7470"}, kUsage,
                 "a broker's address is HOST:PORT, baton://HOST:PORT or batons://HOST:PORT");
}

TEST_F(SecureBroker, WorkersDivideTheirPartitionsOverMutualTls) {
  const std::string store = "batons://" + mutual();
  Words flags = certificate_flags(files().client());
  flags.insert(flags.end(), {"--profile", "fast"});
  worker_tests::Fleet fleet({.store = store, .flags = flags});
  fleet.start("one");
  fleet.start("two");
  EXPECT_TRUE(fleet.settles({{"one", 2}, {"two", 2}})) << fleet.story();

  const Pair client = files().client();
  const Words variables{"BATON_TLS_CA=" + files().ca(), "BATON_TLS_CERT=" + client.certificate,
                        "BATON_TLS_KEY=" + client.key, "BATON_ADDRESS=" + mutual()};
  const CommandResult status = baton({"worker", "status", "--group", "orders"}, variables);
  EXPECT_EQ(status.exit_code, 0) << status.err;
  EXPECT_NE(status.out.find("two"), std::string::npos) << status.out;
  const CommandResult refused = baton({"worker", "run", "--group", "orders", "--partitions", "4",
                                       "--store", store, "--tls-ca", files().ca()});
  EXPECT_EQ(refused.exit_code, kUsage);
  EXPECT_NE(refused.err.find("wants a client certificate"), std::string::npos) << refused.err;
  const CommandResult plain_text =
      baton({"worker", "status", "--group", "orders", "--store", "baton://" + mutual()});
  EXPECT_EQ(plain_text.exit_code, kUsage);
  EXPECT_NE(plain_text.err.find("speaks TLS: write batons://"), std::string::npos)
      << plain_text.err;
}

TEST_F(SecureBroker, APipelineReadsAndDeadLettersOverMutualTls) {
  const Pair client = files().client();
  const Words variables{"BATON_TLS_CA=" + files().ca(), "BATON_TLS_CERT=" + client.certificate,
                        "BATON_TLS_KEY=" + client.key};
  const std::string to = "batons://" + mutual();
  ASSERT_EQ(baton({"stream", "create", "orders", "--partitions", "2", "--address", to}, variables)
                .exit_code,
            0);
  const CommandResult made = baton({"pipeline", "generate", "orders", "--count", "300", "--broken",
                                    "1%", "--to", to + "/orders"},
                                   variables);
  ASSERT_EQ(made.exit_code, 0) << made.err;
  pipeline::PipelineFolder folder(
      g_brokers->mutual, {{"source.url", "batons-stream://" + mutual() + "/orders"},
                          {"source.tls.ca", files().ca()},
                          {"source.tls.certificate", client.certificate},
                          {"source.tls.key", client.key},
                          // On the same broker as the source.
                          {"dead_letters.url", "batons-queue://" + mutual() + "/letters"}});
  pipeline::PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(eventually([&] { return pipeline.ended() == 300; })) << pipeline.log();
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
  EXPECT_GT(pipeline::read_sqlite(folder.database()).rows.size(), 280U);
  const CommandResult letters =
      baton({"queue", "peek", "letters", "--json", "--address", to}, variables);
  EXPECT_NE(letters.out.find("baton-stage"), std::string::npos) << letters.out << letters.err;

  folder.settings().erase("source.tls.certificate");
  folder.settings().erase("source.tls.key");
  const CommandResult refused = folder.check();
  EXPECT_EQ(refused.exit_code, kUsage);
  EXPECT_NE(refused.err.find("wants a client certificate"), std::string::npos) << refused.err;
  folder.settings()["source.url"] = "baton-stream://" + mutual() + "/orders";
  folder.settings().erase("source.tls.ca");
  const CommandResult plain_text = folder.check();
  EXPECT_EQ(plain_text.exit_code, kUsage);
  EXPECT_NE(plain_text.err.find("speaks TLS"), std::string::npos) << plain_text.err;
  folder.settings()["source.tls.ca"] = client.key;
  const CommandResult wrong_file = folder.check();
  EXPECT_EQ(wrong_file.exit_code, kUsage);
  EXPECT_NE(wrong_file.err.find(client.key + " holds a private key, and no certificate"),
            std::string::npos)
      << wrong_file.err;
}

}  // namespace
}  // namespace baton::secure_tests
