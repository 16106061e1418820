#include "pipeline/baton/queue_letter.h"

#include <gtest/gtest.h>

namespace baton::pipeline {
namespace {

Record record_with(std::string key, std::vector<std::pair<std::string, std::string>> headers) {
  Record record;
  record.partition = 3;
  record.offset = 41;
  record.key = std::move(key);
  record.value = std::string("{\"a\": \0 1", 9);
  record.headers = std::move(headers);
  return record;
}

StoredLetter there_and_back(const Record& record) {
  DeadLetter letter;
  letter.record = &record;
  letter.code = "minimum";
  letter.text = "too small \xff";
  letter.pipeline = "p";
  letter.source = "s";
  const client::NewMessage message = to_message(letter);
  return from_message(message.headers, message.payload).value();
}

void expect_same(const Record& before, const Record& after) {
  EXPECT_EQ(after.key, before.key);
  EXPECT_EQ(after.value, before.value);
  EXPECT_EQ(after.headers, before.headers);
  EXPECT_EQ(after.partition, before.partition);
  EXPECT_EQ(after.offset, before.offset);
}

TEST(QueueLetter, AnOrdinaryRecordStaysReadable) {
  const Record record = record_with("schlüssel", {{"trace", "abc"}, {"zone", "eu"}});
  DeadLetter letter;
  letter.record = &record;
  EXPECT_EQ(to_message(letter).payload, record.value);
  expect_same(record, there_and_back(record).record);
}

// Contents that a queue's headers cannot hold must not be altered to fit.
TEST(QueueLetter, BytesAreKeptWhateverTheyAre) {
  for (const Record& record :
       {record_with(std::string("\xff\0key", 5), {}), record_with("\xe0\x80\x80", {}),
        record_with("\xed\xa0\x80", {}), record_with("\xf4\x90\x80\x80", {}),
        record_with("\xc3", {}), record_with("k", {{"twice", "1"}, {"twice", "2"}}),
        record_with("k", {{"binary", "\x80\x81"}}), record_with("k", {{"baton-class", "mine"}}),
        record_with("k", {{"long", std::string(20'000, 'x')}}),
        record_with("k", {{"", "empty"}})}) {
    expect_same(record, there_and_back(record).record);
  }
  std::vector<std::pair<std::string, std::string>> many;
  for (int i = 0; i < 200; ++i) many.emplace_back("h" + std::to_string(i), "v");
  const Record record = record_with("k", many);
  expect_same(record, there_and_back(record).record);
}

TEST(QueueLetter, SaysWhy) {
  const StoredLetter letter = there_and_back(record_with("k", {}));
  EXPECT_EQ(letter.what("baton-class"), "poison");
  EXPECT_EQ(letter.what("baton-code"), "minimum");
  EXPECT_EQ(letter.what("baton-message"), "too small ?");
  EXPECT_EQ(letter.what("baton-offset"), "41");
  EXPECT_EQ(letter.what("baton-nothing"), "");
}

TEST(QueueLetter, GarbageIsAnError) {
  EXPECT_FALSE(from_message({{"baton-packed", "1"}}, "\xff\xff\xff").has_value());
  EXPECT_FALSE(from_message({{"baton-packed", "1"}}, "").has_value());
}

// The stream may have been deleted and created again.
TEST(QueueLetter, AnotherRecordAtTheSamePlaceIsAnotherLetter) {
  const Record one = record_with("k", {});
  Record two = one;
  DeadLetter letter;
  letter.record = &one;
  const std::string first = to_message(letter).dedup_id;
  letter.record = &two;
  EXPECT_EQ(first, to_message(letter).dedup_id);
  two.value += " ";
  EXPECT_NE(first, to_message(letter).dedup_id);
}

// The id prevents a letter from being stored twice.
TEST(QueueLetter, ALongIdBecomesAShortOneOfItsOwn) {
  const Record one = record_with("k", {});
  Record two = one;
  two.offset = 42;
  DeadLetter letter;
  letter.source = std::string(400, 's');
  letter.record = &one;
  const std::string first = to_message(letter).dedup_id;
  letter.record = &two;
  EXPECT_NE(first, to_message(letter).dedup_id);
  EXPECT_LE(first.size(), 256U);
}

}  // namespace
}  // namespace baton::pipeline
