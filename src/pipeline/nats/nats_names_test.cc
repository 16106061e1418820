#include "pipeline/nats/nats_names.h"

#include <gtest/gtest.h>

namespace baton::pipeline {
namespace {

TEST(NatsNames, AConsumerIsKnownByItsName) {
  const NatsConsumerName name{.epoch = 12, .generation = 3};
  EXPECT_EQ(to_string(name, "billing-2", 7), "billing-2-7-12-3");
  EXPECT_EQ(parse_nats_consumer("billing-2-7-12-3", "billing-2", 7), name);
  for (const char* other : {"billing-2-7-12", "billing-2-8-12-3", "billing-7-12-3", "other", "",
                            "billing-2-7-12-x", "billing-2-7--3", "xbilling-2-7-12-3"}) {
    EXPECT_FALSE(parse_nats_consumer(other, "billing-2", 7).has_value()) << other;
  }
  // A consumer of another group whose name looks like this group's with a partition.
  EXPECT_FALSE(parse_nats_consumer("billing-2-7-12-3", "billing", 2).has_value());
  EXPECT_LT((NatsConsumerName{1, 9}), (NatsConsumerName{2, 0}));
}

TEST(NatsNames, TheReplySubjectTellsTheDelivery) {
  const auto delivery =
      parse_nats_delivery("$JS.ACK.ORDERS.billing-0-1-0.2.40.38.1700000000123.17");
  ASSERT_TRUE(delivery.has_value());
  EXPECT_EQ(delivery->deliveries, 2U);
  EXPECT_EQ(delivery->stream_sequence, 40U);
  EXPECT_EQ(delivery->consumer_sequence, 38U);
  EXPECT_EQ(delivery->timestamp_ns, 1700000000123);
  EXPECT_EQ(delivery->pending, 17U);
  const auto longer =
      parse_nats_delivery("$JS.ACK.hub.ACCT.ORDERS.c.1.40.38.1700000000123.17.token");
  ASSERT_TRUE(longer.has_value());
  EXPECT_EQ(longer->stream_sequence, 40U);
  EXPECT_EQ(longer->pending, 17U);
  for (const char* other :
       {"", "_INBOX.x", "$JS.ACK.ORDERS.c.1.2.3.4", "$JS.ACK.ORDERS.c.1.2.3.4.5.6",
        "$JS.ACK.ORDERS.c.1.x.3.4.5", "$JS.ACK.ORDERS.c.1.-2.3.4.5",
        "$JS.ACK.ORDERS.c.1.18446744073709551615.3.4.5"}) {
    EXPECT_FALSE(parse_nats_delivery(other).has_value()) << other;
  }
}

TEST(NatsNames, SubjectsOfPartitions) {
  EXPECT_EQ(nats_subject("orders.{partition}", 3), "orders.3");
  EXPECT_EQ(nats_subject("orders.{partition}.>", 11), "orders.11.>");
  EXPECT_EQ(nats_subject("orders", 0), "orders");
  EXPECT_EQ(nats_subject_rest("orders.3.>", "orders.3.customer.7"), "customer.7");
  EXPECT_EQ(nats_subject_rest("orders.3", "orders.3"), "");
}

TEST(NatsNames, APatternCoversSubjects) {
  EXPECT_TRUE(nats_covers("orders.*", "orders.3"));
  EXPECT_TRUE(nats_covers("orders.>", "orders.3.>"));
  EXPECT_TRUE(nats_covers("orders.3", "orders.3"));
  EXPECT_TRUE(nats_covers(">", "orders.3"));
  EXPECT_FALSE(nats_covers("orders.*", "orders.3.>"));
  EXPECT_FALSE(nats_covers("orders.*", "orders.>"));
  EXPECT_FALSE(nats_covers("orders.4", "orders.3"));
  EXPECT_FALSE(nats_covers("orders.>", "orders"));
  EXPECT_FALSE(nats_covers("orders", "orders.3"));
}

TEST(NatsNames, GroupsThatCanNameAConsumer) {
  EXPECT_TRUE(check_nats_group("billing-2_x").has_value());
  for (const char* bad : {"", "a.b", "a b", "a*", "a/b"}) {
    EXPECT_FALSE(check_nats_group(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace baton::pipeline
