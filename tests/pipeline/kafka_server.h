#pragma once

#include <memory>
#include <string>
#include <vector>

#include "e2e/process.h"
#include "pipeline/kafka/kafka_handles.h"

namespace baton::pipeline {

/// A real Kafka for the test: one broker that is its own controller, on free ports of 127.0.0.1.
/// Topics are created when first written to, with four partitions.
class KafkaServer {
 public:
  /// Why there is no Kafka here; empty if there is.
  static std::string missing();

  /// What a broker requires of its clients, on extra ports beside the plain one.
  struct Security {
    std::string certificate{};  // PEM: private key, certificate.
    std::string ca{};           // Of clients, which need a certificate at `ssl`.
    std::string user{};         // At `sasl_ssl` and `sasl_plain`: PLAIN and SCRAM-SHA-256.
    std::string password{};
  };
  KafkaServer() : KafkaServer(Security{}) {}
  explicit KafkaServer(const Security& security);

  /// Starts on the same port and data as before. A failure fails the test.
  bool start();
  /// SIGTERM, and waits for the end.
  void stop();
  /// SIGKILL.
  void kill();

  [[nodiscard]] std::string brokers() const;
  /// With Security.
  [[nodiscard]] std::string ssl() const { return ssl_; }
  [[nodiscard]] std::string sasl_ssl() const { return sasl_ssl_; }
  [[nodiscard]] std::string sasl_plain() const { return sasl_plain_; }
  [[nodiscard]] std::string log() const { return e2e::read_file(folder_ / "log"); }

 private:
  [[nodiscard]] std::vector<std::string> java(std::vector<std::string> arguments) const;
  bool format();
  bool answers() const;

  e2e::TempFolder folder_;
  int port_;
  int controller_port_;
  std::string ssl_;
  std::string sasl_ssl_;
  std::string sasl_plain_;
  std::vector<std::string> format_flags_;
  bool is_formatted_ = false;
  std::unique_ptr<e2e::ChildProcess> child_;
};

}  // namespace baton::pipeline
