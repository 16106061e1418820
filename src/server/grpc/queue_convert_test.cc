#include "server/grpc/queue_convert.h"

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "server/session/limits.h"

namespace baton {
namespace {

constexpr std::uint64_t kAbsurd = ~0ULL;
constexpr std::int64_t kAbsurdSeconds = std::numeric_limits<std::int64_t>::max();

template <class Command>
std::string error_of(const Result<Command>& result) {
  EXPECT_FALSE(result.has_value());
  if (result.has_value()) return {};
  EXPECT_EQ(result.error().code, Errc::invalid_argument);
  return result.error().text;
}

bool names(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Convert, AQueueNameIsCheckedInEveryRequest) {
  for (const std::string& name : {std::string(), std::string("a b"), std::string(201, 'x')}) {
    v1::CreateQueueRequest create;
    create.set_name(name);
    EXPECT_TRUE(names(error_of(convert(create)), "queue name"));
    v1::EnqueueRequest enqueue;
    enqueue.set_queue(name);
    EXPECT_TRUE(names(error_of(convert(enqueue)), "queue name"));
    v1::AckRequest ack;
    ack.set_queue(name);
    EXPECT_TRUE(names(error_of(convert(ack, TokenSeal{})), "queue name"));
    v1::LeaseRequest lease;
    lease.set_queue(name);
    EXPECT_TRUE(names(error_of(convert(lease)), "queue name"));
    v1::PurgeRequest purge;
    purge.set_queue(name);
    EXPECT_TRUE(names(error_of(convert(purge)), "queue name"));
  }
}

// Multiplied without a check, a huge number of milliseconds would become a small one of
// nanoseconds.
TEST(Convert, AbsurdDurationsAreRefusedByName) {
  v1::CreateQueueRequest request;
  request.set_name("orders");
  request.mutable_settings()->mutable_visibility_timeout()->set_seconds(kAbsurdSeconds);
  EXPECT_TRUE(names(error_of(convert(request)), "visibility_timeout"));
  request.set_name("orders");
  request.mutable_settings()->mutable_visibility_timeout()->set_seconds(1);
  // 2^64 ns and a little more.
  request.mutable_settings()->mutable_retention()->set_seconds(18446744074);
  EXPECT_TRUE(names(error_of(convert(request)), "retention"));
}

TEST(Convert, SettingsThatAreAbsentStayAbsent) {
  v1::UpdateQueueRequest request;
  request.set_name("orders");
  request.mutable_settings()->set_attempts_max(0);
  (*request.mutable_settings()->mutable_weights())["gold"] = 5;

  const Result<UpdateQueueCommand> command = convert(request);

  ASSERT_TRUE(command.has_value());
  EXPECT_EQ(command->queue, "orders");
  EXPECT_EQ(command->settings.attempts_max, 0U);
  EXPECT_FALSE(command->settings.visibility_timeout.has_value());
  EXPECT_FALSE(command->settings.fairness_cost.has_value());
  EXPECT_EQ(command->settings.weights.at("gold"), 5U);
}

TEST(Convert, NonsenseInSettingsIsRefused) {
  v1::UpdateQueueRequest request;
  request.set_name("orders");
  (*request.mutable_settings()->mutable_throttles())["api"].set_rate(std::nan(""));
  EXPECT_TRUE(names(error_of(convert(request)), "throttle 'api'"));
  v1::CreateQueueRequest create;
  create.set_name("orders");
  create.mutable_settings()->set_fairness_cost(static_cast<v1::FairnessCost>(9));
  EXPECT_TRUE(names(error_of(convert(create)), "fairness_cost"));
  create.set_name("orders");
  create.clear_settings();
  create.mutable_settings()->set_payload_bytes_max(limits::kPayloadBytesMax + 1);
  EXPECT_TRUE(names(error_of(convert(create)), "payload_bytes_max"));
}

TEST(Convert, PayloadsAreMovedAndNotCopied) {
  v1::EnqueueRequest request;
  request.set_queue("orders");
  request.add_messages()->set_payload(std::string(1000, 'x'));
  const char* const where = request.messages(0).payload().data();

  const Result<CheckedItems<EnqueueCommand>> checked = convert(request);

  ASSERT_TRUE(checked.has_value());
  EXPECT_EQ(checked->command.messages[0].payload.data(), where);
}

TEST(Convert, EachBadMessageIsRefusedAndNamesItsField) {
  v1::EnqueueRequest request;
  request.set_queue("orders");
  request.add_messages()->set_delay_ms(kAbsurd);
  request.add_messages()->set_expires_after_ms(kAbsurd);
  request.add_messages()->set_payload("good");
  request.add_messages()->set_dedup_id(std::string(limits::kDedupIdBytes + 1, 'd'));
  for (std::size_t i = 0; i <= limits::kThrottleKeysPerMessage; ++i) {
    request.mutable_messages(3)->add_throttle_keys("k");
  }
  request.add_messages()->set_payload(std::string(limits::kPayloadBytesMax + 1, 'p'));
  (*request.add_messages()->mutable_headers())["h"] = std::string(limits::kHeaderBytes, 'v');

  const Result<CheckedItems<EnqueueCommand>> checked = convert(request);

  ASSERT_TRUE(checked.has_value());
  EXPECT_EQ(checked->items, 6U);
  ASSERT_EQ(checked->command.messages.size(), 1U);
  EXPECT_EQ(checked->command.messages[0].payload, "good");
  ASSERT_EQ(checked->refused.size(), 5U);
  const char* const fields[] = {"delay_ms", "expires_after_ms", "throttle_keys", "payload",
                                "headers"};
  const std::size_t places[] = {0, 1, 3, 4, 5};
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(checked->refused[i].index, places[i]);
    EXPECT_TRUE(names(checked->refused[i].error.text, fields[i])) << checked->refused[i].error.text;
  }
}

TEST(Convert, ABatchOverTheLimitIsRefusedWithTheLimit) {
  v1::AckRequest request;
  request.set_queue("orders");
  for (std::size_t i = 0; i <= limits::kBatchItems; ++i) request.add_lease_tokens("x");
  EXPECT_TRUE(names(error_of(convert(request, TokenSeal{})), "10000"));
}

TEST(Convert, ANackSaysWhenToTryAgain) {
  v1::NackRequest request;
  request.set_queue("orders");
  for (int i = 0; i < 5; ++i) {
    request.add_items()->set_lease_token(TokenSeal{}.of("orders").seal({.boot = 1, .number = 2}));
  }
  request.mutable_items(1)->set_delay_ms(0);
  request.mutable_items(2)->set_release(true);
  request.mutable_items(3)->set_release(false);
  request.mutable_items(4)->set_reason(std::string(limits::kReasonBytes + 1, 'r'));

  const Result<CheckedItems<NackCommand>> checked = convert(request, TokenSeal{});

  ASSERT_TRUE(checked.has_value());
  ASSERT_EQ(checked->command.items.size(), 4U);
  EXPECT_EQ(checked->command.items[0].retry.kind, Retry::Kind::backoff);
  EXPECT_EQ(checked->command.items[1].retry.kind, Retry::Kind::after);
  EXPECT_EQ(checked->command.items[2].retry.kind, Retry::Kind::release);
  EXPECT_EQ(checked->command.items[3].retry.kind, Retry::Kind::backoff);
  EXPECT_TRUE(names(checked->refused.at(0).error.text, "reason"));
}

TEST(Convert, BytesThatNameNoLeaseAreALostLease) {
  v1::ExtendRequest request;
  request.set_queue("orders");
  request.add_items()->set_lease_token("\xff\xff");
  const Result<CheckedItems<ExtendCommand>> checked = convert(request, TokenSeal{});
  ASSERT_TRUE(checked.has_value());
  EXPECT_TRUE(checked->settled());
  EXPECT_EQ(checked->refused.at(0).error.code, Errc::lease_lost);
}

TEST(Convert, AConsumerGetsDefaultsAndLimits) {
  v1::LeaseRequest request;
  request.set_queue("orders");
  const Result<AttachCommand> defaults = convert(request);
  ASSERT_TRUE(defaults.has_value());
  EXPECT_EQ(defaults->in_flight_max, limits::kInFlightDefault);
  EXPECT_EQ(defaults->in_flight_bytes_max, limits::kInFlightBytesDefault);
  EXPECT_FALSE(defaults->credit.has_value());
  request.set_queue("orders");
  request.set_in_flight_max(limits::kInFlightMax + 1);
  EXPECT_TRUE(names(error_of(convert(request)), "in_flight_max is 100001; the limit is 100000"));
  EXPECT_EQ(defaults->concurrency, 1U);
  request.set_queue("orders");
  request.set_in_flight_max(1);
  request.set_concurrency(limits::kInFlightMax + 1);
  EXPECT_TRUE(names(error_of(convert(request)), "concurrency is 100001; the limit is 100000"));
  v1::LeaveRequest leave;
  leave.set_queue("orders");
  EXPECT_TRUE(names(error_of(convert(leave)), "consumer_id"));
}

TEST(Convert, AStartSaysWhetherCreditIsManual) {
  v1::ConsumeStart start;
  start.set_queue("orders");
  EXPECT_FALSE(convert(start)->credit.has_value());
  start.set_queue("orders");
  start.set_manual_credit(true);
  EXPECT_EQ(convert(start)->credit, 0U);
}

TEST(Convert, OperatorsRequestsAreChecked) {
  v1::PeekRequest peek;
  peek.set_queue("orders");
  EXPECT_EQ(convert(peek)->messages_max, 10U);
  peek.set_queue("orders");
  peek.set_messages_max(1001);
  EXPECT_TRUE(names(error_of(convert(peek)), "the limit is 1000"));
  v1::RedriveRequest redrive;
  redrive.set_queue("orders.dlq");
  redrive.set_rate(-1);
  EXPECT_TRUE(names(error_of(convert(redrive)), "rate"));
  for (const double rate : {1e-300, 0.0009, 1e10, std::numeric_limits<double>::infinity()}) {
    redrive.set_queue("orders.dlq");
    redrive.set_rate(rate);
    const std::string error = error_of(convert(redrive));
    EXPECT_TRUE(names(error, "rate")) << rate;
    EXPECT_TRUE(names(error, "0.001")) << error;
  }
  redrive.set_queue("orders.dlq");
  redrive.set_rate(0.001);
  EXPECT_EQ(convert(redrive)->rate, 0.001);
  redrive.set_queue("orders.dlq");
  redrive.set_rate(std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(names(error_of(convert(redrive)), "rate"));
}

}  // namespace
}  // namespace baton
