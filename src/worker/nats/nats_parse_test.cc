#include <gtest/gtest.h>

#include "worker/nats/nats_bucket.h"
#include "worker/nats/nats_version.h"
#include "worker/nats/nats_watch.h"

namespace baton::coord {
namespace {

TEST(NatsVersion, IsReadWithOrWithoutASuffix) {
  EXPECT_EQ(parse_nats_version("2.9.21"), (NatsVersion{2, 9, 21}));
  EXPECT_EQ(parse_nats_version("2.12.0-RC.1"), (NatsVersion{2, 12, 0}));
  EXPECT_EQ(parse_nats_version("2.9"), std::nullopt);
  EXPECT_EQ(parse_nats_version(""), std::nullopt);
  EXPECT_EQ(parse_nats_version("v2.9.1"), std::nullopt);
  EXPECT_EQ(to_string(NatsVersion{2, 9, 21}), "2.9.21");
}

// As numbers: as text, 2.10 would come before 2.9.
TEST(NatsVersion, IsComparedPartByPart) {
  EXPECT_LT(parse_nats_version("2.9.10"), kNatsReplicatedMin);
  EXPECT_LT(parse_nats_version("2.9.20"), kNatsReplicatedMin);
  EXPECT_GE(parse_nats_version("2.9.21"), kNatsReplicatedMin);
  EXPECT_GE(parse_nats_version("2.10.0"), kNatsReplicatedMin);
  EXPECT_GE(parse_nats_version("3.0.0"), kNatsReplicatedMin);
}

TEST(NatsDelivery, IsReadFromBothFormsOfTheSubject) {
  const auto plain = parse_nats_delivery("$JS.ACK.KV_leases.consumer.1.42.7.1700000000.3");
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->stream_sequence, 42U);
  EXPECT_EQ(plain->consumer_sequence, 7U);

  const auto with_domain =
      parse_nats_delivery("$JS.ACK.domain.hash.KV_leases.consumer.1.42.7.1700000000.3.token");
  ASSERT_TRUE(with_domain.has_value());
  EXPECT_EQ(with_domain->stream_sequence, 42U);
  EXPECT_EQ(with_domain->consumer_sequence, 7U);
}

TEST(NatsDelivery, NothingElsePassesForOne) {
  for (const char* reply :
       {"", "_INBOX.x", "$JS.ACK.s.c.1.2.3.4", "$JS.ACK.s.c.1.x.7.9.3", "$JS.ACK.s.c.1.2.y.9.3",
        "$JS.FC.s.c.1.2.7.9.3", "$JS.ACK.a.b.s.c.1.2.7.9"}) {
    EXPECT_EQ(parse_nats_delivery(reply).has_value(), false) << reply;
  }
}

// A subject's wildcard covers whole parts only; the rest of the prefix is compared by us.
TEST(NatsBucket, AFilterMatchesEveryKeyUnderThePrefix) {
  const NatsBucket bucket{.stream = "KV_b", .subjects = "$KV.b."};

  EXPECT_EQ(bucket.subject_of("g.orders.a"), "$KV.b.g.orders.a");
  EXPECT_EQ(bucket.filter_of(""), "$KV.b.>");
  EXPECT_EQ(bucket.filter_of("g.orders."), "$KV.b.g.orders.>");
  EXPECT_EQ(bucket.filter_of("g.ord"), "$KV.b.g.>");
  EXPECT_EQ(bucket.filter_of("g"), "$KV.b.>");
}

}  // namespace
}  // namespace baton::coord
