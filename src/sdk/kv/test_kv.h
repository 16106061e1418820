#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <baton/broker.h>
#include <baton/v1/kv.grpc.pb.h>
#include <fmt/format.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include "sdk/base/test_script.h"
#include "server/app/server.h"
#include "server/shard/local_broker.h"
#include "sim/fake_store.h"

/// Brokers for tests of the Kv SDK.
namespace baton::client {

/// A real broker in this process, on a folder of its own: the test kills and starts it at will.
class RealBroker {
 public:
  RealBroker() {
    std::string path = (std::filesystem::temp_directory_path() / "baton-kv-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) ADD_FAILURE() << "no temporary folder";
    folder_ = path;
    start();
  }
  RealBroker(const RealBroker&) = delete;
  RealBroker& operator=(const RealBroker&) = delete;
  ~RealBroker() {
    stop();
    std::filesystem::remove_all(folder_);
  }

  void start() {
    BrokerOptions options;
    options.data = folder_;
    options.shards = 2;
    options.journal.segment_bytes = std::uint64_t{8} << 20U;
    options.open_store =
        [this](const std::string& folder) -> Result<std::unique_ptr<CheckpointStore>> {
      auto& media = media_[folder];
      if (media == nullptr) media = std::make_shared<FakeStoreMedia>(1);
      return std::make_unique<FakeStore>(media);
    };
    auto broker = LocalBroker::open(std::move(options));
    if (!broker.has_value()) fail(to_string(broker.error()));
    broker_ = *std::move(broker);
    ServerOptions server;
    server.listen = fmt::format("127.0.0.1:{}", port_);
    server.http_listen = "";
    auto api = ApiServer::start(*broker_, server);
    if (!api.has_value()) fail(to_string(api.error()));
    api_ = *std::move(api);
    port_ = api_->grpc_port();
  }
  void stop() {
    api_.reset();
    broker_.reset();
  }
  [[nodiscard]] ConnectionOptions connection() const {
    return {.address = fmt::format("127.0.0.1:{}", port_),
            .tls = std::nullopt,
            .deadline = std::chrono::seconds{20},
            .reconnect_min = std::chrono::milliseconds{5},
            .reconnect_max = std::chrono::milliseconds{50}};
  }
  [[nodiscard]] Broker client() const {
    auto client = Broker::open(connection());
    EXPECT_TRUE(client.has_value());
    return *std::move(client);
  }

 private:
  [[noreturn]] static void fail(const std::string& why) {
    ADD_FAILURE() << why;
    std::abort();
  }

  std::string folder_;
  std::map<std::string, std::shared_ptr<FakeStoreMedia>> media_;
  int port_ = 0;
  std::unique_ptr<LocalBroker> broker_;
  std::unique_ptr<ApiServer> api_;
};

/// Tests that share one broker, each with its own bucket: starting a broker takes a second.
class SharedBrokerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { broker_ = std::make_unique<RealBroker>(); }
  static void TearDownTestSuite() { broker_.reset(); }
  void SetUp() override {
    bucket_ = testing::UnitTest::GetInstance()->current_test_info()->name();
    ASSERT_TRUE(client_.bucket(bucket_).create().has_value());
  }

  static inline std::unique_ptr<RealBroker> broker_;  // NOLINT: of the suite.
  std::string bucket_;
  Broker client_ = broker_->client();
};

/// A broker that does what the test's script says. The script gets the call's number, from 1.
class TestKv final : public v1::KvService::Service {
 public:
  using WatchCall = grpc::ServerReaderWriter<v1::WatchKeysResponse, v1::WatchKeysRequest>;

  TestKv() {
    static std::atomic<int> number = 0;
    address_ = fmt::format("unix-abstract:baton-kv-test-{}-{}", getpid(), ++number);
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~TestKv() override { server_->Shutdown(std::chrono::system_clock::now()); }
  TestKv(const TestKv&) = delete;
  TestKv& operator=(const TestKv&) = delete;
  TestKv(TestKv&&) = delete;
  TestKv& operator=(TestKv&&) = delete;

  [[nodiscard]] Broker client() const {
    auto client = Broker::open({.address = address_,
                                .tls = std::nullopt,
                                .deadline = std::chrono::seconds{20},
                                .reconnect_min = std::chrono::milliseconds{1},
                                .reconnect_max = std::chrono::milliseconds{20}});
    EXPECT_TRUE(client.has_value());
    return *std::move(client);
  }

  std::function<grpc::Status(int, WatchCall&)> on_watch;
  std::function<grpc::Status(const v1::PutKeyRequest&, v1::PutKeyResponse&)> on_put;

  grpc::Status WatchKeys(grpc::ServerContext* /*context*/, WatchCall* call) override {
    return on_watch(++watches_, *call);
  }
  grpc::Status PutKey(grpc::ServerContext* /*context*/, const v1::PutKeyRequest* request,
                      v1::PutKeyResponse* response) override {
    return on_put(*request, *response);
  }

 private:
  std::string address_;
  std::atomic<int> watches_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

/// What a watch saw, as words: "a=1@1", "end@1", "+b=2@2", "-a@3", "~b@4", "compacted",
/// "lost:k@1", "disconnected", "ended:bucket_not_found".
class Seen {
 public:
  [[nodiscard]] KvWatchCallback callback() {
    return [this](const KvWatchEvent& event) { words_.add(word(event)); };
  }
  /// The words as soon as there are `count` of them.
  std::string wait(std::size_t count) { return join(words_.wait(count)); }
  /// The words once the last one is `last`.
  std::string wait_for(const std::string& last) {
    for (std::size_t count = 1;; ++count) {
      const auto words = words_.wait(count);
      if (words.size() < count) return join(words) + " (and not " + last + ")";
      if (words.back() == last) return join(words);
    }
  }
  std::string now() { return join(words_.now()); }

 private:
  static std::string join(const std::vector<std::string>& words) {
    return fmt::format("{}", fmt::join(words, " "));
  }
  static std::string word(const KvWatchEvent& event) {
    const KvEntry& entry = event.entry;
    switch (event.kind) {
      case KvWatchEvent::Kind::put:
        return fmt::format("{}{}={}@{}", event.in_snapshot ? "" : "+", entry.key, entry.value,
                           entry.revision);
      case KvWatchEvent::Kind::removed: return fmt::format("-{}@{}", entry.key, entry.revision);
      case KvWatchEvent::Kind::expired: return fmt::format("~{}@{}", entry.key, entry.revision);
      case KvWatchEvent::Kind::snapshot_end: return fmt::format("end@{}", event.revision);
      case KvWatchEvent::Kind::compacted: return "compacted";
      case KvWatchEvent::Kind::session_lost:
        return fmt::format("lost:{}@{}", entry.key, entry.revision);
      case KvWatchEvent::Kind::disconnected: return "disconnected";
      case KvWatchEvent::Kind::ended: return fmt::format("ended:{}", event.error.name());
    }
    return "?";
  }

  Log<std::string> words_;
};

}  // namespace baton::client
