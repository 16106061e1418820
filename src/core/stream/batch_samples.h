#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/stream/records.h"

/// Records and batches for tests.
namespace baton::batch_samples {

inline constexpr Instant kNow{1'700'000'000'000'000'000};
inline constexpr TimestampMs kTime{1'700'000'000'000};

inline constexpr RecordHeader kHeaders[] = {{.name = "trace", .value = "abc"},
                                            {.name = "empty", .value = ""},
                                            {.name = "null", .value = std::nullopt}};

/// One of everything: key and value there, empty and absent; headers; a time that goes back.
inline std::vector<Record> records() {
  return {
      {.key = "key", .value = "value", .headers = kHeaders, .timestamp = kTime},
      {.key = std::nullopt,
       .value = "no key",
       .headers = {},
       .timestamp = TimestampMs{kTime.value + 70'000}},
      {.key = "no value",
       .value = std::nullopt,
       .headers = {},
       .timestamp = TimestampMs{kTime.value - 5}},
      {.key = "", .value = "", .headers = {}, .timestamp = TimestampMs{kTime.value + 1}},
      {.key = "long",
       .value = "0123456789012345678901234567890123456789012345678901234567890123456",
       .headers = {},
       .timestamp = TimestampMs{kTime.value + 2}},
  };
}

inline std::string batch_of(const std::vector<Record>& list,
                            Compression compression = Compression::none,
                            const std::optional<ProducerStamp>& producer = std::nullopt) {
  BatchBuilder builder(limits::kStreamBatchBytesMax);
  for (const Record& record : list) EXPECT_TRUE(builder.add(record).has_value());
  return builder.finish(compression, producer).value();
}

/// `count` records of `bytes` each.
inline std::string plain_batch(int count, std::size_t bytes, std::int64_t timestamp = kTime.value,
                               const std::optional<ProducerStamp>& producer = std::nullopt) {
  const std::string value(bytes, 'v');
  std::vector<Record> list;
  for (int i = 0; i < count; ++i) {
    list.push_back({.key = {}, .value = value, .headers = {}, .timestamp = TimestampMs{timestamp}});
  }
  return batch_of(list, Compression::none, producer);
}

/// Each record as a line of text, to compare.
inline std::vector<std::string> texts_of(std::string_view batch) {
  std::vector<std::string> texts;
  auto reader = RecordReader::open(BatchView::parse(batch).value()).value();
  RecordView record;
  const auto text = [](const std::optional<std::string_view>& bytes) {
    return bytes ? '"' + std::string(*bytes) + '"' : std::string("null");
  };
  while (reader.next(record).value()) {
    std::string line = std::to_string(record.offset.value) + " " +
                       std::to_string(record.timestamp.value) + " " + text(record.key) + " " +
                       text(record.value);
    while (const auto header = record.headers.next()) {
      line += " " + std::string(header->name) + "=" + text(header->value);
    }
    texts.push_back(line);
  }
  return texts;
}

}  // namespace baton::batch_samples
