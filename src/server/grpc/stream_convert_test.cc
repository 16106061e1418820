#include "server/grpc/stream_convert.h"

#include <string>

#include <gtest/gtest.h>

namespace baton {
namespace {

v1::SubscribeRequest::Start start() {
  v1::SubscribeRequest::Start start;
  start.set_id(7);
  start.set_stream("s");
  return start;
}

TEST(StreamConvert, AStartHasItsDefaults) {
  const auto wanted = convert(start());
  ASSERT_TRUE(wanted.has_value());
  EXPECT_EQ(wanted->id, SubscriptionId{7});
  EXPECT_EQ(wanted->from.place, ReadFrom::Place::next);
  EXPECT_EQ(wanted->encode_record, nullptr);
  EXPECT_EQ(wanted->credit.batches, 0U);
  EXPECT_FALSE(wanted->skip_gaps);
  EXPECT_TRUE(wanted->command.partitions.empty());
}

TEST(StreamConvert, AStartOutsideTheLimitsIsRefusedByName) {
  const auto refused = [](const v1::SubscribeRequest::Start& bad, const std::string& field) {
    const auto wanted = convert(bad);
    ASSERT_FALSE(wanted.has_value()) << field;
    EXPECT_NE(wanted.error().text.find(field), std::string::npos) << wanted.error().text;
  };
  v1::SubscribeRequest::Start bad = start();
  bad.clear_stream();
  refused(bad, "stream");
  bad = start();
  bad.set_single_active(true);
  refused(bad, "group");
  bad = start();
  bad.set_group(std::string(limits::kGroupNameBytes + 1, 'g'));
  refused(bad, "group");
  bad = start();
  bad.mutable_from()->set_offset(-1);
  refused(bad, "from.offset");
  bad = start();
  bad.mutable_credit()->set_bytes(limits::kCreditMax + 1);
  refused(bad, "credit");
  bad = start();
  bad.set_owner(std::string(limits::kOwnerLabelBytes + 1, 'x'));
  refused(bad, "owner");
  bad = start();
  for (std::uint32_t i = 0; i <= limits::kPartitionsPerStreamMax; ++i) bad.add_partitions(i);
  refused(bad, "partitions");
}

TEST(StreamConvert, PartitionsNamedTwiceAreOne) {
  v1::SubscribeRequest::Start twice = start();
  for (const std::uint32_t number : {3U, 1U, 3U, ~0U}) twice.add_partitions(number);
  const auto wanted = convert(twice);
  ASSERT_TRUE(wanted.has_value());
  EXPECT_EQ(wanted->command.partitions.size(), 3U);
}

TEST(StreamConvert, OffsetsFromOutsideAreNotNegativeAndMayGoBack) {
  v1::StoreOffsetRequest request;
  request.set_stream("s");
  request.set_group("g");
  request.set_offset(-1);
  EXPECT_FALSE(convert(request).has_value());
  request.set_offset(5);
  const auto command = convert(request);
  ASSERT_TRUE(command.has_value());
  EXPECT_TRUE(command->request.may_rewind);
  EXPECT_FALSE(command->request.holder.has_value());
}

TEST(StreamConvert, AbsentAndEmptyFieldsOfARecordStayApart) {
  v1::AppendRequest request;
  request.set_stream("s");
  request.add_records();
  request.add_records()->set_key("");
  request.mutable_records(1)->add_headers()->set_name("h");
  const auto command = convert(request);
  ASSERT_TRUE(command.has_value());
  EXPECT_FALSE(command->records[0].key.has_value());
  EXPECT_FALSE(command->records[0].partition.has_value());
  EXPECT_EQ(command->records[1].key, "");
  EXPECT_FALSE(command->records[1].headers.at(0).second.has_value());
}

TEST(StreamConvert, ARequestWithTooManyItemsIsRefused) {
  v1::AppendRequest request;
  request.set_stream("s");
  for (std::size_t i = 0; i <= limits::kItemsPerRequest; ++i) request.add_records();
  EXPECT_FALSE(convert(request).has_value());
}

// A refused record has no offset; nor has a duplicate that is too old to know.
TEST(StreamConvert, OutcomesAreToldAsTheyAre) {
  AppendOutcomes done;
  done.batches.push_back(
      {.partition = PartitionNumber{3}, .offset = Offset{9}, .duplicate = true, .error = {}});
  done.records.push_back({.partition = {},
                          .offset = Offset{-1},
                          .duplicate = false,
                          .error = Error{Errc::disk_full, "full"}});
  v1::AppendResponse response;
  reply(done, response);
  EXPECT_EQ(response.batches(0).partition(), 3U);
  EXPECT_EQ(response.batches(0).offset(), 9);
  EXPECT_TRUE(response.batches(0).duplicate());
  EXPECT_FALSE(response.batches(0).has_error());
  EXPECT_EQ(response.records(0).offset(), -1);
  EXPECT_EQ(response.records(0).error().name(), "disk_full");
}

}  // namespace
}  // namespace baton
