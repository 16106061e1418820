#include "core/stream/murmur2.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace baton {
namespace {

// The values that Kafka's own unit test expects.
TEST(Murmur2, AgreesWithKafka) {
  const std::vector<std::pair<std::string, std::int32_t>> known{
      {"21", -973932308},
      {"foobar", -790332482},
      {"a-little-bit-long-string", -985981536},
      {"a-little-bit-longer-string", -1486304829},
      {"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971},
      {"abc", 479470107},
  };
  for (const auto& [key, hash] : known) {
    EXPECT_EQ(static_cast<std::int32_t>(murmur2(key)), hash) << key;
  }
}

TEST(Murmur2, ThePartitionIsThatOfKafkasDefaultPartitioner) {
  // -973932308 & 0x7fffffff = 1173551340
  EXPECT_EQ(partition_of("21", 1000), 340U);
  EXPECT_EQ(partition_of("21", 1), 0U);
  EXPECT_EQ(partition_of("abc", 10), 7U);
}

}  // namespace
}  // namespace baton
