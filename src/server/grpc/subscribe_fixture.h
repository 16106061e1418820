#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "server/grpc/status.h"
#include "server/grpc/stream_calls.h"
#include "server/grpc/stream_fixture.h"

/// For tests only: Subscribe calls over a real shard.
namespace baton::subscribe_test {

using Responses = std::vector<v1::SubscribeResponse>;
using Port = TestPort<v1::SubscribeResponse>;

inline std::uint32_t code_of(Errc code) { return to_proto({code, ""}).code(); }

class SubscribeCallTest : public StreamTest {
 protected:
  struct Client {
    std::shared_ptr<SubscribeCall> stream;
    std::unique_ptr<Port> port;
  };
  Client connect() {
    auto stream = std::make_shared<SubscribeCall>(state_);
    return {stream, std::make_unique<Port>(broker_, stream, true)};
  }

  static v1::SubscribeRequest start(const std::string& group, bool single_active,
                                    std::uint64_t batches = 1000) {
    v1::SubscribeRequest request;
    v1::SubscribeRequest::Start& item = *request.add_starts();
    item.set_id(1);
    item.set_stream("s");
    item.set_group(group);
    item.set_single_active(single_active);
    item.mutable_from()->set_place(v1::ReadFrom::PLACE_FIRST);
    item.mutable_credit()->set_batches(batches);
    item.mutable_credit()->set_bytes(1 << 20);
    return request;
  }
  static v1::SubscribeRequest credit(std::uint64_t batches) {
    v1::SubscribeRequest request;
    v1::SubscribeRequest::Credit& item = *request.add_credits();
    item.set_id(1);
    item.set_batches(batches);
    return request;
  }
  static v1::SubscribeRequest unsubscribe() {
    v1::SubscribeRequest request;
    request.add_unsubscribes()->set_id(1);
    return request;
  }
  static v1::SubscribeRequest store(std::uint64_t epoch, std::int64_t offset,
                                    std::uint32_t partition = 0) {
    v1::SubscribeRequest request;
    v1::SubscribeRequest::StoreOffset& item = *request.add_offsets();
    item.set_id(1);
    item.set_partition(partition);
    item.set_epoch(epoch);
    item.set_offset(offset);
    return request;
  }
  static v1::SubscribeRequest reply_to(const v1::SubscribeResponse::Update& update) {
    v1::SubscribeRequest request;
    v1::SubscribeRequest::UpdateReply& item = *request.add_replies();
    item.set_id(update.id());
    item.set_partition(update.partition());
    item.set_generation(update.generation());
    return request;
  }

  static bool has_started(const Responses& all) {
    return std::ranges::any_of(all, [](const auto& one) { return one.started_size() > 0; });
  }
  static std::vector<v1::SubscribeResponse::Batches> batches(const Responses& all) {
    std::vector<v1::SubscribeResponse::Batches> found;
    for (const auto& one : all) {
      found.insert(found.end(), one.batches().begin(), one.batches().end());
    }
    return found;
  }
  static std::uint64_t batch_count(const Responses& all) {
    std::uint64_t count = 0;
    for (const v1::SubscribeResponse::Batches& batch : batches(all)) count += batch.batch_count();
    return count;
  }
  static std::vector<v1::SubscribeResponse::Update> updates(const Responses& all) {
    std::vector<v1::SubscribeResponse::Update> found;
    for (const auto& one : all) {
      found.insert(found.end(), one.updates().begin(), one.updates().end());
    }
    return found;
  }
  static std::vector<v1::SubscribeResponse::Closed> closed(const Responses& all) {
    std::vector<v1::SubscribeResponse::Closed> found;
    for (const auto& one : all) {
      found.insert(found.end(), one.closed().begin(), one.closed().end());
    }
    return found;
  }
  static std::vector<v1::SubscribeResponse::OffsetStored> stored(const Responses& all) {
    std::vector<v1::SubscribeResponse::OffsetStored> found;
    for (const auto& one : all) found.insert(found.end(), one.stored().begin(), one.stored().end());
    return found;
  }
  static auto batches_at_least(std::uint64_t count) {
    return [count](const Responses& all) { return batch_count(all) >= count; };
  }
  static auto updates_at_least(std::size_t count) {
    return [count](const Responses& all) { return updates(all).size() >= count; };
  }
  static auto closed_at_least(std::size_t count) {
    return [count](const Responses& all) { return closed(all).size() >= count; };
  }
  static auto stored_at_least(std::size_t count) {
    return [count](const Responses& all) { return stored(all).size() >= count; };
  }

  std::size_t members() {
    const auto done = broker_.execute(GroupCommand{.stream = "s",
                                                   .group = "g",
                                                   .what = GroupCommand::What::describe,
                                                   .error = {},
                                                   .partitions = {}});
    std::size_t count = 0;
    for (const GroupReport& group : done.partitions) count += group.description.members.size();
    return count;
  }
};

}  // namespace baton::subscribe_test
