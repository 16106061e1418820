#include "pipeline/kafka_server.h"

#include <unistd.h>

#include <csignal>
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "e2e/free_port.h"
#include "paths.h"
#include "pipeline/kafka/kafka_lookup.h"
#include "pipeline/kafka/kafka_member.h"

namespace baton::pipeline {
namespace {

constexpr e2e::seconds kWithin{60};
const std::string kJars = std::string(paths::kTools) + "/kafka";
constexpr const char* kCluster = "MkU3OEVBNTcwNTJENDM2Qg";

constexpr const char* kProperties = R"(process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}{more}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}{more}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
num.partitions=4
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
controlled.shutdown.enable=false
)";

constexpr const char* kSecurity = R"(ssl.keystore.type=PEM
ssl.keystore.location={certificate}
ssl.truststore.type=PEM
ssl.truststore.location={ca}
listener.name.ssl.ssl.client.auth=required
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256
listener.name.{listener}.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}="{password}";
listener.name.{listener}.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
)";

constexpr const char* kLogging = R"(log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %m (%c)%n
)";

}  // namespace

std::string KafkaServer::missing() {
  if (!std::filesystem::exists(kJars)) {
    return "there is no Kafka here: ./dev setup gets it where Maven and Java are installed";
  }
  if (e2e::run_command({"/usr/bin/env", "java", "-version"}).exit_code != 0) {
    return "Kafka is here, but no Java to run it";
  }
  return {};
}

KafkaServer::KafkaServer(const Security& security)
    : port_(e2e::free_port()), controller_port_(e2e::free_port()) {
  std::string more;
  std::string settings;
  if (!security.certificate.empty()) {
    ssl_ = fmt::format("127.0.0.1:{}", e2e::free_port());
    sasl_ssl_ = fmt::format("127.0.0.1:{}", e2e::free_port());
    sasl_plain_ = fmt::format("127.0.0.1:{}", e2e::free_port());
    more = fmt::format(",SSL://{},SASL_SSL://{},SASL_PLAINTEXT://{}", ssl_, sasl_ssl_, sasl_plain_);
    for (const char* listener : {"sasl_ssl", "sasl_plaintext"}) {
      settings +=
          fmt::format(fmt::runtime(kSecurity), fmt::arg("certificate", security.certificate),
                      fmt::arg("ca", security.ca), fmt::arg("listener", listener),
                      fmt::arg("user", security.user), fmt::arg("password", security.password));
    }
    format_flags_ = {"--add-scram", fmt::format("SCRAM-SHA-256=[name={},password={}]",
                                                security.user, security.password)};
  }
  e2e::write_file(folder_ / "properties",
                  fmt::format(fmt::runtime(kProperties), fmt::arg("port", port_),
                              fmt::arg("controller", controller_port_),
                              fmt::arg("data", folder_ / "data"), fmt::arg("more", more)) +
                      settings);
  e2e::write_file(folder_ / "log4j.properties", kLogging);
}

std::string KafkaServer::brokers() const { return fmt::format("127.0.0.1:{}", port_); }

std::vector<std::string> KafkaServer::java(std::vector<std::string> arguments) const {
  std::vector<std::string> command{
      "/usr/bin/env",
      "java",
      "-Xmx512m",
      "-XX:TieredStopAtLevel=1",
      fmt::format("-Dlog4j.configuration=file:{}", folder_ / "log4j.properties"),
      "-cp",
      fmt::format("{}/*", kJars)};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

bool KafkaServer::format() {
  if (is_formatted_) return true;
  std::vector<std::string> command{"kafka.tools.StorageTool", "format", "-t", kCluster, "-c",
                                   folder_ / "properties"};
  command.insert(command.end(), format_flags_.begin(), format_flags_.end());
  const auto made = e2e::run_command(java(std::move(command)));
  EXPECT_EQ(made.exit_code, 0) << made.out << made.err;
  is_formatted_ = made.exit_code == 0;
  return is_formatted_;
}

bool KafkaServer::answers() const {
  KafkaSourceOptions options;
  options.brokers = brokers();
  options.topic = options.group = "is-anybody-there";
  const KafkaHandle handle = make_onlooker(options).value();
  const auto found = count_partitions(*handle, options.topic, std::chrono::seconds(1));
  return found.has_value() || found.error().code == Errc::not_found;
}

bool KafkaServer::start() {
  if (!format()) return false;
  child_ = std::make_unique<e2e::ChildProcess>(
      e2e::ChildProcess::Options{.command = java({"kafka.Kafka", folder_ / "properties"}),
                                 .out_file = folder_ / "log",
                                 .err_file = folder_ / "log"});
  const bool up =
      e2e::eventually([&] { return child_->exit_code().has_value() || answers(); }, kWithin) &&
      !child_->exit_code().has_value();
  if (!up) ADD_FAILURE() << "Kafka did not start: " << log();
  return up;
}

void KafkaServer::stop() {
  child_->signal(SIGTERM);
  if (!child_->wait(kWithin)) {
    ADD_FAILURE() << "Kafka does not end: " << log();
    child_->kill();
  }
}

void KafkaServer::kill() { child_->kill(); }

}  // namespace baton::pipeline
