#include "cli/base/output.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/base/exit_code.h"

namespace baton::cli {
namespace {

client::LeasedMessage leased(std::string payload) {
  client::LeasedMessage message;
  message.id = "id-1";
  message.payload = std::move(payload);
  message.attempt = 2;
  message.token.bytes = std::string("\x01\x02", 2);
  return message;
}

TEST(IsUtf8, RefusesWhatIsNot) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("gr\xc3\xbc\xc3\x9f"));
  EXPECT_TRUE(is_utf8(std::string_view("a\0b", 3)));
  EXPECT_FALSE(is_utf8("\xff"));
  EXPECT_FALSE(is_utf8("\xc3"));
  EXPECT_FALSE(is_utf8("\xc0\x80"));      // Overlong.
  EXPECT_FALSE(is_utf8("\xed\xa0\x80"));  // A surrogate.
}

TEST(MessageJson, HasTheNamesOfTheSchema) {
  EXPECT_EQ(dump(to_json(leased("hello"))),
            R"({"id":"id-1","payload":"hello","headers":{},"fairness_key":"","attempt":2,)"
            R"("enqueued_at_ns":0,"lease_deadline_ns":0,"lease_token":"AQI=","throttle_keys":[]})");
}

// JSON cannot hold arbitrary bytes: what is not text must still arrive whole.
TEST(MessageJson, APayloadThatIsNotTextIsBase64) {
  const Json json = to_json(leased("\xff\xff\xfe"));
  EXPECT_FALSE(json.contains("payload"));
  EXPECT_EQ(json["payload_base64"], "///+");
}

TEST(MessageJson, IsOneLineWhateverThePayloadHolds) {
  EXPECT_EQ(dump(to_json(leased("a\nb\r\n\x01"))).find('\n'), std::string::npos);
}

// A payload may come from anybody; a terminal obeys escape sequences.
TEST(MessageText, ShowsControlCharactersInsteadOfSendingThem) {
  const std::string text = describe(leased("a\x1b[2Jb\nsecond"));
  EXPECT_EQ(text, "id-1  attempt 2  13 bytes\n    a\\x1b[2Jb\n    second");
}

TEST(MessageText, ALongPayloadIsCutBetweenCharacters) {
  std::string payload(2047, 'x');
  payload += "\xc3\xbc and more";
  const std::string text = describe(leased(payload));
  EXPECT_TRUE(is_utf8(text));
  EXPECT_TRUE(text.ends_with("x\n    ... (--json shows all)"));
}

TEST(MessageText, BytesAreCountedNotShown) {
  EXPECT_EQ(describe(leased("\xff")),
            "id-1  attempt 2  1 byte\n    (1 byte that is not text; --json shows all)");
}

TEST(PeekedText, SaysHowOftenItFailedOnlyIfItDid) {
  client::PeekedMessage message{.id = "id-1", .payload = "hi"};
  message.state = client::MessageState::ready;
  EXPECT_EQ(describe(message), "id-1  ready  2 bytes\n    hi");
  message.state = client::MessageState::leased;
  message.consumer_id = "worker-1";
  message.attempts = 2;
  EXPECT_EQ(describe(message), "id-1  leased by worker-1, failed 2 times  2 bytes\n    hi");
}

TEST(QueueJson, LeavesOutWhatIsAbsent) {
  client::QueueInfo queue{.name = "jobs", .id = 7};
  queue.settings.attempts_max = 3;
  queue.settings.throttles["smtp"] = {.rate = 1.5, .burst = 2};
  const Json json = to_json(queue);
  EXPECT_EQ(json["settings"]["attempts_max"], 3);
  EXPECT_FALSE(json["settings"].contains("retention_ms"));
  EXPECT_EQ(json["settings"]["throttles"]["smtp"]["rate"], 1.5);
  EXPECT_EQ(json["stats"]["ready"], 0);
}

TEST(QueueText, NamesTheDeadLetterQueueThatCounts) {
  const auto line_of = [](const std::string& name, const std::string& set) {
    client::QueueInfo queue{.name = name};
    queue.settings.dead_letter_queue = set;
    const std::string text = describe(queue);
    const auto at = text.find("dead-letter queue");
    return text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_EQ(line_of("jobs", ""), "dead-letter queue     jobs.dlq");
  EXPECT_EQ(line_of("jobs", "graveyard"), "dead-letter queue     graveyard");
  EXPECT_EQ(line_of("jobs.dlq", ""), "dead-letter queue     none");
}

TEST(Table, NumbersGoToTheRight) {
  EXPECT_EQ(format_table({{"NAME", "READY"}, {"a", "10"}, {"long-name", "7"}}),
            "NAME       READY\n"
            "a             10\n"
            "long-name      7");
}

TEST(FormatBytes, TakesTheUnitThatFits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1 KiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(std::uint64_t{5} << 40U), "5 TiB");
  EXPECT_EQ(format_bytes(~std::uint64_t{0}), "16777216 TiB");
}

TEST(FormatCount, GroupsDigits) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1 000");
  EXPECT_EQ(format_count(1234567), "1 234 567");
}

// Scripts depend on these.
TEST(ExitCodes, FollowFromTheErrorsCode) {
  EXPECT_EQ(exit_code_of(Errc::invalid_argument), ExitCode::usage);
  EXPECT_EQ(exit_code_of(Errc::queue_not_found), ExitCode::not_found);
  EXPECT_EQ(exit_code_of(Errc::message_not_found), ExitCode::not_found);
  EXPECT_EQ(exit_code_of(Errc::queue_exists), ExitCode::already_exists);
  EXPECT_EQ(exit_code_of(Errc::unavailable), ExitCode::unreachable);
  EXPECT_EQ(exit_code_of(Errc::deadline_exceeded), ExitCode::unreachable);
  EXPECT_EQ(exit_code_of(Errc::queue_full), ExitCode::limit);
  EXPECT_EQ(exit_code_of(Errc::dedup_full), ExitCode::limit);
  EXPECT_EQ(exit_code_of(Errc::lease_lost), ExitCode::partial);
  EXPECT_EQ(exit_code_of(Errc::internal), ExitCode::failure);
  EXPECT_EQ(exit_code_of(Errc::failed_precondition), ExitCode::usage);
  EXPECT_EQ(exit_code_of(Errc::folder_in_use), ExitCode::folder_in_use);
  EXPECT_EQ(exit_code_of(Errc::journal_corrupt), ExitCode::folder_damaged);
  EXPECT_EQ(exit_code_of(Errc::store_too_new), ExitCode::folder_too_new);
  EXPECT_EQ(exit_code_of(Errc::disk_full), ExitCode::folder_unusable);
  // Where brokers and this machine had codes of their own once.
  EXPECT_EQ(exit_code_of(Errc::already_exists), ExitCode::already_exists);
  EXPECT_EQ(exit_code_of(Errc::resource_exhausted), ExitCode::limit);
  EXPECT_EQ(exit_code_of(Errc::bucket_not_found), ExitCode::not_found);
  EXPECT_EQ(exit_code_of(Errc::malformed), ExitCode::folder_damaged);
  EXPECT_EQ(exit_code_of(Errc::read_only), ExitCode::folder_damaged);
}

TEST(ExitCodes, AreTheDocumentedNumbers) {
  EXPECT_EQ(static_cast<int>(ExitCode::ok), 0);
  EXPECT_EQ(static_cast<int>(ExitCode::failure), 1);
  EXPECT_EQ(static_cast<int>(ExitCode::usage), 2);
  EXPECT_EQ(static_cast<int>(ExitCode::not_found), 3);
  EXPECT_EQ(static_cast<int>(ExitCode::already_exists), 4);
  EXPECT_EQ(static_cast<int>(ExitCode::unreachable), 5);
  EXPECT_EQ(static_cast<int>(ExitCode::limit), 6);
  EXPECT_EQ(static_cast<int>(ExitCode::partial), 7);
  EXPECT_EQ(static_cast<int>(ExitCode::nothing_to_lease), 8);
  EXPECT_EQ(static_cast<int>(ExitCode::folder_in_use), 9);
  EXPECT_EQ(static_cast<int>(ExitCode::folder_damaged), 10);
  EXPECT_EQ(static_cast<int>(ExitCode::folder_too_new), 11);
  EXPECT_EQ(static_cast<int>(ExitCode::folder_unusable), 12);
  EXPECT_EQ(static_cast<int>(ExitCode::revision_mismatch), 13);
}

}  // namespace
}  // namespace baton::cli
