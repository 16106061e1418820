// For any input, the answer names the field and the limit, and the broker keeps running.
#include <memory>

#include <baton/v1/queues.grpc.pb.h>
#include <fmt/format.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "e2e/broker_process.h"

namespace baton::e2e {
namespace {

constexpr int kUsage = 2;
constexpr int kNotFound = 3;
constexpr int kExists = 4;
constexpr int kUnreachable = 5;
constexpr int kLimit = 6;

using Words = std::vector<std::string>;

/// What is typed, how the command ends, and what the error must say.
struct Case {
  std::vector<std::string> arguments;
  int exit_code;
  Words words;
};

std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += word.substr(0, 60) + " ";
  return line;
}

class BadInput : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(broker_.start()) << broker_.log();
    broker_.create("jobs");
    broker_.send("jobs", {"kept"});
  }
  // The broker runs, and nothing was lost.
  void TearDown() override {
    ASSERT_TRUE(broker_.is_running()) << broker_.log();
    const auto stream = open_stream(broker_, "jobs");
    EXPECT_EQ(payloads_of(take(*stream, 1)), (std::vector<std::string>{"kept"}));
    EXPECT_EQ(broker_.stats("jobs").enqueued_total, stored_);
    EXPECT_EQ(broker_.log().find("ssert"), std::string::npos) << broker_.log();
  }

  void expect(const std::vector<Case>& cases) {
    for (const Case& each : cases) {
      const CommandResult result = broker_.cli(each.arguments);
      EXPECT_EQ(result.exit_code, each.exit_code) << joined(each.arguments) << "\n" << result.err;
      EXPECT_EQ(result.out, "") << joined(each.arguments);
      for (const std::string& word : each.words) {
        EXPECT_NE(result.err.find(word), std::string::npos)
            << joined(each.arguments) << "\nsays: " << result.err << "\nand not: " << word;
      }
    }
  }
  std::unique_ptr<v1::QueueService::Stub> stub() {
    return v1::QueueService::NewStub(broker_.channel());
  }

  BrokerProcess broker_;
  std::uint64_t stored_ = 1;
};

TEST_F(BadInput, AnUnknownQueueIsNamed) {
  const Words words{"nowhere", "no queue"};
  expect({{{"queue", "send", "nowhere", "x"}, kNotFound, words},
          {{"queue", "send", "nowhere", "x", "--count", "20"}, kNotFound, words},
          {{"queue", "lease", "nowhere"}, kNotFound, words},
          {{"queue", "describe", "nowhere"}, kNotFound, words},
          {{"queue", "update", "nowhere", "--attempts-max", "3"}, kNotFound, words},
          {{"queue", "delete", "nowhere"}, kNotFound, words},
          {{"queue", "peek", "nowhere"}, kNotFound, words},
          {{"queue", "purge", "nowhere", "--yes"}, kNotFound, words},
          {{"queue", "redrive", "nowhere"}, kNotFound, words}});
}

TEST_F(BadInput, NamesHaveLimits) {
  const std::string longest(200, 'n');
  expect({{{"queue", "create", ""}, kUsage, {"empty"}},
          {{"queue", "create", longest + "n"}, kUsage, {"queue name", "201", "200"}},
          {{"queue", "create", "two words"}, kUsage, {"queue name", "letters"}},
          {{"queue", "create", "new\nline"}, kUsage, {"queue name", "letters"}},
          {{"queue", "create", "\xc3\xa9t\xc3\xa9"}, kUsage, {"queue name", "letters"}},
          {{"queue", "send", "two words", "x"}, kUsage, {"queue name"}},
          {{"queue", "create", "x", "--dead-letter", "two words"}, kUsage, {"queue name"}}});
  EXPECT_EQ(broker_.cli({"queue", "create", longest}).exit_code, 0);
}

TEST_F(BadInput, AQueueThatExistsWithOtherSettings) {
  expect({{{"queue", "create", "jobs", "--attempts-max", "3"}, kExists, {"jobs"}}});
}

TEST_F(BadInput, MessagesHaveLimits) {
  std::vector<std::string> headers{"queue", "send", "jobs", "x"};
  for (int i = 0; i < 65; ++i) {
    headers.emplace_back("--header");
    headers.push_back(fmt::format("name-{}=value", i));
  }
  std::vector<std::string> throttles{"queue", "send", "jobs", "x"};
  for (int i = 0; i < 9; ++i) {
    throttles.emplace_back("--throttle-key");
    throttles.push_back(fmt::format("key-{}", i));
  }
  const std::string k257(257, 'k');
  expect(
      {{{"queue", "send", "jobs", "--size", "1048577"}, kUsage, {"payload", "1048577", "1048576"}},
       {{"queue", "send", "jobs", "--size", "17MiB"}, kUsage, {"17MiB", "16 MiB"}},
       {headers, kUsage, {"headers", "65", "64"}},
       {{"queue", "send", "jobs", "x", "--header", "big=" + std::string(17'000, 'h')},
        kUsage,
        {"headers", "16384"}},
       {throttles, kUsage, {"throttle_keys", "9", "8"}},
       {{"queue", "send", "jobs", "x", "--key", k257}, kUsage, {"fairness_key", "257", "256"}},
       {{"queue", "send", "jobs", "x", "--dedup-id", k257}, kUsage, {"dedup_id", "257", "256"}},
       {{"queue", "send", "jobs", "x", "--header", "nothing"}, kUsage, {"NAME=VALUE"}},
       {{"queue", "send", "jobs"}, kUsage, {"nothing to send"}},
       {{"queue", "send", "jobs", "x", "--size", "3"}, kUsage, {"only one"}},
       {{"queue", "send", "jobs", "--file", "/no/such/file"}, kUsage, {"/no/such/file"}}});
}

TEST_F(BadInput, NegativeAndAbsurdNumbersAreRefused) {
  const std::vector<std::string> lease{"queue", "lease", "jobs"};
  expect({{{"queue", "send", "jobs", "x", "--delay", "-5s"}, kUsage, {"--delay"}},
          {{"queue", "send", "jobs", "x", "--delay", "soon"}, kUsage, {"soon", "duration"}},
          {{"queue", "send", "jobs", "x", "--delay", "366d"}, kUsage, {"delay_ms", "31536000000"}},
          {{"queue", "send", "jobs", "x", "--delay", "99999999999999d"}, kUsage, {"duration"}},
          {{"queue", "send", "jobs", "x", "--count", "-1"}, kUsage, {"--count"}},
          {{"queue", "send", "jobs", "x", "--count", "0"}, kUsage, {"--count"}},
          {{"queue", "create", "x", "--visibility-timeout", "0"},
           kUsage,
           {"visibility_timeout", "1ms"}},
          {{"queue", "create", "x", "--visibility-timeout", "13h"},
           kUsage,
           {"visibility_timeout", "12h"}},
          {{"queue", "create", "x", "--attempts-max", "1000001"}, kUsage, {"1000000"}},
          {{"queue", "create", "x", "--payload-max", "17MiB"}, kUsage, {"--payload-max", "16 MiB"}},
          {{"queue", "create", "x", "--dedup-window", "8d"}, kUsage, {"dedup_window", "7d"}},
          {{"queue", "create", "x", "--weight", "a=1001"}, kUsage, {"1000"}},
          {{"queue", "create", "x", "--weight", "a=-1"}, kUsage, {"--weight"}},
          {{"queue", "create", "x", "--throttle", "a=nan"}, kUsage, {"rate"}},
          {{"queue", "create", "x", "--throttle", "a=5/0"}, kUsage, {"--throttle"}},
          {{"queue", "update", "jobs", "--retry-delay", "2m"}, kUsage, {"retry_delay_max"}},
          {{"queue", "lease", "jobs", "--wait", "-1s"}, kUsage, {"--wait"}},
          {{"queue", "lease", "jobs", "--max", "-1"}, kUsage, {"--max"}},
          {{"queue", "lease", "jobs", "--max", "200000"}, kUsage, {"100000"}},
          {{"queue", "lease", "jobs", "--ack", "--nack"}, kUsage, {"only one"}},
          {{"queue", "peek", "jobs", "--max", "1001"}, kUsage, {"1000"}},
          {{"queue", "lease", "jobs", "--consumer", "two words"}, kUsage, {"consumer_id"}}});
}

TEST_F(BadInput, WhatIsNotACommandIsRefused) {
  expect({{{"queue", "send", "jobs", "x", "--no-such-flag"}, kUsage, {"--no-such-flag"}},
          {{"queue", "explode", "jobs"}, kUsage, {"explode", "baton queue --help"}},
          {{"explode"}, kUsage, {"explode", "baton --help"}},
          {{}, kUsage, {"give a command", "queue"}},
          {{"server", "--data", "x", "--no-such-flag"}, kUsage, {"--no-such-flag"}},
          {{"server"}, kUsage, {"--data"}},
          {{"queue", "describe"}, kUsage, {"QUEUE", "baton queue describe --help"}}});
}

TEST_F(BadInput, MessagesThatAreNotThereAreNamed) {
  const std::string id = "0190a5e2-7b1c-7def-8a3b-0123456789ab";
  expect({{{"queue", "cancel", "jobs", id}, kNotFound, {id}},
          {{"queue", "cancel", "jobs", "no-id"}, kUsage, {"no-id"}},
          {{"queue", "peek", "jobs", "--id", id}, kNotFound, {id}},
          {{"queue", "peek", "jobs", "--id", "no-id"}, kUsage, {"no-id"}}});
}

TEST_F(BadInput, AConfiguredLimitIsACodeOfItsOwn) {
  broker_.create("small", {.messages_max = 2});
  broker_.send("small", {"1", "2"});
  expect({{{"queue", "send", "small", "3"}, kLimit, {"small", "2"}}});
}

TEST_F(BadInput, NoBrokerThere) {
  const CommandResult result =
      run_command({binary(), "queue", "list", "--address", "127.0.0.1:1", "--timeout", "500ms"});
  EXPECT_EQ(result.exit_code, kUnreachable);
  EXPECT_NE(result.err.find("127.0.0.1:1"), std::string::npos) << result.err;
}

TEST_F(BadInput, ErrorsAreJsonWhereJsonIsAsked) {
  const CommandResult result = broker_.cli({"queue", "describe", "nowhere", "--json"});
  EXPECT_EQ(result.exit_code, kNotFound);
  EXPECT_TRUE(result.err.starts_with("{")) << result.err;
  EXPECT_NE(result.err.find("\"name\":\"queue_not_found\""), std::string::npos) << result.err;
}

// Garbage names no lease; tokens of other lives or numbers name one that is over. Both are lost.
TEST_F(BadInput, LeaseTokensThatNameNothingAreLost) {
  const std::vector<client::LeaseToken> tokens{{.bytes = ""},
                                               {.bytes = "x"},
                                               {.bytes = std::string(1'000, '\xff')},
                                               {.bytes = std::string("\x01\x7f", 2)},
                                               {.bytes = std::string("\x7f\x01", 2)},
                                               {.bytes = std::string(20, '\0')}};
  auto client = broker_.client();
  const auto acks = client.queue("jobs").ack(tokens);
  ASSERT_TRUE(acks.has_value());
  std::vector<client::Nack> nacks;
  std::vector<client::Extension> extensions;
  for (const auto& token : tokens) {
    nacks.push_back({.token = token});
    extensions.push_back({.token = token});
  }
  const auto nacked = client.queue("jobs").nack(nacks);
  const auto extended = client.queue("jobs").extend(extensions);
  ASSERT_TRUE(nacked.has_value() && extended.has_value());
  for (const auto* results : {&*acks, &*nacked, &*extended}) {
    ASSERT_EQ(results->size(), tokens.size());
    for (const auto& result : *results) {
      ASSERT_FALSE(result.has_value());
      EXPECT_EQ(result.error().code, Errc::lease_lost) << to_string(result.error());
    }
  }
}

TEST_F(BadInput, ABadMessageDoesNotFailItsNeighbours) {
  v1::EnqueueRequest request;
  request.set_queue("jobs");
  for (int i = 0; i < 6; ++i) request.add_messages()->set_payload(fmt::format("{}", i));
  request.mutable_messages(1)->set_payload(std::string(1'048'577, 'x'));
  request.mutable_messages(2)->set_delay_ms(~std::uint64_t{0});
  request.mutable_messages(3)->set_fairness_key(std::string(300, 'k'));
  (*request.mutable_messages(4)->mutable_headers())[""] = "no name";
  grpc::ClientContext context;
  v1::EnqueueResponse response;

  const grpc::Status status = stub()->Enqueue(&context, request, &response);

  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.results_size(), 6);
  const Words fields{"", "payload", "delay_ms", "fairness_key", "headers", ""};
  for (int i = 0; i < 6; ++i) {
    const auto& result = response.results(i);
    const std::string& field = fields[static_cast<std::size_t>(i)];
    EXPECT_EQ(result.has_error(), !field.empty()) << i;
    EXPECT_EQ(result.id().empty(), !field.empty()) << i;
    EXPECT_NE(result.error().text().find(field), std::string::npos) << result.error().text();
    EXPECT_EQ(result.error().name(), field.empty() ? "" : "invalid_argument") << i;
  }
  stored_ += 2;
}

TEST_F(BadInput, TooManyItemsInOneCall) {
  v1::EnqueueRequest request;
  request.set_queue("jobs");
  for (int i = 0; i < 10'001; ++i) request.add_messages();
  grpc::ClientContext context;
  v1::EnqueueResponse response;
  const grpc::Status status = stub()->Enqueue(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("10000"), std::string::npos) << status.error_message();
}

TEST_F(BadInput, ARequestOverTheSizeLimitIsRefusedAndNamesIt) {
  v1::EnqueueRequest request;
  request.set_queue("jobs");
  for (int i = 0; i < 40; ++i) request.add_messages()->set_payload(std::string(1'000'000, 'x'));
  grpc::ClientContext context;
  v1::EnqueueResponse response;
  const grpc::Status status = stub()->Enqueue(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_NE(status.error_message().find("33554432"), std::string::npos) << status.error_message();
}

TEST_F(BadInput, AnEnqueueStreamAnswersBadBatchesAndLivesOn) {
  const auto queues = stub();
  grpc::ClientContext context;
  const auto stream = queues->EnqueueStream(&context);
  v1::EnqueueRequest bad;
  bad.set_queue("no such name!");
  bad.add_messages()->set_payload("lost");
  v1::EnqueueRequest good;
  good.set_queue("jobs");
  good.add_messages()->set_payload("good");
  v1::EnqueueRequest empty;
  v1::EnqueueRequest unknown;
  unknown.set_queue("nowhere");
  unknown.add_messages();
  for (const auto* request : {&bad, &empty, &unknown, &good}) ASSERT_TRUE(stream->Write(*request));
  stream->WritesDone();
  std::vector<v1::EnqueueResponse> responses;
  v1::EnqueueResponse response;
  while (stream->Read(&response)) responses.push_back(response);
  EXPECT_TRUE(stream->Finish().ok());

  ASSERT_EQ(responses.size(), 4U);
  ASSERT_EQ(responses[0].results_size(), 1);
  EXPECT_EQ(responses[0].results(0).error().name(), "invalid_argument");
  EXPECT_EQ(responses[1].results_size(), 0);
  EXPECT_EQ(responses[2].results(0).error().name(), "queue_not_found");
  EXPECT_FALSE(responses[3].results(0).has_error());
  stored_ += 1;
}

/// Sends bytes that are not a message to a streaming method, and returns its status.
grpc::Status send_garbage(const BrokerProcess& broker, const std::string& method) {
  grpc::GenericStub stub(broker.channel());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + seconds{20});
  grpc::CompletionQueue events;
  const auto next = [&] {
    void* tag = nullptr;
    bool ok = false;
    return events.Next(&tag, &ok) && ok;
  };
  const auto call = stub.PrepareCall(&context, method, &events);
  call->StartCall(nullptr);
  EXPECT_TRUE(next());
  const grpc::Slice slice(std::string(100, '\xff'));
  call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
  next();
  grpc::ByteBuffer answer;
  call->Read(&answer, nullptr);
  EXPECT_FALSE(next());
  grpc::Status status;
  call->Finish(&status, nullptr);
  next();
  return status;
}

TEST_F(BadInput, GarbageOnAStreamEndsThatStreamAndNothingElse) {
  for (const auto* method :
       {"/baton.v1.QueueService/EnqueueStream", "/baton.v1.QueueService/Consume",
        "/baton.v1.QueueService/Enqueue", "/baton.v1.QueueService/Lease"}) {
    const grpc::Status status = send_garbage(broker_, method);
    fmt::print("{}: {} {}\n", method, static_cast<int>(status.error_code()),
               status.error_message());
    EXPECT_FALSE(status.ok()) << method;
    EXPECT_NE(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << method;
  }
  EXPECT_EQ(send_garbage(broker_, "/baton.v1.QueueService/Explode").error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(BadInput, AConsumeStreamThatDoesNotBeginWithItsStartIsRefused) {
  const auto queues = stub();
  grpc::ClientContext context;
  const auto stream = queues->Consume(&context);
  v1::ConsumeRequest request;
  request.add_acks("x");
  ASSERT_TRUE(stream->Write(request));
  v1::ConsumeResponse response;
  EXPECT_FALSE(stream->Read(&response));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("start"), std::string::npos) << status.error_message();
}

// Everything below is refused before a data folder is touched.

struct ServerCase {
  std::vector<std::string> flags;
  int exit_code;
  Words words;
};

TEST(BadServer, AnAddressBeyondThisMachineNeedsTlsOrInsecure) {
  const TempFolder folder;
  for (const auto* flag : {"--listen", "--http"}) {
    const CommandResult result =
        run_command({binary(), "server", "--data", folder / "data", flag, "0.0.0.0:0"});
    EXPECT_EQ(result.exit_code, kUsage) << result.err;
    for (const auto* word : {flag, "0.0.0.0", "--insecure", "other machines"}) {
      EXPECT_NE(result.err.find(word), std::string::npos) << word << "\n" << result.err;
    }
    // HTTP has no TLS: the error must not ask for it.
    const bool advises_tls = result.err.find("--tls-cert") != std::string::npos;
    EXPECT_EQ(advises_tls, std::string_view(flag) == "--listen") << result.err;
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "data"));

  BrokerProcess told({"--insecure"});
  told.flags().insert(told.flags().end(), {"--log-level", "info"});
  EXPECT_TRUE(told.start()) << told.log();
}

TEST(BadServer, SettingsHaveLimits) {
  const TempFolder folder;
  const std::vector<ServerCase> cases{
      {{"--fsync", "sometimes"}, kUsage, {"--fsync", "always"}},
      {{"--fsync", "interval:0"}, kUsage, {"interval"}},
      {{"--shards", "0"}, kUsage, {"--shards", "256"}},
      {{"--shards", "257"}, kUsage, {"--shards", "256"}},
      {{"--listen", "nonsense"}, kUsage, {"nonsense", "port"}},
      {{"--listen", "127.0.0.1:99999"}, kUsage, {"99999"}},
      {{"--request-max", "1"}, kUsage, {"64KiB"}},
      {{"--log-level", "loud"}, kUsage, {"loud", "debug"}},
      {{"--tls-cert", "/no/such/file"}, kUsage, {"--tls-key"}},
      {{"--tls-ca", "/no/such/file"}, kUsage, {"--tls-cert"}},
      {{"--ready-file", folder / "none/ready"}, kUsage, {"--ready-file", folder / "none/ready"}},
      {{"--ready-file", folder.path()}, kUsage, {"--ready-file"}},
      {{"--config", "/no/such/file"}, kUsage, {"/no/such/file"}}};
  for (const ServerCase& each : cases) {
    std::vector<std::string> command{binary(), "server", "--data", folder / "data"};
    // The last of two flags does not win, so these come first only where the case has its own.
    if (each.flags[0] != "--listen") {
      command.insert(command.end(), {"--listen", "127.0.0.1:0"});
    }
    command.insert(command.end(), {"--http", "off"});
    command.insert(command.end(), each.flags.begin(), each.flags.end());
    const CommandResult result = run_command(command, {.within = seconds{10}});
    EXPECT_EQ(result.exit_code, each.exit_code) << joined(each.flags) << "\n" << result.err;
    for (const std::string& word : each.words) {
      EXPECT_NE(result.err.find(word), std::string::npos) << word << "\n" << result.err;
    }
    EXPECT_FALSE(std::filesystem::exists(folder / "data")) << joined(each.flags);
  }
}

TEST(BadServer, AMalformedConfigFileIsRefusedWithItsLine) {
  const TempFolder folder;
  const std::string file = folder / "config.yaml";
  const std::vector<std::pair<std::string, Words>> cases{
      {"fsync: always\nshards: many\n", {":2:", "shards", "many"}},
      {"fsync: always\nno-such-setting: 1\n", {":2:", "no-such-setting"}},
      {"fsync: [1, 2\n", {"config.yaml"}},
      {"- a\n- list\n", {"config.yaml"}},
      {"shards: 1\nshards: 2\n", {":2:", "twice"}},
      {"shards: {a: 1}\n", {"shards"}},
      {std::string("\xff\xfe\x00\x01", 4), {"config.yaml"}},
      {"listen: 0.0.0.0:0\n", {"--insecure"}},
      {std::string(2'000'000, 'x'), {"config.yaml"}}};
  for (const auto& [text, words] : cases) {
    write_file(file, text);
    const CommandResult result = run_command(
        {binary(), "server", "--data", folder / "data", "--config", file}, {.within = seconds{10}});
    EXPECT_EQ(result.exit_code, kUsage) << text.substr(0, 100) << "\n" << result.err;
    for (const std::string& word : words) {
      EXPECT_NE(result.err.find(word), std::string::npos) << word << "\n" << result.err;
    }
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "data"));
}

}  // namespace
}  // namespace baton::e2e
