#include "pipeline/app/registry.h"

#include <array>

#include <gtest/gtest.h>

#include "pipeline/app/check_report.h"
#include "pipeline/baton/kind.h"
#include "pipeline/kafka/kind.h"

namespace baton::pipeline {
namespace {

std::string error_of(const Result<Endpoint>& endpoint) {
  return endpoint.has_value() ? "none" : endpoint.error().text;
}

// No factory has a default kind: the error for a mistyped kind lists the known kinds.
TEST(Registry, AnUnknownKindIsAnErrorThatListsTheKnownOnes) {
  EXPECT_EQ(error_of(parse_source_url("redis://127.0.0.1:6379/orders")),
            "'redis://127.0.0.1:6379/orders' is none of baton-stream://HOST:PORT/STREAM, "
            "baton-queue://HOST:PORT/QUEUE, kafka://HOST:PORT[,HOST:PORT...]/TOPIC, "
            "nats://HOST:PORT[,HOST:PORT...]/STREAM/SUBJECT.{partition}");
  EXPECT_EQ(error_of(parse_sink_url("mysql://shop")),
            "'mysql://shop' is none of sqlite:PATH, postgres://USER@HOST:PORT/DATABASE, "
            "http://HOST:PORT/PATH, stdout");
  EXPECT_EQ(error_of(parse_dead_letters_url("s3://letters")),
            "'s3://letters' is none of baton-queue://HOST:PORT/QUEUE, "
            "kafka://HOST:PORT[,HOST:PORT...]/TOPIC, file:PATH");
}

// A kind of sink cannot be used as a source, nor a kind of source as a sink.
TEST(Registry, AKindIsOnlyWhatItsTableSays) {
  EXPECT_NE(error_of(parse_source_url("sqlite:orders.db")), "none");
  EXPECT_NE(error_of(parse_sink_url("kafka://127.0.0.1:9092/orders")), "none");
  EXPECT_NE(error_of(parse_dead_letters_url("nats://127.0.0.1:4222/ORDERS/orders")), "none");
}

TEST(Registry, AKindThatIsSwitchedOffSaysHowToSwitchItOn) {
  constexpr std::array kKinds{KnownKind{.end = &kQueueEnd},
                              KnownKind{.end = &kKafkaEnd, .is_on = false}};
  EXPECT_EQ(error_of(parse_url("kafkas://127.0.0.1:9092/orders", kKinds)),
            "this build has no kafka: build it with -DBATON_WITH_KAFKA=ON");
  EXPECT_EQ(error_of(parse_url("redis://a", kKinds)),
            "'redis://a' is none of baton-queue://HOST:PORT/QUEUE");
}

TEST(Registry, ASourceIsFoundBesideItsDeadLetters) {
  const Endpoint queue = parse_dead_letters_url("batons-queue://127.0.0.1:7470/orders.dlq").value();
  EXPECT_EQ(source_beside(queue, "baton-stream:orders").value().url,
            "baton-stream://127.0.0.1:7470/orders");
  EXPECT_FALSE(source_beside(queue, "kafka:orders").has_value());
  EXPECT_FALSE(source_beside(queue, "orders").has_value());
}

TEST(CheckReport, SaysWhatWasMadeAndWhatWouldBe) {
  const CheckReport report{.source = {fact("reads stream orders"), warning("look out")},
                           .sink = {missing(true, "", "orders.db"), missing(true, "table", "items"),
                                    missing(false, "table", "orders")},
                           .dead_letters = missing(false, "queue", "orders.dlq"),
                           .sink_name = "sqlite:orders.db",
                           .exactly_once = true,
                           .dead_letters_name = "baton-queue:orders.dlq"};

  EXPECT_EQ(to_sentences(report),
            (std::vector<std::string>{"reads stream orders", "warning: look out", "made orders.db",
                                      "made table items", "would make table orders",
                                      "would create the queue orders.dlq",
                                      "writes to sqlite:orders.db, exactly_once_effect",
                                      "what cannot be written goes to baton-queue:orders.dlq"}));
}

}  // namespace
}  // namespace baton::pipeline
