#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <baton/connection.h>
#include <baton/v1/streams.grpc.pb.h>
#include <fmt/format.h>
#include <grpcpp/support/sync_stream.h>

#include "core/stream/producer_table.h"
#include "sdk/base/test_script.h"
#include "sdk/base/test_server.h"
#include "sdk/stream/test_records.h"

namespace baton::client {

/// Partitions in memory, which accept batches as the broker does: those of idempotent producers
/// once. Thread-safe.
class TestLog {
 public:
  /// Returns what the broker would answer.
  v1::AppendResult append(const v1::NewBatch& batch) {
    const std::lock_guard lock(mutex_);
    v1::AppendResult result;
    result.set_partition(batch.partition());
    const auto view = BatchView::parse(batch.batch());
    if (!view || !view->check_crc()) return refuse(result, 210, "malformed");
    const std::vector<std::string> values = values_of(batch.batch());
    if (refuses_ && refuses_(values)) return refuse(result, 1, "invalid_argument");
    Partition& partition = partitions_[batch.partition()];
    const BatchHeader& header = view->header();
    if (header.idempotent()) {
      const auto answer = partition.producers.check(header.producer, header.count);
      switch (answer.verdict) {
        case ProducerVerdict::append: break;
        case ProducerVerdict::duplicate:
          result.set_offset(answer.base_offset.value);
          result.set_duplicate(true);
          return result;
        case ProducerVerdict::old_duplicate:
          result.set_offset(-1);
          result.set_duplicate(true);
          return result;
        case ProducerVerdict::stale_epoch: return refuse(result, 307, "producer_fenced");
        default: return refuse(result, 306, "sequence_gap");
      }
    }
    result.set_offset(static_cast<std::int64_t>(partition.values.size()));
    std::string bytes = batch.batch();
    set_base_offset(bytes, Offset{result.offset()}, LeaderEpoch{0});
    partition.producers.apply(BatchView::parse(bytes)->header(), Instant{1});
    partition.values.insert(partition.values.end(), values.begin(), values.end());
    return result;
  }
  v1::AppendResponse append(const v1::AppendRequest& request) {
    v1::AppendResponse response;
    for (const v1::NewBatch& batch : request.batches()) *response.add_batches() = append(batch);
    return response;
  }
  void fence(ProducerId id, ProducerEpoch epoch) {
    const std::lock_guard lock(mutex_);
    for (auto& [number, partition] : partitions_) partition.producers.fence(id, epoch, Instant{1});
  }
  /// Batches for whose values `refuse` is true are refused for good.
  void refuse_if(std::function<bool(const std::vector<std::string>&)> refuses) {
    refuses_ = std::move(refuses);
  }
  std::vector<std::string> values(std::uint32_t partition = 0) {
    const std::lock_guard lock(mutex_);
    return partitions_[partition].values;
  }

 private:
  struct Partition {
    std::vector<std::string> values;
    ProducerTable producers;
  };

  static v1::AppendResult& refuse(v1::AppendResult& result, std::uint32_t code,
                                  const std::string& name) {
    result.set_offset(-1);
    result.mutable_error()->set_code(code);
    result.mutable_error()->set_name(name);
    result.mutable_error()->set_text("scripted " + name);
    return result;
  }

  std::mutex mutex_;
  std::map<std::uint32_t, Partition> partitions_;
  std::function<bool(const std::vector<std::string>&)> refuses_;
};

/// A broker of streams that does what the test's scripts say. Each streaming script gets the number
/// of its call, from 1. Unless scripted otherwise it has one stream and grants epochs.
class TestStreams final : public v1::StreamService::Service, public TestServer {
 public:
  using AppendCall = grpc::ServerReaderWriter<v1::AppendResponse, v1::AppendRequest>;
  using SubscribeCall = grpc::ServerReaderWriter<v1::SubscribeResponse, v1::SubscribeRequest>;
  using ReadCall = grpc::ServerWriter<v1::ReadResponse>;

  explicit TestStreams(std::uint32_t partitions = 1)
      : TestServer(static_cast<grpc::Service&>(*this)) {
    stream.set_name("events");
    stream.set_partitions(partitions);
    stream.mutable_settings()->set_batch_bytes_max(1024UL * 1024);
    for (std::uint32_t i = 0; i < partitions; ++i) stream.add_details()->set_partition(i);
    on_append_stream = [this](int, AppendCall& call) { return append_all(call); };
    start();
  }
  ~TestStreams() override { stop(); }
  TestStreams(const TestStreams&) = delete;
  TestStreams& operator=(const TestStreams&) = delete;
  TestStreams(TestStreams&&) = delete;
  TestStreams& operator=(TestStreams&&) = delete;

  /// Stores and confirms until the client ends its side.
  grpc::Status append_all(AppendCall& call) {
    v1::AppendRequest request;
    while (call.Read(&request)) call.Write(log.append(request));
    return grpc::Status::OK;
  }
  /// Another producer takes the name.
  void fence() { log.fence(ProducerId{7}, ProducerEpoch{static_cast<std::int16_t>(++epochs_)}); }
  [[nodiscard]] int epochs() const { return epochs_; }

  v1::Stream stream;
  TestLog log;
  std::function<grpc::Status(int, AppendCall&)> on_append_stream;
  std::function<grpc::Status(int, SubscribeCall&)> on_subscribe;
  std::function<grpc::Status(int, const v1::ReadRequest&, ReadCall&)> on_read;
  std::function<grpc::Status(const v1::CreateStreamRequest&, v1::CreateStreamResponse&)> on_create;
  std::function<grpc::Status(const v1::AppendRequest&, v1::AppendResponse&)> on_append;
  std::function<grpc::Status(const v1::DescribeGroupRequest&, v1::DescribeGroupResponse&)>
      on_describe_group;
  std::function<grpc::Status(const v1::InitProducerRequest&, v1::InitProducerResponse&)> on_init;

  grpc::Status CreateStream(grpc::ServerContext* /*context*/,
                            const v1::CreateStreamRequest* request,
                            v1::CreateStreamResponse* response) override {
    return on_create(*request, *response);
  }
  grpc::Status DescribeStream(grpc::ServerContext* /*context*/,
                              const v1::DescribeStreamRequest* request,
                              v1::DescribeStreamResponse* response) override {
    if (request->name() != stream.name()) {
      return refusal(grpc::StatusCode::NOT_FOUND, 302, "stream_not_found");
    }
    *response->mutable_stream() = stream;
    return grpc::Status::OK;
  }
  grpc::Status InitProducer(grpc::ServerContext* /*context*/,
                            const v1::InitProducerRequest* request,
                            v1::InitProducerResponse* response) override {
    if (on_init) return on_init(*request, *response);
    response->set_producer_id(7);
    response->set_producer_epoch(++epochs_);
    log.fence(ProducerId{7}, ProducerEpoch{static_cast<std::int16_t>(epochs_)});
    return grpc::Status::OK;
  }
  grpc::Status Append(grpc::ServerContext* /*context*/, const v1::AppendRequest* request,
                      v1::AppendResponse* response) override {
    return on_append(*request, *response);
  }
  grpc::Status AppendStream(grpc::ServerContext* /*context*/, AppendCall* call) override {
    return on_append_stream(++append_calls_, *call);
  }
  grpc::Status Read(grpc::ServerContext* /*context*/, const v1::ReadRequest* request,
                    ReadCall* call) override {
    return on_read(++read_calls_, *request, *call);
  }
  grpc::Status Subscribe(grpc::ServerContext* /*context*/, SubscribeCall* call) override {
    return on_subscribe(++subscribe_calls_, *call);
  }
  grpc::Status DescribeGroup(grpc::ServerContext* /*context*/,
                             const v1::DescribeGroupRequest* request,
                             v1::DescribeGroupResponse* response) override {
    return on_describe_group(*request, *response);
  }

 private:
  std::atomic<int> epochs_ = 0;
  std::atomic<int> append_calls_ = 0;
  std::atomic<int> read_calls_ = 0;
  std::atomic<int> subscribe_calls_ = 0;
};

/// One Subscribe call as a script sees it: reads requests, and records their content.
class SubscribeDialog {
 public:
  explicit SubscribeDialog(TestStreams::SubscribeCall& call) : call_(call) {}

  /// Reads until a start has come, and confirms it.
  bool accept() {
    while (starts.empty()) {
      if (!read()) return false;
    }
    v1::SubscribeResponse response;
    for (const v1::SubscribeRequest::Start& start : starts) {
      v1::SubscribeResponse::Started& started = *response.add_started();
      started.set_id(start.id());
      for (const std::uint32_t partition : start.partitions()) started.add_partitions(partition);
    }
    id = starts.back().id();
    return call_.Write(response);
  }
  /// Reads the next request; false at the end of the call.
  bool read() {
    v1::SubscribeRequest request;
    if (!call_.Read(&request)) return false;
    if (request.has_heartbeat()) {
      had_heartbeat = true;
      heartbeats = request.heartbeat().number();
    }
    for (const auto& start : request.starts()) {
      starts.push_back(start);
      credit_batches += start.credit().batches();
      events.push_back("start");
    }
    for (const auto& credit : request.credits()) {
      credit_batches += credit.batches();
      credit_bytes += credit.bytes();
    }
    for (const auto& store : request.offsets()) {
      events.push_back(
          fmt::format("store {} {} {}", store.partition(), store.epoch(), store.offset()));
      stores.push_back(store);
    }
    for (const auto& reply : request.replies()) {
      events.push_back(fmt::format("reply {} {}", reply.partition(), reply.generation()) +
                       (reply.has_offset() ? fmt::format(" {}", reply.offset()) : ""));
    }
    for (int i = 0; i < request.unsubscribes_size(); ++i) events.push_back("unsubscribe");
    return true;
  }
  /// Reads until this event, confirming every offset; false when the client ends before.
  bool read_until(const std::string& event) {
    while (std::ranges::find(events, event) == events.end()) {
      if (!read()) return false;
      confirm_stores();
    }
    return true;
  }
  /// Confirms stored offsets, until the client ends its side.
  grpc::Status finish() {
    confirm_stores();
    while (read()) confirm_stores();
    return grpc::Status::OK;
  }
  void confirm_stores() {
    v1::SubscribeResponse response;
    for (const auto& store : stores) {
      v1::SubscribeResponse::OffsetStored& stored = *response.add_stored();
      stored.set_id(store.id());
      stored.set_partition(store.partition());
      stored.set_offset(store.offset());
    }
    stores.clear();
    if (response.stored_size() > 0) call_.Write(response);
  }
  void update(bool active, bool stepping_down, std::uint64_t generation, std::int64_t offset = -1,
              std::uint32_t partition = 0) {
    v1::SubscribeResponse response;
    v1::SubscribeResponse::Update& update = *response.add_updates();
    update.set_id(id);
    update.set_partition(partition);
    update.set_active(active);
    update.set_stepping_down(stepping_down);
    update.set_generation(generation);
    if (offset >= 0) update.set_offset(offset);
    call_.Write(response);
  }
  void deliver(const std::vector<std::string>& values, std::int64_t offset, std::uint64_t epoch,
               std::uint32_t partition = 0) {
    deliver_bytes(batch_of(values, offset), offset + static_cast<std::int64_t>(values.size()),
                  epoch, partition);
  }
  void deliver_bytes(std::string bytes, std::int64_t next, std::uint64_t epoch,
                     std::uint32_t partition = 0) {
    v1::SubscribeResponse response;
    v1::SubscribeResponse::Batches& batch = *response.add_batches();
    batch.set_id(id_of(partition));
    batch.set_partition(partition);
    batch.set_epoch(epoch);
    batch.set_batches(std::move(bytes));
    batch.set_next_offset(next);
    batch.set_end_offset(next);
    batch.set_batch_count(1);
    call_.Write(response);
  }
  void close(std::uint32_t code, const std::string& name) {
    v1::SubscribeResponse response;
    v1::SubscribeResponse::Closed& closed = *response.add_closed();
    closed.set_id(id);
    closed.mutable_reason()->set_code(code);
    closed.mutable_reason()->set_name(name);
    closed.mutable_reason()->set_text("scripted " + name);
    call_.Write(response);
  }
  /// The id of the newest subscription that reads this partition.
  [[nodiscard]] std::uint64_t id_of(std::uint32_t partition) const {
    std::uint64_t found = id;
    for (const v1::SubscribeRequest::Start& start : starts) {
      for (const std::uint32_t one : start.partitions()) {
        if (one == partition) found = start.id();
      }
    }
    return found;
  }

  std::uint64_t id = 0;
  std::vector<v1::SubscribeRequest::Start> starts;
  std::vector<v1::SubscribeRequest::StoreOffset> stores;  // Not confirmed yet.
  std::vector<std::string> events;
  std::uint64_t credit_batches = 0;
  std::uint64_t credit_bytes = 0;
  bool had_heartbeat = false;
  std::uint64_t heartbeats = 0;  // The number of the last one.

 private:
  TestStreams::SubscribeCall& call_;
};

}  // namespace baton::client
