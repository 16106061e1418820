#include "base/growing.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace baton {
namespace {

// The format of the next version.
constexpr std::uint64_t kNextFormat = kStoreFormat + 1;

// A machine as a version knows it, and as the next version does: a field that may be skipped, one
// that must be understood, and kinds of both sorts.
struct Put {
  std::uint64_t key = 0;
  std::uint64_t colour = 0;  // Field 1 of the next version.
  std::uint64_t lock = 0;    // Field 2 of the next version: without it a reader goes wrong.
};
struct Noted {
  static constexpr Need kNeed{};
  std::uint64_t text = 0;
};
struct Moved {
  static constexpr Need kNeed{kNextFormat};
  std::uint64_t to = 0;
};
using Today = std::variant<Put>;
using Tomorrow = std::variant<Put, Noted, Moved>;

constexpr std::array<std::string_view, 1> kTodayNames{"Put"};
constexpr std::array<std::string_view, 3> kTomorrowNames{"Put", "Noted", "Moved"};
const FactSet kToday{.owner = FactOwner{5}, .name = "toys", .kinds = kTodayNames};
const FactSet kTomorrow{.owner = FactOwner{5}, .name = "toys", .kinds = kTomorrowNames};

void body(Encoder& out, const Put& fact) {
  out.varint(fact.key);
  if (fact.colour != 0) put_field(out, 1, fact.colour);
  if (fact.lock != 0) put_field(out, 2, fact.lock, Need{kNextFormat});
}
void body(Encoder& out, const Noted& fact) { out.varint(fact.text); }
void body(Encoder& out, const Moved& fact) { out.varint(fact.to); }

void read(Decoder& in, Put& fact) {
  fact.key = in.varint();
  for (FieldReader field(in); field.next();) {
    switch (field.number()) {
      case 1: fact.colour = field.value().varint(); break;
      case 2: fact.lock = field.value().varint(); break;
      default: field.skip();
    }
  }
}
void read(Decoder& in, Noted& fact) { fact.text = in.varint(); }
void read(Decoder& in, Moved& fact) { fact.to = in.varint(); }

std::string written(const Tomorrow& fact, std::size_t about = 0) {
  std::string bytes;
  Encoder out(bytes);
  write_fact<1>(out, kTomorrow, fact, about, [&](const auto& happened) { body(out, happened); });
  return bytes;
}

Result<Today> read_today(std::string_view bytes) {
  Decoder in(bytes);
  return read_fact<Today>(kToday, read_frame(in),
                          [](Decoder& body, Put& fact) { fact.key = body.varint(); });
}

Result<Tomorrow> read_tomorrow(std::string_view bytes) {
  Decoder in(bytes);
  const FactFrame frame = read_frame(in);
  if (!in.finish()) return Error{Errc::malformed, "a frame"};
  return read_fact<Tomorrow>(kTomorrow, frame, [](Decoder& body, auto& fact) { read(body, fact); });
}

TEST(Growing, AFactCostsItsLengthAndNothingForFieldsThatAreAbsent) {
  EXPECT_EQ(written(Put{.key = 7}), (std::string{0 << 3 | 5, 1, 7}));
}

TEST(Growing, AFieldThatMayBeSkippedIsAndTheRestIsRight) {
  const Result<Today> fact = read_today(written(Put{.key = 7, .colour = 300}));
  ASSERT_TRUE(fact.has_value()) << to_string(fact.error());
  EXPECT_EQ(std::get<Put>(*fact).key, 7U);
}

TEST(Growing, AFieldThatMustBeUnderstoodIsRefusedByNameWithTheFormatItTakes) {
  const Result<Today> fact = read_today(written(Put{.key = 7, .colour = 300, .lock = 1}));
  ASSERT_FALSE(fact.has_value());
  EXPECT_EQ(fact.error().code, Errc::store_too_new);
  EXPECT_EQ(fact.error().text,
            fmt::format("field 2 in a fact 'Put' of the toys must be understood and came with "
                        "format {}; this version of baton knows formats up to {}: run a newer "
                        "version",
                        kNextFormat, kStoreFormat));
}

TEST(Growing, AReaderThatKnowsTheFieldsTakesBoth) {
  const Result<Tomorrow> fact = read_tomorrow(written(Put{.key = 7, .colour = 300, .lock = 1}));
  ASSERT_TRUE(fact.has_value());
  EXPECT_EQ(std::get<Put>(*fact).colour, 300U);
  EXPECT_EQ(std::get<Put>(*fact).lock, 1U);
}

TEST(Growing, AKindThatMayBeSkippedIsAndOneThatMustBeUnderstoodIsRefused) {
  const std::string noted = written(Noted{.text = 9});
  Decoder in(noted);
  EXPECT_TRUE(skip_frame(read_frame(in), kToday.name).has_value());
  const std::string moved = written(Moved{.to = 9});
  Decoder again(moved);
  const Status refused = skip_frame(read_frame(again), kToday.name);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::store_too_new);
  EXPECT_EQ(refused.error().text,
            fmt::format("fact 2 of the toys must be understood and came with format {}; this "
                        "version of baton knows formats up to {}: run a newer version",
                        kNextFormat, kStoreFormat));
  EXPECT_EQ(std::get<Moved>(*read_tomorrow(moved)).to, 9U);
}

TEST(Growing, AFactOfAnotherMachineIsNotTaken) {
  std::string bytes = written(Put{.key = 7});
  bytes[0] = 0 << 3 | 4;
  EXPECT_EQ(read_today(bytes).error().code, Errc::malformed);
}

TEST(Growing, CutFactsAreRefused) {
  const std::string bytes = written(Put{.key = 7, .colour = 300, .lock = 1});
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(read_tomorrow(std::string_view(bytes).substr(0, length)).has_value()) << length;
  }
}

// The frame is whole, but its body ends too early. A cut between two fields is a fact with fewer.
TEST(Growing, ABodyThatEndsWithinAValueIsRefused) {
  const std::string bytes = written(Put{.key = 7, .colour = 300, .lock = 1});
  Decoder in(bytes);
  const FactFrame whole = read_frame(in);
  std::string refused;
  for (std::size_t length = 0; length < whole.body.size(); ++length) {
    FactFrame cut = whole;
    cut.body = whole.body.substr(0, length);
    const auto fact = read_fact<Tomorrow>(
        kTomorrow, cut, [](Decoder& body, auto& happened) { read(body, happened); });
    if (fact.has_value()) continue;
    EXPECT_EQ(fact.error().code, Errc::malformed);
    refused += fmt::format("{} ", length);
  }
  EXPECT_EQ(refused, "0 2 3 4 6 7 8 ");  // The key ends at 1, the colour at 5.
}

// Each case holds the fields of a row without anything before them.
TEST(Growing, GarbageIsNoField) {
  const auto refused = [](const std::string& bytes) {
    Decoder in(bytes);
    skip_fields(in);
    return !in.ok();
  };
  EXPECT_FALSE(refused(""));
  EXPECT_FALSE(refused({2 << 1, 0}));                    // An optional field without a value.
  EXPECT_TRUE(refused({2 << 1}));                        // No length.
  EXPECT_TRUE(refused({2 << 1, 5, 1}));                  // A length past the end.
  EXPECT_TRUE(refused({0, 0}));                          // There is no field 0.
  EXPECT_TRUE(refused({2 << 1 | 1, 0, 0}));              // Must be understood, but names no format.
  EXPECT_TRUE(refused(std::string(10, '\xff') + '\1'));  // A number of more than 64 bits.
  EXPECT_TRUE(refused({2 << 1, '\xff', '\xff', '\xff', '\xff', '\xff', '\xff', '\xff', '\xff',
                       '\xff', 1, 0}));  // A length of 2^64 - 1.
}

// A guess at a blob's length is only about speed: the bytes are the same.
RC_GTEST_PROP(Growing, TheGuessOfALengthChangesNoByte, ()) {
  const auto content = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
  const auto times = *rc::gen::inRange<std::size_t>(1, 40);
  const auto about = *rc::gen::inRange<std::size_t>(0, 40'000);
  std::string long_content;
  for (std::size_t i = 0; i < times; ++i) long_content += content;
  std::string plain = "before";
  Encoder(plain).blob(long_content);
  std::string guessed = "before";
  Encoder out(guessed);
  out.blob_of(about, [&] { out.raw(long_content); });
  RC_ASSERT(guessed == plain);
}

RC_GTEST_PROP(Growing, WhatIsWrittenIsReadBack, ()) {
  const Put put{.key = *rc::gen::arbitrary<std::uint64_t>(),
                .colour = *rc::gen::arbitrary<std::uint64_t>(),
                .lock = *rc::gen::arbitrary<std::uint64_t>()};
  const Result<Tomorrow> fact = read_tomorrow(written(put, put.key % 300));
  RC_ASSERT(fact.has_value());
  const Put& read = std::get<Put>(*fact);
  RC_ASSERT(read.key == put.key && read.colour == put.colour && read.lock == put.lock);
}

}  // namespace
}  // namespace baton
