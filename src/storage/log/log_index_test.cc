#include "storage/log/log_index.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace baton {
namespace {

BatchHeader batch(std::int64_t base, std::int32_t count, std::uint64_t bytes, std::int64_t time) {
  BatchHeader header;
  header.base_offset = Offset{base};
  header.count = count;
  header.last_offset_delta = count - 1;
  header.bytes = bytes;
  header.max_timestamp = TimestampMs{time};
  return header;
}

TEST(LogIndex, EntriesAreReadBack) {
  std::string bytes;
  encode_entry(OffsetEntry{.last = 70'000, .position = 2'000'000'000}, bytes);
  ASSERT_EQ(bytes.size(), kOffsetEntryBytes);
  EXPECT_EQ(decode_offset_entry(bytes.data()),
            (OffsetEntry{.last = 70'000, .position = 2'000'000'000}));
  bytes.clear();
  encode_entry(TimeEntry{.greatest = TimestampMs{1'700'000'000'000}, .last = 9}, bytes);
  ASSERT_EQ(bytes.size(), kTimeEntryBytes);
  EXPECT_EQ(decode_time_entry(bytes.data()),
            (TimeEntry{.greatest = TimestampMs{1'700'000'000'000}, .last = 9}));
}

TEST(LogIndex, ABatchIsIndexedWhenMoreThanTheIntervalCameSinceTheLastOne) {
  IndexBuilder builder(Offset{100}, 1000);
  builder.add(batch(100, 10, 1000, 5), 0);
  builder.add(batch(110, 10, 1, 7), 1000);
  builder.add(batch(120, 10, 1001, 6), 1001);  // 1001 bytes before it.
  builder.add(batch(130, 10, 1, 7), 2002);     // 1001 bytes again, but no younger record.
  builder.add(batch(140, 10, 1, 9), 2003);
  const MemoryIndex& index = *builder.index();
  ASSERT_EQ(index.offsets.size(), 2U);
  EXPECT_EQ(index.offsets[0], (OffsetEntry{.last = 29, .position = 1001}));
  EXPECT_EQ(index.offsets[1], (OffsetEntry{.last = 39, .position = 2002}));
  ASSERT_EQ(index.times.size(), 1U);
  EXPECT_EQ(index.times[0], (TimeEntry{.greatest = TimestampMs{7}, .last = 19}));
  EXPECT_EQ(builder.last_time(), (TimeEntry{.greatest = TimestampMs{9}, .last = 49}));
  EXPECT_EQ(encode_times(builder).size(), 2 * kTimeEntryBytes);
}

TEST(LogIndex, AListKeepsEveryEntryInItsPlace) {
  AppendOnlyList<OffsetEntry> list;
  const OffsetEntry* first = nullptr;
  for (std::int32_t i = 0; i < 100'000; ++i) {
    list.push_back({.last = i, .position = ~i});
    if (i == 0) first = &list[0];
  }
  ASSERT_EQ(list.size(), 100'000U);
  EXPECT_EQ(first, &list[0]);
  for (std::int32_t i = 0; i < 100'000; ++i) {
    ASSERT_EQ(list[static_cast<std::size_t>(i)], (OffsetEntry{.last = i, .position = ~i}));
  }
}

TEST(LogIndex, AListIsReadWhileItGrows) {
  constexpr std::int32_t kEntries = 200'000;
  AppendOnlyList<OffsetEntry> list;
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&] {
      std::size_t size = 0;
      while (size < kEntries) {
        size = list.size();
        if (size == 0) continue;
        const OffsetEntry& last = list[size - 1];
        ASSERT_EQ(last.position, ~last.last);
        ASSERT_EQ(static_cast<std::size_t>(last.last), size - 1);
      }
    });
  }
  for (std::int32_t i = 0; i < kEntries; ++i) list.push_back({.last = i, .position = ~i});
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace baton
