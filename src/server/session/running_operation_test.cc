#include "server/session/running_operation.h"

#include <memory>

#include <gtest/gtest.h>

#include "server/session/enqueue_session.h"
#include "server/session/session_fixture.h"

namespace baton {
namespace {

using RunningOperationTest = SessionTest;

TEST_F(RunningOperationTest, EndsAreCountedByTheirCodeAndCallsAreTimed) {
  RunningOperation(state_, Operation::peek).ended(0);
  RunningOperation(state_, Operation::peek).ended(5);
  RunningOperation(state_, Operation::consume).ended(0);
  EXPECT_EQ(state_->counters.ended(Operation::peek), 2U);
  EXPECT_EQ(state_->counters.calls[index_of(Operation::peek)][5].load(), 1U);
  EXPECT_EQ(state_->counters.ended(Operation::consume), 1U);
  EXPECT_EQ(state_->counters.ended(Operation::lease), 0U);
  EXPECT_EQ(state_->counters.latencies[index_of(Operation::peek)].read().total(), 2U);
  // How long a client keeps a session open is not a latency.
  EXPECT_EQ(state_->counters.latencies[index_of(Operation::consume)].read().total(), 0U);
}

TEST_F(RunningOperationTest, AShutdownAdmitsOnlyWhatFinishesWork) {
  const RunningOperation operation(state_, Operation::ack);
  EXPECT_TRUE(operation.admit(false).has_value());
  state_->accepting.store(false);
  EXPECT_EQ(operation.admit(false).error().code, Errc::unavailable);
  EXPECT_TRUE(operation.admit(true).has_value());
}

TEST_F(RunningOperationTest, ASessionIsCountedAndEndedByAShutdown) {
  auto session = std::make_shared<EnqueueSession>(state_);
  auto running = std::make_unique<RunningSession>(state_, Operation::enqueue_stream, session);
  EXPECT_EQ(state_->counters.sessions_open.load(), 1);
  state_->sessions.close();
  state_->sessions.end_all(shutting_down());
  EXPECT_TRUE(session->is_ending());
  running.reset();
  EXPECT_EQ(state_->counters.sessions_open.load(), 0);

  session = std::make_shared<EnqueueSession>(state_);
  const RunningSession late(state_, Operation::enqueue_stream, session);
  EXPECT_TRUE(session->is_ending());
}

}  // namespace
}  // namespace baton
