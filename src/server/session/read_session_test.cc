#include "server/session/read_session.h"

#include <string>

#include "server/session/session_fixture.h"

namespace baton {
namespace {

using Connection = TestConnection<ReadSession>;

/// "3 4 ", the offsets.
void append_offset(std::string& out, RecordView record) {
  out += std::to_string(record.offset.value) + ' ';
}

class ReadSessionTest : public SessionTest {
 protected:
  ReadSessionTest() {
    CreateStreamCommand create;
    create.stream = "s";
    broker_.execute(std::move(create));
  }

  void append(int records) {
    AppendCommand command;
    command.stream = "s";
    for (int i = 0; i < records; ++i) {
      NewRecord record;
      record.value = "v";
      command.records.push_back(std::move(record));
    }
    broker_.execute(std::move(command));
  }
  std::unique_ptr<Connection> read(const ReadSession::Wanted& wanted,
                                   const std::string& stream = "s") {
    auto session = std::make_shared<ReadSession>(state_, wanted);
    auto connection = std::make_unique<Connection>(broker_, session, false);
    OpenPartitionCommand open;
    open.stream = stream;
    session->begin(std::move(open));
    return connection;
  }
  static ReadSession::Wanted from(std::int64_t offset, std::uint64_t max = 0, bool follow = false) {
    return {.from = {.place = ReadFrom::Place::offset, .offset = Offset{offset}, .time = {}},
            .records_max = max,
            .follow = follow,
            .encode_record = append_offset};
  }
  /// What was read until the end.
  static std::string all_of(Connection& client) {
    EXPECT_TRUE(client.wait_for_end().has_value());
    std::string records;
    for (const Chunk& chunk : client.now()) records += chunk.records;
    return records;
  }
};

TEST_F(ReadSessionTest, ReadsARangeAndEnds) {
  append(3);
  append(3);
  EXPECT_EQ(all_of(*read(from(2, 3))), "2 3 4 ");
  EXPECT_EQ(all_of(*read(from(4))), "4 5 ");
}

TEST_F(ReadSessionTest, FollowsUntilItsCountIsReached) {
  append(1);
  const auto client = read(from(0, 3, true));
  EXPECT_EQ(client->take(1).at(0).records, "0 ");
  append(1);
  EXPECT_EQ(client->take(1).at(0).records, "1 ");
  append(5);
  EXPECT_EQ(all_of(*client), "2 ");
}

TEST_F(ReadSessionTest, ASlowClientGetsOnePieceAheadAndNothingIsLost) {
  const auto client = read(from(0, 40, true));
  client->set_slow(true);
  for (int i = 0; i < 40; ++i) append(1);
  client->take(1);
  // The write under way never ends: nothing follows it.
  EXPECT_TRUE(client->now().empty());
  client->set_slow(false);
  all_of(*client);
}

TEST_F(ReadSessionTest, WhatIsNotThereEndsItWithItsError) {
  append(1);
  EXPECT_EQ(read(from(0), "absent")->wait_for_end().error().code, Errc::stream_not_found);
  EXPECT_EQ(read(from(9))->wait_for_end().error().code, Errc::offset_out_of_range);
}

TEST_F(ReadSessionTest, TooManyAtOnceAreRefusedWithTheLimit) {
  std::vector<std::unique_ptr<ReadSession>> open;
  for (std::size_t i = 0; i < ReadSession::kOpenMax; ++i) {
    open.push_back(std::make_unique<ReadSession>(state_, ReadSession::Wanted{}));
  }
  const Status refused = read(from(0))->wait_for_end();
  EXPECT_EQ(refused.error().code, Errc::resource_exhausted);
  EXPECT_NE(refused.error().text.find("1000"), std::string::npos);
  open.pop_back();
  EXPECT_EQ(all_of(*read(from(0))), "");
}

}  // namespace
}  // namespace baton
