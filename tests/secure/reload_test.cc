// Which certificates a broker uses, at its start and after SIGHUP made it read them again.

#include <csignal>
#include <filesystem>

#include <gtest/gtest.h>

#include "e2e/broker_process.h"
#include "secure/certificates.h"

namespace baton::secure_tests {
namespace {

namespace fs = std::filesystem;

using e2e::BrokerProcess;
using e2e::CommandResult;
using e2e::TempFolder;
using Words = std::vector<std::string>;

constexpr int kUsage = 2;

const Certificates& files() { return Certificates::get(); }

void copy(const std::string& from, const std::string& to) {
  fs::copy_file(from, to, fs::copy_options::overwrite_existing);
}

/// A broker whose certificate, key and authority are files of the test's own.
class Reload : public ::testing::Test {
 protected:
  void serve(const Pair& pair) const {
    copy(pair.certificate, certificate_);
    copy(pair.key, key_);
  }
  void start(const Words& more = {}) {
    broker_.flags() = {"--tls-cert", certificate_, "--tls-key", key_};
    broker_.flags().insert(broker_.flags().end(), more.begin(), more.end());
    ASSERT_TRUE(broker_.start()) << broker_.log();
  }
  /// Sends SIGHUP and waits for the log line that begins with `event`.
  void reload(const std::string& event) {
    const std::size_t before = broker_.log().size();
    broker_.signal(SIGHUP);
    EXPECT_TRUE(e2e::eventually([&] {
      return broker_.log().substr(before).find("event=" + event) != std::string::npos;
    })) << broker_.log();
    last_ = broker_.log().substr(before);
  }
  /// Whether a client that trusts `authority`, and shows the certificate if any, can connect.
  [[nodiscard]] bool connects(const std::string& authority, const Pair& shown = {}) const {
    Words command{"queue", "list", "--timeout", "5s", "--tls-ca", authority};
    if (!shown.key.empty()) {
      command.insert(command.end(), {"--tls-cert", shown.certificate, "--tls-key", shown.key});
    }
    return broker_.cli(command).exit_code == 0;
  }

  TempFolder folder_;
  std::string certificate_ = folder_ / "server.pem";
  std::string key_ = folder_ / "server.key";
  BrokerProcess broker_;
  std::string last_;
};

// A certificate is renewed without a restart, and a broken one does no harm.
TEST_F(Reload, ANewCertificateServesNewConnectionsAndABrokenOneIsLeftAlone) {
  serve(files().server());
  start();
  ASSERT_TRUE(connects(files().ca()));
  ASSERT_FALSE(connects(files().other_ca()));

  e2e::write_file(certificate_, "no certificate");
  reload("reload_failed");
  EXPECT_NE(last_.find(certificate_), std::string::npos) << last_;
  EXPECT_TRUE(connects(files().ca()));

  // Half of a renewal: the new certificate with the old key.
  copy(files().renewed().certificate, certificate_);
  reload("reload_failed");
  EXPECT_NE(last_.find(key_), std::string::npos) << last_;
  EXPECT_TRUE(connects(files().ca()));

  serve(files().renewed());
  reload("reloaded");
  EXPECT_TRUE(connects(files().other_ca()));
  EXPECT_FALSE(connects(files().ca()));
}

// A renewal does not cut off calls in progress.
TEST_F(Reload, OpenConnectionsStay) {
  serve(files().server());
  start();
  client::ConnectionOptions connection = broker_.connection();
  connection.tls = client::TlsOptions{.ca_file = files().ca()};
  auto client = client::Broker::open(connection);
  ASSERT_TRUE(client.has_value());
  ASSERT_TRUE(client->queue("orders").create({}).has_value());

  serve(files().renewed());
  reload("reloaded");

  EXPECT_TRUE(client->queue("orders").drop().has_value());
}

TEST_F(Reload, TheAuthorityOfTheClientsChangesAndWhetherThereIsOneDoesNot) {
  const std::string authority = folder_ / "clients.pem";
  copy(files().ca(), authority);
  serve(files().server());
  const std::string config = folder_ / "config.yaml";
  e2e::write_file(config, "tls-ca: " + authority + "\n");
  start({"--config", config});
  ASSERT_TRUE(connects(files().ca(), files().client()));
  ASSERT_FALSE(connects(files().ca(), files().stranger()));
  EXPECT_TRUE(e2e::eventually([&] {
    return broker_.log().find("event=handshake_refused") != std::string::npos;
  })) << broker_.log();

  copy(files().other_ca(), authority);
  reload("reloaded");
  EXPECT_TRUE(connects(files().ca(), files().stranger()));
  EXPECT_FALSE(connects(files().ca(), files().client()));

  // A setting that is left out must not open the broker to everybody.
  e2e::write_file(config, "log-level: info\n");
  reload("reloaded");
  EXPECT_NE(last_.find("event=reload_ignored setting=tls-ca"), std::string::npos) << last_;
  EXPECT_FALSE(connects(files().ca()));
  EXPECT_TRUE(connects(files().ca(), files().stranger()));
}

// With another exit code a supervisor would restart the broker for ever.
TEST(ServerFiles, BadOnesAreUsageErrorsThatNameThemBeforeTheDiskIsTouched) {
  const TempFolder folder;
  const Pair good = files().server();
  const std::string junk = files().file("junk.pem", "junk");
  struct Case {
    Words flags;
    std::string named;
  };
  const std::vector<Case> cases = {
      {{"--tls-cert", junk, "--tls-key", junk}, junk},
      {{"--tls-cert", good.certificate, "--tls-key", files().client().key}, files().client().key},
      {{"--tls-cert", folder / "none.pem", "--tls-key", good.key}, folder / "none.pem"},
      {{"--tls-cert", good.certificate, "--tls-key", good.key, "--tls-ca", junk}, junk}};
  for (const Case& each : cases) {
    Words command{e2e::binary(), "server",      "--data", folder / "data",
                  "--listen",    "127.0.0.1:0", "--http", "off"};
    command.insert(command.end(), each.flags.begin(), each.flags.end());
    const CommandResult result = e2e::run_command(command, {.within = e2e::seconds{20}});
    EXPECT_EQ(result.exit_code, kUsage) << result.err;
    EXPECT_NE(result.err.find(each.named), std::string::npos) << result.err;
    EXPECT_FALSE(fs::exists(folder / "data")) << result.err;
  }
}

}  // namespace
}  // namespace baton::secure_tests
