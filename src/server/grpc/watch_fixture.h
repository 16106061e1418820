#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <baton/v1/kv.pb.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "server/grpc/kv_calls.h"
#include "server/grpc/stream_fixture.h"

/// For tests only: Watch calls over a real shard.
namespace baton::watch_test {

using Responses = std::vector<v1::WatchKeysResponse>;
using Port = TestPort<v1::WatchKeysResponse>;

/// A bucket "b", and clients that watch it.
class WatchCallTest : public StreamTest {
 protected:
  struct Client {
    std::shared_ptr<WatchCall> stream;
    std::unique_ptr<Port> port;
  };
  Client connect() {
    auto stream = std::make_shared<WatchCall>(state_);
    return {stream, std::make_unique<Port>(broker_, stream, true)};
  }
  Client watch(const v1::WatchKeysRequest& request) {
    Client client = connect();
    client.port->send(request);
    return client;
  }

  void create_bucket(const KvSettings& settings = {}) {
    const auto done = broker_.execute(
        CreateBucketCommand{.bucket = "b", .settings = settings, .error = {}, .description = {}});
    ASSERT_FALSE(done.error.has_value()) << to_string(*done.error);
  }
  Revision put(const std::string& key, const std::string& value,
               std::optional<Duration> ttl = std::nullopt) {
    KvPutCommand command;
    command.request = {.bucket = "b", .key = key, .value = value, .expected = {}, .ttl = ttl};
    const auto done = broker_.execute(std::move(command));
    EXPECT_FALSE(done.error.has_value()) << to_string(*done.error);
    return done.outcome.revision;
  }
  void remove(const std::string& key) {
    KvRemoveCommand command;
    command.request = {.bucket = "b", .key = key, .expected = {}};
    broker_.execute(std::move(command));
  }
  void delete_bucket() { broker_.execute(DeleteBucketCommand{.bucket = "b", .error = {}}); }
  std::size_t watches() {
    return broker_.execute(DescribeBucketCommand{.bucket = "b", .error = {}, .description = {}})
        .description.watches;
  }

  static v1::WatchKeysRequest start(const std::string& prefix = {},
                                    std::optional<std::uint64_t> after = {},
                                    const std::string& session = {}) {
    v1::WatchKeysRequest request;
    request.mutable_start()->set_bucket("b");
    request.mutable_start()->set_prefix(prefix);
    if (after.has_value()) request.mutable_start()->set_resume_after(*after);
    request.mutable_start()->set_session(session);
    return request;
  }
  static v1::WatchKeysRequest goodbye() {
    v1::WatchKeysRequest request;
    request.set_goodbye(true);
    return request;
  }

  /// "started a=1@1 | end 1 | b=2@2 -a@3 ~c@4 lost k@1 | compacted:1", in the order of the fields.
  static std::string text(const Responses& all) {
    std::string out;
    for (const v1::WatchKeysResponse& one : all) {
      if (one.has_started()) out += one.started().resumed() ? "resumed " : "started ";
      if (one.has_compacted()) out += fmt::format("compacted:{} ", int{one.compacted().reason()});
      for (const v1::KvEntry& entry : one.snapshot()) out += text(entry) + " ";
      if (one.has_snapshot_end()) out += fmt::format("end@{} ", one.snapshot_end().revision());
      for (const v1::WatchKeysResponse::Change& change : one.changes()) out += text(change) + " ";
      for (const v1::WatchKeysResponse::SessionLost& lost : one.sessions_lost()) {
        out += fmt::format("lost:{}@{} ", lost.key(), lost.revision());
      }
    }
    if (!out.empty()) out.pop_back();
    return out;
  }
  static std::string text(const v1::KvEntry& entry) {
    return fmt::format("{}={}@{}", entry.key(), entry.value(), entry.revision());
  }
  static std::string text(const v1::WatchKeysResponse::Change& change) {
    if (change.kind() == v1::WatchKeysResponse::Change::KIND_PUT) return "+" + text(change.entry());
    const char mark = change.kind() == v1::WatchKeysResponse::Change::KIND_REMOVED ? '-' : '~';
    return fmt::format("{}{}@{}", mark, change.entry().key(), change.entry().revision());
  }
  static std::size_t ends(const Responses& all) {
    return static_cast<std::size_t>(
        std::ranges::count_if(all, [](const auto& one) { return one.has_snapshot_end(); }));
  }
  static auto has_ends(std::size_t count) {
    return [count](const Responses& all) { return ends(all) >= count; };
  }
  static auto says(const std::string& wanted) {
    return [wanted](const Responses& all) { return text(all).ends_with(wanted); };
  }
};

}  // namespace baton::watch_test
