#include "pipeline/kafka_server.h"

#include <unistd.h>

#include <csignal>
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "e2e/free_port.h"

#include "kafka/kafka_lookup.h"
#include "kafka/kafka_member.h"
#include "paths.h"

namespace baton::pipeline {
namespace {

constexpr e2e::seconds kWithin{60};
const std::string kJars = std::string(paths::kTools) + "/kafka";
constexpr const char* kCluster = "MkU3OEVBNTcwNTJENDM2Qg";

constexpr const char* kProperties = R"(process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
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

KafkaServer::KafkaServer() : port_(e2e::free_port()), controller_port_(e2e::free_port()) {
  e2e::write_file(
      folder_ / "properties",
      fmt::format(fmt::runtime(kProperties), fmt::arg("port", port_),
                  fmt::arg("controller", controller_port_), fmt::arg("data", folder_ / "data")));
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
  const auto made = e2e::run_command(
      java({"kafka.tools.StorageTool", "format", "-t", kCluster, "-c", folder_ / "properties"}));
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
