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
  std::string stream{};  // Of JetStream.
  /// With {partition}: "orders.{partition}", or "orders.{partition}.>".
  std::string subject{};
  std::uint32_t partitions = 0;
  std::string group{};
  bool from_next = false;   // Of a group that has committed nothing: only what comes from now on.
  std::size_t fetch = 500;  // Messages asked for at once, by partition.
  std::optional<client::WorkerTiming> timing{};
  std::function<void(bool warning, const std::string&)> log{};
};

/// A partitioned subject of a JetStream stream, divided among processes by partition leases that
/// are kept on the same servers. Each partition has a pull consumer of its own, see NatsPartition.
///
/// A record's offset is the message's sequence number in the stream; its key is the header
/// `baton-key`, and without it what stands in place of the wildcard at the end of the subject.
class NatsSource : public Source {
 public:
  explicit NatsSource(NatsSourceOptions options) : options_(std::move(options)) {}
  NatsSource(const NatsSource&) = delete;
  NatsSource& operator=(const NatsSource&) = delete;
  /// As a crash would: others take over when the lease is over. stop() first.
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
  /// Ends what has not ended by itself, as a crash would.
  void drop_partitions();
  void log(bool warning, const std::string& text) const;

  NatsSourceOptions options_;
  SourceListener* listener_ = nullptr;
  std::shared_ptr<NatsStream> stream_;
  std::atomic<bool> paused_{false};

  mutable std::mutex mutex_;  // Of what follows.
  std::map<std::uint32_t, std::shared_ptr<NatsPartition>> partitions_;
  std::vector<std::shared_ptr<NatsPartition>> ending_;
  bool closing_ = false;

  std::atomic<client::Worker*> worker_ready_{
      nullptr};  // Its callbacks come before start() is over.
  std::optional<client::Worker> worker_;
  std::jthread watcher_;  // Tells when the worker ends by itself.
};

}  // namespace baton::pipeline
