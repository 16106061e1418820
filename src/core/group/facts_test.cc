// What is written to disk reads back the same; the fuzzer's corpus is made of it. BATON_RECORD=1
// writes corpus/ anew.

#include "core/group/facts.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "base/fact_growth_test.h"
#include "core/group/rows.h"

namespace baton {
namespace {

const GroupId kGroup{.stream = "orders", .partition = 300, .name = "billing"};
constexpr Instant kAt{1'700'000'000'000'000'001};

std::map<std::string, CoordinatorFact> facts() {
  return {
      {"0_group_created", GroupCreated{kGroup, true, PartitionIndex{300}}},
      {"0_group_created_plain", GroupCreated{kGroup, false, kSimple}},
      {"0_group_created_strict", GroupCreated{kGroup, true, PartitionIndex{300}, Handover::strict}},
      {"1_generation_taken", GenerationTaken{kGroup, Generation{301}, kAt}},
      {"2_offset_stored", OffsetStored{kGroup, Generation{302}, GroupOffset{1ULL << 40U}, kAt}},
      {"3_group_forgotten", GroupForgotten{kGroup}},
  };
}

using fact_growth::encoded;

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text += kDigits[static_cast<std::uint8_t>(c) >> 4U];
    text += kDigits[static_cast<std::uint8_t>(c) & 15U];
  }
  return text;
}

TEST(CoordinatorFacts, TheCorpusIsWhatTheEncoderWrites) {
  const std::filesystem::path folder = "corpus/facts";
  const bool record = std::getenv("BATON_RECORD") != nullptr;
  if (record) std::filesystem::create_directories(folder);
  for (const auto& [name, fact] : facts()) {
    if (record) std::ofstream(folder / name, std::ios::binary) << encoded(fact);
    std::ifstream in(folder / name, std::ios::binary);
    const std::string read{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    EXPECT_EQ(read, encoded(fact)) << name;
  }
}

TEST(CoordinatorFacts, EveryFactReadsBackAsItWasWritten) {
  std::set<std::size_t> kinds;
  for (const auto& [name, fact] : facts()) {
    const std::string bytes = encoded(fact);
    Decoder in(bytes);
    const Result<CoordinatorFact> decoded = decode_coordinator_fact(in);
    ASSERT_TRUE(decoded.has_value()) << name;
    EXPECT_TRUE(in.finish()) << name;
    EXPECT_EQ(decoded->index(), fact.index()) << name;
    EXPECT_EQ(encoded(*decoded), bytes) << name;
    kinds.insert(fact.index());
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<CoordinatorFact>);
}

// These bytes are on disks: changing them needs a new version, not a new expectation.
TEST(CoordinatorFacts, TheBytesStayWhatTheyAre) {
  EXPECT_EQ(hex(encoded(facts().at("0_group_created"))),
            "0314066f7264657273ac020762696c6c696e6701ad02");
  EXPECT_EQ(hex(encoded(facts().at("2_offset_stored"))),
            "1321066f7264657273ac020762696c6c696e67ae02808080808020"
            "01002a36fe9c9717");
}

// The same facts in format 1: with a byte for the kind and one for a version, and without a length.
TEST(CoordinatorFacts, BytesOfFormat1StayReadable) {
  for (const auto& [name, fact] : facts()) {
    const std::string today = encoded(fact);
    Decoder frame(today);
    std::string bytes{static_cast<char>(fact.index()), '\1'};
    bytes += read_frame(frame).body;
    Decoder in(bytes);
    const Result<CoordinatorFact> decoded = decode_coordinator_fact_1(in);
    ASSERT_TRUE(decoded.has_value() && in.finish()) << name;
    EXPECT_EQ(encoded(*decoded), today) << name;
    bytes[1] = 2;
    Decoder newer(bytes);
    EXPECT_EQ(decode_coordinator_fact_1(newer).error().code, Errc::malformed);
  }
}

TEST(CoordinatorFacts, AFieldToComeIsSkippedAndOneThatMustBeUnderstoodRefused) {
  const auto decode = [](Decoder& in) { return decode_coordinator_fact(in); };
  for (const auto& [name, fact] : facts()) {
    SCOPED_TRACE(name);
    fact_growth::expect_skipped(fact, decode);
    fact_growth::expect_refused(fact, kCoordinatorFacts, decode);
  }
}

TEST(CoordinatorFacts, AFactCutShortIsMalformed) {
  for (const auto& [name, fact] : facts()) {
    SCOPED_TRACE(name);
    fact_growth::expect_cut_is_malformed(fact,
                                         [](Decoder& in) { return decode_coordinator_fact(in); });
  }
}

void expect_malformed(const std::string& bytes) {
  Decoder in(bytes);
  const Result<CoordinatorFact> decoded = decode_coordinator_fact(in);
  ASSERT_FALSE(decoded.has_value()) << hex(bytes);
  EXPECT_EQ(decoded.error().code, Errc::malformed);
}

TEST(CoordinatorFacts, AKindToComeIsRefusedByName) {
  std::string bytes;
  Encoder out(bytes);
  out.varint(std::variant_size_v<CoordinatorFact> << 3U | kCoordinatorFacts.owner.value);
  out.blob(std::string(1, '\3'));  // It must be understood, since format 3.
  Decoder in(bytes);
  const Error error = decode_coordinator_fact(in).error();
  EXPECT_EQ(error.code, Errc::store_too_new);
  EXPECT_NE(error.text.find("fact 4 of the groups"), std::string::npos) << error.text;
  std::string old{static_cast<char>(std::variant_size_v<CoordinatorFact>), '\1'};
  Decoder format_1(old);
  EXPECT_EQ(decode_coordinator_fact_1(format_1).error().code, Errc::malformed);
}

TEST(CoordinatorFacts, NamesAndNumbersOutOfTheirLimitsAreMalformed) {
  expect_malformed(encoded(GroupForgotten{{.stream = "", .partition = 0, .name = "g"}}));
  expect_malformed(encoded(GroupForgotten{{.stream = "s", .partition = 0, .name = ""}}));
  const std::string long_name(limits::kGroupNameBytes + 1, 'g');
  expect_malformed(encoded(GroupForgotten{{.stream = "s", .partition = 0, .name = long_name}}));
  expect_malformed(encoded(
      GroupForgotten{{.stream = "s", .partition = limits::kPartitionsPerStream, .name = "g"}}));
  std::string flag = encoded(GroupCreated{kGroup, true, kSimple});
  flag[flag.size() - 2] = 3;
  expect_malformed(flag);
}

TEST(CoordinatorRows, ARowReadsBackAsItWasWritten) {
  const coordinator_state::Record full{.single_active = true,
                                       .partition_index = PartitionIndex{3},
                                       .generation = Generation{300},
                                       .generation_at = kAt,
                                       .offset = GroupOffset{1'000'000},
                                       .offset_at = kAt + Duration{1}};
  EXPECT_EQ(decode_group_row(encode_row(full)), full);
  coordinator_state::Record strict = full;
  strict.handover = Handover::strict;
  EXPECT_EQ(decode_group_row(encode_row(strict)), strict);
  EXPECT_EQ(decode_group_row(encode_row({})), coordinator_state::Record{});
  EXPECT_EQ(decode_group_row_key(group_row_key(kGroup)), kGroup);
}

TEST(CoordinatorRows, ADamagedRowIsReported) {
  const std::string key = group_row_key(kGroup);
  const std::string value = encode_row({.single_active = true,
                                        .partition_index = kSimple,
                                        .generation = Generation{1},
                                        .generation_at = kAt,
                                        .offset = GroupOffset{2},
                                        .offset_at = kAt});
  for (std::size_t length = 0; length < value.size(); ++length) {
    EXPECT_FALSE(decode_group_row(value.substr(0, length)).has_value()) << length;
  }
  EXPECT_FALSE(decode_group_row(value + "x").has_value());
  // A later version may have added a whole field.
  std::string optional = value;
  Encoder out(optional);
  put_field(out, 99, "more");
  EXPECT_EQ(encode_row(*decode_group_row(optional)), value);
  std::string required = value;
  Encoder more(required);
  put_field(more, 99, "more", Need{3});
  EXPECT_EQ(decode_group_row(required).error().code, Errc::store_too_new);
  // A key that is cut within the group's name is another name; one that is cut before it is damage.
  for (std::size_t length = 0; length <= key.size() - kGroup.name.size(); ++length) {
    EXPECT_FALSE(decode_group_row_key(key.substr(0, length)).has_value()) << length;
  }
  EXPECT_EQ(decode_group_row("\x07").error().code, Errc::store_corrupt);
}

// The rows of a stream lie side by side, partition by partition.
TEST(CoordinatorRows, TheOrderOfKeysIsTheOrderOfPartitions) {
  EXPECT_LT(group_row_key({.stream = "s", .partition = 255, .name = "z"}),
            group_row_key({.stream = "s", .partition = 256, .name = "a"}));
}

}  // namespace
}  // namespace baton
