#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <baton/worker.h>

#include "pipeline/engine/source.h"
#include "pipeline/nats/nats_partition.h"
#include "pipeline/nats/nats_stream.h"

namespace baton::pipeline {

struct NatsSourceOptions {
  std::string servers{};  // "127.0.0.1:4222,127.0.0.1:4223".
  client::SecurityOptions security{};
  std::string stream{};  // The JetStream stream.
  /// Contains {partition}: "orders.{partition}", or "orders.{partition}.>".
  std::string subject{};
  std::uint32_t partitions = 0;
  std::string group{};
  bool from_next = false;   // A group that has committed nothing begins with new messages.
  std::size_t fetch = 500;  // Messages asked for at once, for each partition.
  std::optional<client::WorkerTiming> timing{};
  std::function<void(bool warning, const std::string&)> log{};
};

/// A partitioned subject of a JetStream stream, divided among processes by partition leases that
/// are stored on the same servers. Each partition has its own pull consumer, see NatsPartition.
///
/// A record's offset is the message's sequence number in the stream. Its key is the header
/// `baton-key`; without this header, the part of the subject that matches the final wildcard.
class NatsSource : public Source {
 public:
  explicit NatsSource(NatsSourceOptions options) : options_(std::move(options)) {}
  NatsSource(const NatsSource&) = delete;
  NatsSource& operator=(const NatsSource&) = delete;
  /// Ends as a crash would: others take over when the lease expires. Call stop() first.
  ~NatsSource() override;

  Status start(SourceListener& listener) override;
  Status commit(std::uint32_t partition, std::uint64_t epoch, std::int64_t next) override;
  void pause() override { paused_ = true; }
  void resume() override { paused_ = false; }
  Result<Findings> check() override;
  Status stop(std::chrono::milliseconds timeout) override;
  [[nodiscard]] std::vector<PartitionLag> ends() const override;
  [[nodiscard]] std::optional<std::string> trouble() const override;
  [[nodiscard]] std::string name() const override;
  Result<std::string> origin() override;

 private:
  Status check_options() const;
  Status check_subjects(const NatsStream::Facts& facts) const;
  NatsPartitionContext context();
  client::WorkerCallbacks callbacks();
  void acquired(std::uint32_t partition, std::uint64_t epoch);
  void revoke(std::uint32_t partition, bool lost);
  void watch(const std::stop_token& stop);
  /// Ends partitions that have not ended by themselves, as a crash would.
  void drop_partitions();
  void log(bool warning, const std::string& text) const;

  NatsSourceOptions options_;
  SourceListener* listener_ = nullptr;
  std::shared_ptr<NatsStream> stream_;
  std::atomic<bool> paused_{false};

  mutable std::mutex mutex_;  // Guards the members below.
  std::map<std::uint32_t, std::shared_ptr<NatsPartition>> partitions_;
  std::vector<std::shared_ptr<NatsPartition>> ending_;
  bool closing_ = false;

  std::atomic<client::Worker*> worker_ready_{
      nullptr};  // Its callbacks may come before start() returns.
  std::optional<client::Worker> worker_;
  std::jthread watcher_;  // Reports if the worker ends by itself.
};

}  // namespace baton::pipeline
