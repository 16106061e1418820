#include "core/stream/compression.h"

#include <gtest/gtest.h>
#include <snappy-c.h>

#include "base/random.h"

namespace baton {
namespace {

constexpr Compression kAll[] = {Compression::none, Compression::gzip, Compression::snappy,
                                Compression::lz4, Compression::zstd};
constexpr std::size_t kMany = std::size_t{64} << 20U;

std::string compressed(Compression compression, std::string_view bytes) {
  std::string out = "before";
  EXPECT_TRUE(compress(compression, bytes, out).has_value());
  EXPECT_TRUE(out.starts_with("before"));
  return out.substr(6);
}

std::string text(std::size_t bytes) {
  std::string out;
  for (std::uint64_t i = 0; out.size() < bytes; ++i) out += "line " + std::to_string(i * i) + "\n";
  out.resize(bytes);
  return out;
}

TEST(Compression, WhatWasCompressedComesBack) {
  for (const Compression compression : kAll) {
    for (const std::size_t bytes : {0, 1, 100, 32 << 10, (32 << 10) + 1, 3'000'000}) {
      const std::string before = text(bytes);
      const auto after = decompress(compression, compressed(compression, before), kMany);
      ASSERT_TRUE(after.has_value()) << compression_name(compression) << to_string(after.error());
      EXPECT_TRUE(*after == before) << compression_name(compression) << " " << bytes;
    }
  }
}

TEST(Compression, TheLimitIsExact) {
  const std::string before = text(100'000);
  for (const Compression compression : kAll) {
    const std::string bytes = compressed(compression, before);
    EXPECT_TRUE(decompress(compression, bytes, before.size()).has_value());
    const auto over = decompress(compression, bytes, before.size() - 1);
    ASSERT_FALSE(over.has_value()) << compression_name(compression);
    EXPECT_EQ(over.error().code, Errc::resource_exhausted) << to_string(over.error());
  }
}

TEST(Compression, CutShortIsAnError) {
  const std::string before = text(5000);
  for (const Compression compression : kAll) {
    if (compression == Compression::none) continue;
    const std::string bytes = compressed(compression, before);
    for (std::size_t size = 0; size < bytes.size(); size += 7) {
      const auto cut = decompress(compression, std::string_view(bytes).substr(0, size), kMany);
      // snappy-java's frame has no end mark: cut between two blocks it is whole.
      const bool whole_frame = compression == Compression::snappy && cut && cut->empty();
      EXPECT_TRUE(!cut || whole_frame) << compression_name(compression) << " " << size;
      if (!cut) {
        EXPECT_EQ(cut.error().code, Errc::malformed);
      }
    }
  }
}

// Whatever the damage: an answer, and no more memory than allowed.
TEST(Compression, DamageNeverDoesMoreThanFail) {
  Random random(3);
  const std::string before = text(20'000);
  for (const Compression compression : kAll) {
    const std::string bytes = compressed(compression, before);
    for (int i = 0; i < 500; ++i) {
      std::string damaged = bytes;
      damaged[random.below(damaged.size())] ^= char(1U << random.below(8));
      const auto after = decompress(compression, damaged, 40'000);
      if (after) {
        EXPECT_LE(after->size(), 40'000U);
      }
    }
  }
}

TEST(Compression, RawSnappyIsReadToo) {
  const std::string before = text(10'000);
  std::string raw(snappy_max_compressed_length(before.size()), '\0');
  std::size_t size = raw.size();
  ASSERT_EQ(snappy_compress(before.data(), before.size(), raw.data(), &size), SNAPPY_OK);
  raw.resize(size);
  EXPECT_EQ(decompress(Compression::snappy, raw, kMany).value(), before);
}

// A claim of gigabytes in a few bytes must not be believed.
TEST(Compression, SnappyThatClaimsTooMuchIsRefused) {
  const std::string claim("\xff\xff\xff\xff\x03\x00", 6);
  EXPECT_FALSE(decompress(Compression::snappy, claim, kMany).has_value());
  const std::string smaller("\xff\xff\xff\x0f\x00", 5);
  EXPECT_EQ(decompress(Compression::snappy, smaller, kMany).error().code, Errc::malformed);
}

TEST(Compression, NamesAreReadBack) {
  for (const Compression compression : kAll) {
    EXPECT_EQ(parse_compression(compression_name(compression)).value(), compression);
  }
  const auto unknown = parse_compression("brotli");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().text.find("none, gzip, snappy, lz4, zstd"), std::string::npos);
  std::string out;
  EXPECT_FALSE(compress(Compression(7), "x", out).has_value());
  EXPECT_FALSE(decompress(Compression(7), "x", 10).has_value());
}

}  // namespace
}  // namespace baton
