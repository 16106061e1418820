#include "server/session/checks.h"

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "server/session/limits.h"

namespace baton {
namespace {

std::string text_of(const Status& status) {
  return status.has_value() ? "good" : to_string(status.error());
}
bool names(const Status& status, const char* part) {
  return !status.has_value() && status.error().code == Errc::invalid_argument &&
         status.error().text.find(part) != std::string::npos;
}

TEST(Checks, ABatchHasABoundedNumberOfItems) {
  EXPECT_EQ(text_of(check_items("messages", limits::kBatchItems)), "good");
  EXPECT_EQ(text_of(check_items("messages", limits::kBatchItems + 1)),
            "invalid_argument: messages has 10001 items; the limit is 10000");
}

TEST(Checks, ItemsAreBounded) {
  NewMessage message;
  message.payload.resize(limits::kPayloadBytesMax + 1);
  EXPECT_TRUE(names(check_item(message), "payload"));
  message.payload = "p";
  message.delay = Duration{-1};
  EXPECT_TRUE(names(check_item(message), "delay"));
  NackItem nack;
  nack.reason.resize(limits::kReasonBytes + 1);
  EXPECT_TRUE(names(check_item(nack), "reason"));
  nack.reason.clear();
  nack.retry.delay = limits::kDelayMax + Duration{1};
  EXPECT_TRUE(names(check_item(nack), "delay"));
  EXPECT_TRUE(names(check_item(ExtendItem{.token = {}, .timeout = Duration{-1}}), "timeout"));
  EXPECT_EQ(text_of(check_item(ExtendItem{.token = {}, .timeout = Duration{0}})), "good");
}

TEST(Checks, AConsumerIsBounded) {
  AttachCommand attach;
  attach.queue = "orders";
  EXPECT_EQ(text_of(check(attach)), "good");
  attach.in_flight_max = limits::kInFlightMax + 1;
  EXPECT_EQ(text_of(check(attach)),
            "invalid_argument: in_flight_max is 100001; the limit is 100000");
  attach.in_flight_max = 1;
  attach.in_flight_bytes_max = limits::kInFlightBytesMax + 1;
  EXPECT_TRUE(names(check(attach), "in_flight_bytes_max"));
  attach.in_flight_bytes_max = 1;
  attach.concurrency = limits::kInFlightMax + 1;
  EXPECT_TRUE(names(check(attach), "concurrency"));
  attach.concurrency = 1;
  attach.consumer_id = "a b";
  EXPECT_TRUE(names(check(attach), "consumer_id"));
  attach.consumer_id.clear();
  attach.queue.clear();
  EXPECT_TRUE(names(check(attach), "queue name"));
}

TEST(Checks, SettingsOfAQueueAreBounded) {
  CreateQueueCommand create;
  create.queue = "orders";
  EXPECT_EQ(text_of(check(create)), "good");
  create.settings.visibility_timeout = limits::kVisibilityTimeoutMax + Duration{1};
  EXPECT_TRUE(names(check(create), "visibility_timeout"));
  UpdateQueueCommand update;
  update.queue = "orders";
  for (std::size_t i = 0; i <= limits::kThrottlesPerQueue; ++i) {
    update.settings.throttles.emplace(std::to_string(i), ThrottleRate{});
  }
  EXPECT_TRUE(names(check(update), "throttles"));
  update.settings.throttles = {{"api", ThrottleRate{.rate = std::nan(""), .burst = 1}}};
  EXPECT_TRUE(names(check(update), "rate of throttle 'api'"));
}

TEST(Checks, OperatorsRequestsAreBounded) {
  PeekCommand peek;
  peek.queue = "orders";
  peek.messages_max = limits::kPeekMax + 1;
  EXPECT_EQ(text_of(check(peek)), "invalid_argument: messages_max is 1001; the limit is 1000");
  RedriveCommand redrive;
  redrive.queue = "orders.dlq";
  for (const double good : {0.0, 0.001, 1e9}) {
    redrive.rate = good;
    EXPECT_EQ(text_of(check(redrive)), "good") << good;
  }
  for (const double bad :
       {-1.0, 1e-300, 0.0009, 1e10, std::numeric_limits<double>::infinity(), std::nan("")}) {
    redrive.rate = bad;
    EXPECT_TRUE(names(check(redrive), "0.001")) << bad;
  }
  redrive.rate = 0;
  redrive.to = "a b";
  EXPECT_TRUE(names(check(redrive), "queue name"));
}

TEST(Checks, ASubscriptionIsBounded) {
  subscription::Wanted wanted;
  wanted.command.stream = "events";
  EXPECT_EQ(text_of(check(wanted)), "good");
  wanted.command.single_active = true;
  EXPECT_TRUE(names(check(wanted), "group"));
  wanted.command.group = "g";
  EXPECT_EQ(text_of(check(wanted)), "good");
  wanted.command.handover = Handover::strict;
  EXPECT_EQ(text_of(check(wanted)), "good");
  wanted.command.single_active = false;
  EXPECT_TRUE(names(check(wanted), "handover"));
  wanted.command.handover.reset();
  wanted.command.owner.resize(limits::kOwnerLabelBytes + 1, 'x');
  EXPECT_TRUE(names(check(wanted), "owner"));
  wanted.command.owner.clear();
  wanted.credit.bytes = limits::kCreditMax + 1;
  EXPECT_TRUE(names(check(wanted), "credit"));
  wanted.credit.bytes = 1;
  wanted.command.partitions.resize(limits::kPartitionsPerStreamMax + 1);
  EXPECT_TRUE(names(check(wanted), "partitions"));
}

TEST(Checks, OffsetsNameEachPartitionOnce) {
  SetGroupOffsetsCommand set;
  set.stream = "events";
  set.group = "g";
  EXPECT_TRUE(names(check(set), "offsets is empty"));
  set.moves.push_back({.partition = PartitionNumber{7}, .offset = {}});
  EXPECT_EQ(text_of(check(set)), "good");
  set.moves.push_back({.partition = PartitionNumber{7}, .offset = {}});
  EXPECT_TRUE(names(check(set), "partition 7 twice"));
}

TEST(Checks, AnAppendHasABoundedNumberOfItems) {
  AppendCommand append;
  append.stream = "events";
  append.records.resize(limits::kItemsPerRequest);
  EXPECT_EQ(text_of(check(append)), "good");
  append.batches.resize(1);
  EXPECT_TRUE(names(check(append), "100001 items; the limit is 100000"));
}

TEST(Checks, AWriteOfAKeyIsBounded) {
  KvPutCommand put;
  put.request.bucket = "b";
  put.request.key = "k";
  EXPECT_EQ(text_of(check(put)), "good");
  put.request.ttl = Duration{0};
  EXPECT_TRUE(names(check(put), "ttl is 0"));
  put.request.ttl = limits::kKvTtlMax + Duration{1};
  EXPECT_TRUE(names(check(put), "ttl is"));
  put.request.ttl.reset();
  put.request.value.resize(limits::kKvValueBytesMax + 1);
  EXPECT_TRUE(names(check(put), "value"));
  put.request.key.clear();
  EXPECT_TRUE(names(check(put), "key is empty"));
  KvRemoveCommand remove;
  remove.request = {.bucket = "b", .key = "k", .expected = Revision{0}};
  EXPECT_TRUE(names(check(remove), "expected_revision is 0"));
}

TEST(Checks, AWatchNamesAKeyOrAPrefix) {
  WatchWanted watch;
  watch.bucket = "b";
  EXPECT_EQ(text_of(check(watch)), "good");
  watch.filter.exact = true;
  EXPECT_TRUE(names(check(watch), "key is empty"));
  watch.filter = {.text = std::string(limits::kKvKeyBytes + 1, 'k'), .exact = false};
  EXPECT_TRUE(names(check(watch), "prefix"));
  watch.filter.text.clear();
  watch.session = "a b";
  EXPECT_TRUE(names(check(watch), "session"));
}

// Commands that consist of a name.
TEST(Checks, NamesAreChecked) {
  DeleteStreamCommand stream;
  stream.stream = "a b";
  EXPECT_TRUE(names(check(stream), "stream"));
  PurgeCommand purge;
  purge.queue = "orders";
  EXPECT_EQ(text_of(check(purge)), "good");
  DeleteBucketCommand bucket;
  EXPECT_TRUE(names(check(bucket), "bucket"));
  // A list may be of all queues.
  EXPECT_EQ(text_of(check(ListQueuesCommand{})), "good");
  EXPECT_EQ(text_of(check(ListStreamsCommand{})), "good");
  EXPECT_EQ(text_of(check(ListBucketsCommand{})), "good");
}

}  // namespace
}  // namespace baton
