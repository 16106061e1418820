// What is written to disk reads back as the same value, and the fuzzers' corpus consists of such
// bytes. BATON_RECORD=1 writes corpus/ again.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include <gtest/gtest.h>

#include "base/fact_growth_test.h"
#include "core/queue/format_samples.h"
#include "core/queue/machine.h"

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

// A corpus that no longer decodes would make the fuzzers test only the first byte.
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

// The decoder must notice a torn fact by itself, without the checksum of the journal.
TEST(QueueFormat, AFactCutShortIsMalformed) {
  for (const auto& [name, bytes] : fact_bytes()) {
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      // A message's payload is the rest of its blob, so no cut within a fact is a fact of its own.
      Decoder in(std::string_view(bytes).substr(0, length));
      EXPECT_FALSE(decode_queue_fact(in).has_value()) << name << " at " << length;
    }
  }
}

/// A fact of a kind that this version does not know, which begins with its Need.
std::string fact_to_come(std::uint64_t since) {
  std::string bytes;
  Encoder out(bytes);
  out.varint(std::variant_size_v<QueueFact> << 3U | kQueueFacts.owner.value);
  out.blob_of(0, [&] {
    out.varint(since);
    out.raw("whatever it says");
  });
  return bytes;
}

TEST(QueueFormat, AFactOfAKindToComeIsRefusedByNameIfItMustBeUnderstood) {
  const std::string bytes = fact_to_come(3);
  Decoder in(bytes);
  const Error error = decode_queue_fact(in).error();
  EXPECT_EQ(error.code, Errc::store_too_new);
  EXPECT_NE(error.text.find("fact 17 of the queues must be understood and came with format 3"),
            std::string::npos)
      << error.text;
  EXPECT_TRUE(in.finish());
  const std::string skippable = fact_to_come(0);
  Decoder again(skippable);
  EXPECT_TRUE(skip_frame(read_frame(again), "queues").has_value());
  const std::string alone(1, static_cast<char>(std::variant_size_v<QueueFact> << 3U | 1U));
  Decoder cut(alone);
  EXPECT_EQ(decode_queue_fact(cut).error().code, Errc::malformed);
}

TEST(QueueFormat, AKindToComeIsMalformedInFormat1) {
  // Four more kinds are reserved because they were written once.
  const std::string bytes(1, static_cast<char>(std::variant_size_v<QueueFact> + 4));
  Decoder in(bytes);
  EXPECT_EQ(decode_queue_fact_1(in).error().code, Errc::malformed);
}

Result<QueueFact> decode(Decoder& in) { return decode_queue_fact(in); }

TEST(QueueFormat, AFactWithAFieldThatMayBeSkippedIsReadAndTheRestIsRight) {
  for (const auto& [name, fact] : facts()) {
    SCOPED_TRACE(name);
    fact_growth::expect_skipped(fact, decode);
  }
}

TEST(QueueFormat, AFactWithAFieldThatMustBeUnderstoodIsRefusedByName) {
  for (const auto& [name, fact] : facts()) {
    SCOPED_TRACE(name);
    fact_growth::expect_refused(fact, kQueueFacts, decode);
  }
}

std::string settings_with_field(Need need) {
  std::string fields;
  Encoder out(fields);
  put_field(out, 2, std::uint64_t{5});
  put_field(out, 99, "a setting to come", need);
  put_field(out, 8, std::uint64_t{9'000});
  std::string bytes;
  Encoder(bytes).blob(fields);
  return bytes;
}

TEST(QueueFormat, SettingsSkipOneToComeAndRefuseOneThatMustBeUnderstood) {
  const std::string skipped = settings_with_field({});
  Decoder in(skipped);
  const QueueSettings settings = decode_settings(in);
  ASSERT_TRUE(in.finish());
  EXPECT_EQ(settings.attempts_max, 5U);
  EXPECT_EQ(settings.messages_max, 9'000U);
  EXPECT_EQ(settings.retention, QueueSettings{}.retention);

  std::string fact;
  Encoder out(fact);
  out.varint(1U << 3U | kQueueFacts.owner.value);  // QueueUpdated.
  out.blob_of(0, [&] {
    out.varint(21);
    out.raw(settings_with_field(Need{3}));
  });
  Decoder updated(fact);
  const Error error = decode_queue_fact(updated).error();
  EXPECT_EQ(error.code, Errc::store_too_new);
  EXPECT_NE(error.text.find("field 99 of the settings in a fact 'QueueUpdated' of the queues"),
            std::string::npos)
      << error.text;
}

TEST(QueueFormat, SettingsThatNobodyChangedTakeOneByte) {
  std::string bytes;
  Encoder out(bytes);
  encode(out, QueueSettings{});
  EXPECT_EQ(bytes, std::string(1, '\0'));
}

TEST(QueueFormat, ASettingLargerThanItsTypeIsRefused) {
  std::string fields;
  Encoder inner(fields);
  put_field(inner, 2, std::uint64_t{1} << 32U | 5U);
  std::string bytes;
  Encoder(bytes).blob(fields);
  Decoder in(bytes);
  decode_settings(in);
  EXPECT_FALSE(in.ok());
}

/// A row's value with one more field after its known ones, or in its head.
std::string row_with_field(const std::string& name, Need need) {
  std::string field;
  Encoder out(field);
  put_field(out, 99, "of a later version", need);
  const std::string value = row_bytes().at(name);
  if (!name.starts_with("messages") && !name.starts_with("outgoing")) return value + field;
  Decoder in(value);
  std::string longer(1, static_cast<char>(in.u8()));
  Encoder(longer).blob(std::string(in.blob()) + field);
  return longer + std::string(in.rest());
}

template <class Decode>
void expect_growing(const std::string& name, const std::string& table, Decode decode) {
  const auto skipped = decode(row_with_field(name, {}));
  ASSERT_TRUE(skipped.has_value()) << name << ": " << to_string(skipped.error());
  EXPECT_EQ(encode_row(*skipped), row_bytes().at(name));
  const auto refused = decode(row_with_field(name, Need{3}));
  ASSERT_FALSE(refused.has_value()) << name;
  EXPECT_EQ(refused.error().code, Errc::store_too_new);
  EXPECT_NE(refused.error().text.find("field 99 in a row of the table '" + table + "'"),
            std::string::npos)
      << refused.error().text;
}

TEST(QueueFormat, RowsSkipAFieldToComeAndRefuseOneThatMustBeUnderstood) {
  expect_growing("messages.value", "messages", decode_message_row);
  expect_growing("outgoing.value.2", "messages", decode_message_row);
  expect_growing("keys.value", "keys", decode_key_row);
  expect_growing("leases.value", "leases", decode_lease_row);
  expect_growing("queues.value", "queues", decode_queue_row);
  expect_growing("dedup.value", "dedup", decode_dedup_row);
  expect_growing("ids.value", "ids", decode_id_row);
}

// Such a row is only a key, until a later version has something to add.
TEST(QueueFormat, ARowOfAReceivedTransferCanGrow) {
  std::string key;
  Encoder out(key);
  for (const std::uint64_t number : {1U, 2U, 3U}) out.big_u64(number);
  const auto load_with = [&](Need need) {
    std::string value;
    Encoder field(value);
    put_field(field, 99, "of a later version", need);
    return QueueMachine({}, 1).load(tables::kReceived, {key, value});
  };
  EXPECT_TRUE(load_with({}).has_value());
  const Status refused = load_with(Need{3});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::store_too_new);
}

TEST(QueueFormat, ACutRowIsRefused) {
  const auto rows = row_bytes();
  const auto all_cuts = [&](const std::string& name, auto decode) {
    for (std::size_t length = 0; length < rows.at(name).size(); ++length) {
      EXPECT_FALSE(decode(std::string_view(rows.at(name)).substr(0, length)).has_value())
          << name << " at " << length;
    }
  };
  all_cuts("keys.value", decode_key_row);
  all_cuts("leases.value", decode_lease_row);
  all_cuts("queues.value", decode_queue_row);
  all_cuts("dedup.value", decode_dedup_row);
  all_cuts("ids.value", decode_id_row);
}

// A message has fields only in format 2, which no version writes yet.
std::string message_with_field(Need need) {
  const MessageRef plain = Message::make({}, id(), kEnqueued, kDue);
  std::string bytes(plain->bytes());
  bytes[0] = 2;
  std::string fields;
  Encoder out(fields);
  put_field(out, 99, "of a later version", need);
  Encoder(bytes).blob(fields);
  return bytes + "payload";
}

TEST(QueueFormat, AMessageKeepsFieldsToComeAndIsRefusedWithOneThatMustBeUnderstood) {
  const Result<MessageRef> kept = Message::parse(message_with_field({}));
  ASSERT_TRUE(kept.has_value()) << to_string(kept.error());
  EXPECT_EQ((*kept)->payload(), "payload");
  const MessageRef more = Message::with_headers(**kept, {{"new", "1"}}, kDeadline);
  EXPECT_EQ(more->payload(), "payload");
  EXPECT_NE(more->bytes().find("of a later version"), std::string_view::npos);
  EXPECT_EQ(more->header("new"), "1");

  const Result<MessageRef> refused = Message::parse(message_with_field(Need{3}));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::store_too_new);
  EXPECT_NE(refused.error().text.find("field 99 in a stored message"), std::string::npos)
      << refused.error().text;
}

// A later version may add fields to a transfer; this version reads the ones it knows.
TEST(QueueFormat, ATransferWithFieldsToComeIsReadInFormat1) {
  // OutgoingDone: kind 18, a blob of version 1 and the fields.
  std::string bytes("\x12\x17\x01\xad\x02\x80\xf1\x04\x15", 9);
  bytes += id().raw();
  std::string longer = bytes + "more";
  longer[1] = static_cast<char>(longer[1] + 4);
  Decoder in(longer);
  const Result<QueueFact> decoded = decode_queue_fact_1(in);
  ASSERT_TRUE(decoded.has_value() && in.finish());
  EXPECT_EQ(encoded(*decoded), encoded(OutgoingDone{transfer(), QueueId{21}, id()}));
  longer[2] = 2;
  Decoder newer(longer);
  EXPECT_EQ(decode_queue_fact_1(newer).error().code, Errc::malformed);
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

// The store sorts keys as bytes; scans rely on this order being the order of numbers.
TEST(QueueFormat, TheOrderOfKeysIsTheOrderOfNumbers) {
  EXPECT_LT(message_key(QueueId{1}, "a", Sequence{255}),
            message_key(QueueId{1}, "a", Sequence{256}));
  EXPECT_LT(message_key(QueueId{255}, "z", Sequence{9}),
            message_key(QueueId{256}, "a", Sequence{1}));
  EXPECT_LT(time_key(Instant{255}, QueueId{9}, id()), time_key(Instant{256}, QueueId{1}, Uuid{}));
  const std::string prefix = fairness_key_row(QueueId{1}, "a");
  EXPECT_LT(message_key(QueueId{1}, "a", Sequence{~0ULL}), prefix_end(prefix));
  // If one key is a prefix of another, the other's rows are not in its range.
  EXPECT_FALSE(message_key(QueueId{1}, "ab", Sequence{1}).starts_with(prefix));
}

TEST(QueueFormat, ARowOfIdsNamesATableThatExists) {
  std::string bytes = encode_row(IdRow{tables::kMessages, "key"});
  EXPECT_TRUE(decode_id_row(bytes).has_value());
  for (const char table : {'\x7f', '\xff'}) {  // Of both formats.
    bytes[0] = table;
    EXPECT_EQ(decode_id_row(bytes).error().code, Errc::store_corrupt);
  }
}

}  // namespace
}  // namespace baton::format_samples
