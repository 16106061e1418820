// What is written to disk reads back the same, and the fuzzers' corpus is made of it.
// BATON_RECORD=1 writes corpus/ anew.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "core/queue/format_samples.h"

namespace baton::format_samples {
namespace {

/// Compares the folder with the samples, or writes it.
void check_corpus(const std::string& name, const Samples& samples) {
  const std::filesystem::path folder = std::filesystem::path("corpus") / name;
  if (std::getenv("BATON_RECORD") != nullptr) {
    std::filesystem::create_directories(folder);
    for (const auto& [file, bytes] : samples) {
      std::ofstream(folder / file, std::ios::binary) << bytes;
    }
  }
  for (const auto& [file, bytes] : samples) {
    std::ifstream in(folder / file, std::ios::binary);
    const std::string read{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    EXPECT_EQ(read, bytes) << folder / file;
  }
}

// A corpus that nothing decodes any more would fuzz nothing but the first byte.
TEST(QueueFormat, TheCorpusIsWhatTheEncodersWrite) {
  check_corpus("facts", fact_bytes());
  check_corpus("rows", row_bytes());
  check_corpus("message", message_bytes());
}

TEST(QueueFormat, EveryFactReadsBackAsItWasWritten) {
  std::set<std::size_t> kinds;
  for (const auto& [name, fact] : facts()) {
    const std::string bytes = encoded(fact);
    Decoder in(bytes);
    const Result<QueueFact> decoded = decode_queue_fact(in);
    ASSERT_TRUE(decoded.has_value()) << name;
    EXPECT_TRUE(in.finish()) << name;
    EXPECT_EQ(decoded->index(), fact.index()) << name;
    EXPECT_EQ(encoded(*decoded), bytes) << name;
    kinds.insert(fact.index());
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<QueueFact>);
}

// A torn fact must be noticed, whatever the checksum above it says.
TEST(QueueFormat, AFactCutShortIsMalformed) {
  for (const auto& [name, bytes] : fact_bytes()) {
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      // A message's payload is the rest of its blob, so no cut within a fact is a fact of its own.
      Decoder in(std::string_view(bytes).substr(0, length));
      EXPECT_FALSE(decode_queue_fact(in).has_value()) << name << " at " << length;
    }
  }
}

TEST(QueueFormat, AFactOfAKindToComeIsMalformed) {
  // Behind four kinds that are no longer written.
  const std::string bytes(1, static_cast<char>(std::variant_size_v<QueueFact> + 4));
  Decoder in(bytes);
  EXPECT_EQ(decode_queue_fact(in).error().code, Errc::malformed);
}

// A later version may say more of a transfer; this one reads what it knows.
TEST(QueueFormat, ATransferWithFieldsToComeIsRead) {
  const std::string known = encoded(OutgoingDone{transfer(), QueueId{21}, id()});
  ASSERT_LT(known.size(), 100U);
  std::string longer = known + "more";
  longer[1] = static_cast<char>(longer[1] + 4);
  Decoder in(longer);
  const Result<QueueFact> decoded = decode_queue_fact(in);
  ASSERT_TRUE(decoded.has_value() && in.finish());
  EXPECT_EQ(encoded(*decoded), known);
  longer[2] = 2;
  Decoder newer(longer);
  EXPECT_EQ(decode_queue_fact(newer).error().code, Errc::malformed);
}

TEST(QueueFormat, AMessageKeepsWhatItsProducerSent) {
  const MessageRef sent = stored_message();
  const Result<MessageRef> parsed = Message::parse(sent->bytes());
  ASSERT_TRUE(parsed.has_value());
  const Message& message = **parsed;
  EXPECT_EQ(message.id(), id());
  EXPECT_EQ(message.payload(), new_message().payload);
  EXPECT_EQ(message.fairness_key(), "tenant");
  EXPECT_EQ(message.header("content-type"), "text");
  EXPECT_EQ(message.header("absent"), "");
  EXPECT_EQ(message.header_count(), 2U);
  EXPECT_EQ(message.throttle_keys(), (std::vector<std::string_view>{"api", "db"}));
  EXPECT_EQ(message.enqueued_at(), kEnqueued);
  EXPECT_EQ(message.expires_at(), kDue);
}

TEST(QueueFormat, HeadersOfTheSameNameAreReplaced) {
  const MessageRef more =
      Message::with_headers(*stored_message(), {{"empty", "full"}, {"new", "1"}}, Instant::never());
  EXPECT_EQ(more->header_count(), 3U);
  EXPECT_EQ(more->header("empty"), "full");
  EXPECT_EQ(more->header("content-type"), "text");
  EXPECT_EQ(more->payload(), new_message().payload);
  EXPECT_EQ(more->throttle_keys().size(), 2U);
}

// The store sorts keys as bytes; scans rely on that being the order of numbers.
TEST(QueueFormat, TheOrderOfKeysIsTheOrderOfNumbers) {
  EXPECT_LT(message_key(QueueId{1}, "a", Sequence{255}),
            message_key(QueueId{1}, "a", Sequence{256}));
  EXPECT_LT(message_key(QueueId{255}, "z", Sequence{9}),
            message_key(QueueId{256}, "a", Sequence{1}));
  EXPECT_LT(time_key(Instant{255}, QueueId{9}, id()), time_key(Instant{256}, QueueId{1}, Uuid{}));
  const std::string prefix = fairness_key_row(QueueId{1}, "a");
  EXPECT_LT(message_key(QueueId{1}, "a", Sequence{~0ULL}), prefix_end(prefix));
  // A key that another one begins with has no row within the other's range.
  EXPECT_FALSE(message_key(QueueId{1}, "ab", Sequence{1}).starts_with(prefix));
}

TEST(QueueFormat, ARowOfIdsNamesATableThatExists) {
  std::string bytes = encode_row(IdRow{tables::kMessages, "key"});
  EXPECT_TRUE(decode_id_row(bytes).has_value());
  bytes[0] = '\x7f';
  EXPECT_EQ(decode_id_row(bytes).error().code, Errc::store_corrupt);
}

}  // namespace
}  // namespace baton::format_samples
