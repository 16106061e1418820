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

#include <baton/connection.h>
#include <baton/broker.h>
#include <baton/stream_consumer.h>

#include "pipeline/engine/source.h"

namespace baton::pipeline {

struct StreamSourceOptions {
  client::ConnectionOptions connection{};
  std::string stream{};
  std::string group{};
  client::StartFrom from = client::StartFrom::first();  // first or next; of a group without offset.
};

/// A Baton stream, read as the single active consumer of each partition: the broker decides who
/// that is, and its epochs fence the offsets that are stored.
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
  /// A partition that is ours.
  struct Seat {
    std::uint64_t epoch = 0;
    std::int64_t begin = 0;
    bool claimed = false;  // The pipeline has said where to begin.
    bool losing = false;
  };

  Result<client::StreamInfo> describe();
  client::StreamConsumerOptions consumer_options(std::size_t partitions);
  /// Where to begin. The broker waits for the answer, but not for ever: if the pipeline cannot say
  /// so soon, it is what the group has stored, and records wait until claim_late() has asked on.
  std::int64_t begin(const client::StreamPosition& seat);
  struct Claim {
    std::int64_t stored = 0;  // By the group.
    std::optional<std::int64_t> begin{};
  };
  /// Asks the pipeline where to begin, until `patience` is over or the seat is lost.
  Claim claim(const client::StreamPosition& seat, std::chrono::milliseconds patience);
  /// Delivery begins at `delivered`; if the pipeline wants more, that is read first.
  void claim_late(const client::StreamPosition& seat, std::int64_t delivered);
  /// Delivers what lies from `begin` to `end`. False: the seat is lost, or the source has failed.
  bool read_again(const client::StreamPosition& seat, std::int64_t begin, std::int64_t end);
  /// Delivers what the reader has; `begin` moves behind it. False: it is not wanted any more.
  Result<bool> pass_on(client::StreamReader& reader, std::uint32_t partition, std::int64_t& begin);
  void set_claimed(const client::StreamPosition& seat, std::int64_t begin);
  void end_late_claim(std::uint32_t partition);
  /// Where the pipeline wants the partition to begin. Nothing: the seat is lost.
  [[nodiscard]] std::optional<std::int64_t> wait_for_claim(
      const client::StreamPosition& seat) const;
  /// What the group has stored; if it has not, where it is to begin.
  std::optional<std::int64_t> stored_offset(std::uint32_t partition);
  [[nodiscard]] bool is_ours(const client::StreamPosition& seat) const;
  void lose(std::uint32_t partition);
  void handle(client::RecordBatch& batch);
  void give_up(std::uint32_t partition);
  void watch(const std::stop_token& stop);
  [[nodiscard]] Error with_advice(const Error& problem) const;
  void look_at_ends(const client::Stream& stream);
  /// Two questions in a row without an answer: the broker is away, and not just slow.
  void set_trouble(std::optional<std::string> why);
  void set_end(std::uint32_t partition, std::int64_t end);

  StreamSourceOptions options_;
  SourceListener* listener_ = nullptr;
  std::optional<client::Stream> stream_;
  std::optional<client::StreamConsumer> consumer_;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;  // Of what follows.
  std::map<std::uint32_t, Seat> seats_;
  std::map<std::uint32_t, std::jthread> late_claims_;
  std::map<std::uint32_t, std::int64_t> ends_;
  std::uint32_t unanswered_ = 0;
  std::string trouble_;
  std::jthread watch_;  // Last: it uses the rest.
};

}  // namespace baton::pipeline
