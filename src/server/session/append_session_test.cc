#include "server/session/append_session.h"

#include <string>

#include "server/session/session_fixture.h"

namespace baton {
namespace {

using Connection = TestConnection<AppendSession>;

class AppendSessionTest : public SessionTest {
 protected:
  AppendSessionTest() {
    CreateStreamCommand create;
    create.stream = "s";
    broker_.execute(std::move(create));
  }

  static AppendCommand records(int count, const std::string& stream = "s") {
    AppendCommand command;
    command.stream = stream;
    for (int i = 0; i < count; ++i) {
      NewRecord record;
      record.value = "v";
      command.records.push_back(std::move(record));
    }
    return command;
  }
  void append(int count, std::size_t bytes = 10) {
    client_.request([&](AppendSession& session) { session.take(records(count), bytes); });
  }

  Connection client_{broker_, std::make_shared<AppendSession>(state_)};
};

TEST_F(AppendSessionTest, ConfirmsInTheOrderOfTheRequestsWithThoseRefusedAsAWhole) {
  append(2);
  client_.request([](AppendSession& session) {
    AppendOutcomes outcomes;
    outcomes.records.resize(1);
    outcomes.records[0].error = Error{Errc::invalid_argument, "a bad name"};
    session.refuse(std::move(outcomes), 10);
  });
  client_.request([](AppendSession& session) { session.take(records(1, "absent"), 10); });
  append(1);
  const auto outputs = client_.take(4);
  ASSERT_EQ(outputs.size(), 4U);
  ASSERT_EQ(outputs[0].records.size(), 2U);
  EXPECT_EQ(outputs[0].records[1].offset, Offset{1});
  EXPECT_EQ(outputs[1].records[0].error->code, Errc::invalid_argument);
  EXPECT_EQ(outputs[2].records[0].error->code, Errc::stream_not_found);
  EXPECT_EQ(outputs[3].records[0].offset, Offset{2});
}

TEST_F(AppendSessionTest, WhatIsUnderWayIsConfirmedBeforeTheEnd) {
  append(1);
  client_.close();
  EXPECT_TRUE(client_.wait_for_end().has_value());
  EXPECT_EQ(client_.now().size(), 1U);
}

TEST_F(AppendSessionTest, ReadsNoMoreThanItsBytes) {
  append(1, limits::kStreamBytes - 1);
  broker_.turn();
  client_.take(1);
  client_.request_without_a_turn(
      [](AppendSession& session) { session.take(records(1), limits::kStreamBytes); });
  EXPECT_FALSE(client_.is_read());
  client_.take(1);
  EXPECT_TRUE(client_.is_read());
}

TEST_F(AppendSessionTest, ABrokerThatStopsEndsItAsUnavailable) {
  broker_.refuse();
  append(1);
  EXPECT_EQ(client_.wait_for_end().error().code, Errc::unavailable);
  EXPECT_TRUE(client_.now().empty());
}

}  // namespace
}  // namespace baton
