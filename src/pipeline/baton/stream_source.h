#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <baton/broker.h>
#include <baton/connection.h>
#include <baton/stream_consumer.h>

#include "pipeline/engine/source.h"

namespace baton::pipeline {

struct StreamSourceOptions {
  client::ConnectionOptions connection{};
  std::string stream{};
  std::string group{};
  // first or next; for a group without a stored offset.
  client::StartFrom from = client::StartFrom::first();
};

/// A Baton stream, read as the single active consumer of each partition. The broker chooses that
/// consumer, and its epochs fence stored offsets.
class StreamSource : public Source {
 public:
  explicit StreamSource(StreamSourceOptions options) : options_(std::move(options)) {}

  Status start(SourceListener& listener) override;
  Status commit(std::uint32_t partition, std::uint64_t epoch, std::int64_t next) override;
  Status stop(std::chrono::milliseconds timeout) override;
  Result<Findings> check() override;
  [[nodiscard]] std::vector<PartitionLag> ends() const override;
  [[nodiscard]] std::optional<std::string> trouble() const override;
  [[nodiscard]] std::string name() const override;
  Result<std::string> origin() override;

 private:
  /// A partition that this process reads.
  struct Seat {
    Epoch epoch{};
    Offset begin{};
    bool claimed = false;  // The pipeline has said where to begin.
    bool losing = false;
  };

  Result<client::StreamInfo> describe();
  client::StreamConsumerOptions consumer_options(std::size_t partitions);
  /// Where to begin. The broker waits for the answer only for a limited time. If the pipeline
  /// cannot answer in time, delivery begins at the group's stored offset, and records wait until
  /// claim_late() has an answer.
  Offset begin(const client::StreamPosition& seat);
  struct Claim {
    Offset stored{};  // The group's offset.
    std::optional<Offset> begin{};
  };
  /// Asks the pipeline where to begin, until `patience` has passed or the seat is lost.
  Claim claim(const client::StreamPosition& seat, std::chrono::milliseconds patience);
  /// Delivery begins at `delivered`; if the pipeline wants earlier records, they are read first.
  void claim_late(const client::StreamPosition& seat, Offset delivered);
  /// Delivers the records from `begin` to `end`. False: the seat is lost, or the source has failed.
  bool read_again(const client::StreamPosition& seat, Offset begin, Offset end);
  /// Delivers what the reader has, and moves `begin` past it. False: the records are no longer
  /// wanted.
  Result<bool> pass_on(client::StreamReader& reader, PartitionNumber partition, Offset& begin);
  void set_claimed(const client::StreamPosition& seat, Offset begin);
  void end_late_claim(PartitionNumber partition);
  /// Where the pipeline wants the partition to begin; nullopt if the seat is lost.
  [[nodiscard]] std::optional<Offset> wait_for_claim(const client::StreamPosition& seat) const;
  /// The group's stored offset; without one, where the group is to begin.
  std::optional<Offset> stored_offset(PartitionNumber partition);
  [[nodiscard]] bool is_ours(const client::StreamPosition& seat) const;
  void lose(PartitionNumber partition);
  void handle(client::RecordBatch& batch);
  void give_up(PartitionNumber partition);
  void watch(const std::stop_token& stop);
  [[nodiscard]] Error with_advice(const Error& problem) const;
  void look_at_ends(const client::Stream& stream);
  /// Reports trouble after two unanswered calls in a row: the broker is unavailable then, not just
  /// slow.
  void set_trouble(std::optional<std::string> why);
  void set_end(PartitionNumber partition, Offset end);

  StreamSourceOptions options_;
  SourceListener* listener_ = nullptr;
  std::unique_ptr<client::Stream> stream_;
  std::unique_ptr<client::StreamConsumer> consumer_;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;  // Guards the members below.
  std::map<PartitionNumber, Seat> seats_;
  std::map<PartitionNumber, std::jthread> late_claims_;
  std::map<PartitionNumber, Offset> ends_;
  std::uint32_t unanswered_ = 0;
  std::string trouble_;
  std::jthread watch_;  // Last, because it uses the other members.
};

}  // namespace baton::pipeline
