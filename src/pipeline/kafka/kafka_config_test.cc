#include "pipeline/kafka/kafka_config.h"

#include <gtest/gtest.h>

namespace baton::pipeline {
namespace {

using client::SecurityOptions;
using client::TlsOptions;

std::string error_of(const KafkaConfParts& parts) {
  const auto conf = make_conf(parts);
  return conf.has_value() ? "none" : conf.error().text;
}

TEST(KafkaConfig, TlsAndLoginBecomeProperties) {
  EXPECT_EQ(security_properties({}).value(), KafkaProperties{});
  EXPECT_EQ(security_properties({.tls = TlsOptions{.ca_file = "ca.pem"}}).value(),
            (KafkaProperties{{"security.protocol", "ssl"}, {"ssl.ca.location", "ca.pem"}}));
  EXPECT_EQ(security_properties({.tls = TlsOptions{.certificate_file = "c", .key_file = "k"},
                                 .user = "ann",
                                 .password = "p"})
                .value(),
            (KafkaProperties{{"security.protocol", "sasl_ssl"},
                             {"ssl.certificate.location", "c"},
                             {"ssl.key.location", "k"},
                             {"sasl.mechanism", "PLAIN"},
                             {"sasl.username", "ann"},
                             {"sasl.password", "p"}}));
  EXPECT_EQ(security_properties({.user = "ann", .password = "p", .mechanism = "SCRAM-SHA-512"})
                .value()[0]
                .second,
            "sasl_plaintext");
}

// The library must know every property: Debian's has TLS, PLAIN and SCRAM.
TEST(KafkaConfig, TheLibraryTakesThem) {
  for (const char* mechanism : {"", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}) {
    auto conf = make_conf(
        {.security = {
             .tls = TlsOptions{}, .user = "ann", .password = "p", .mechanism = mechanism}});
    ASSERT_TRUE(conf.has_value()) << conf.error().text;
    EXPECT_TRUE(make_handle(RD_KAFKA_CONSUMER, *std::move(conf)).has_value()) << mechanism;
  }
}

TEST(KafkaConfig, WhatFollowsFromSettingsCannotBeAProperty) {
  const SecurityOptions tls{.tls = TlsOptions{}};
  EXPECT_NE(error_of({.wanted = {{"security.protocol", "plaintext"}}, .security = tls})
                .find("security.protocol cannot be set"),
            std::string::npos);
  EXPECT_NE(error_of({.wanted = {{"sasl.mechanisms", "PLAIN"}},
                      .security = {.user = "ann", .password = "MARKED"}})
                .find("sasl.mechanisms cannot be set"),
            std::string::npos);
  EXPECT_EQ(error_of({.wanted = {{"security.protocol", "ssl"}}}), "none");
  EXPECT_EQ(error_of({.security = {.token = "MARKED"}}),
            "Kafka takes a user and a password, and no other login");
}

}  // namespace
}  // namespace baton::pipeline
