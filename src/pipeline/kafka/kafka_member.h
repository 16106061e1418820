#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "pipeline/engine/source.h"
#include "pipeline/kafka/bell.h"
#include "pipeline/kafka/kafka_handles.h"
#include "pipeline/kafka/kafka_lookup.h"
#include "pipeline/kafka/kafka_seats.h"
#include "pipeline/kafka/kafka_source_options.h"

namespace baton::pipeline {

/// A member of the group, with the polling thread: it serves rebalances, hands over records, and
/// never waits for room, so that back-pressure does not cost the membership. Thread-safe.
class KafkaMember {
 public:
  /// Fails if no broker answers, or if the topic does not exist.
  static Result<std::unique_ptr<KafkaMember>> join(const KafkaSourceOptions& options,
                                                   SourceListener& listener);
  ~KafkaMember();
  KafkaMember(const KafkaMember&) = delete;
  KafkaMember& operator=(const KafkaMember&) = delete;

  Status store(std::uint32_t partition, std::uint64_t epoch, std::int64_t next) {
    return seats_->store(partition, epoch, next);
  }
  void pause(bool wanted);
  /// Revokes everything, commits and leaves the group.
  Status leave(Duration time);
  [[nodiscard]] std::vector<PartitionLag> ends() const { return seats_->ends(); }
  [[nodiscard]] std::optional<std::string> trouble() const;
  [[nodiscard]] std::optional<std::int64_t> oldest(std::uint32_t partition) const {
    return seats_->oldest(partition);
  }

 private:
  KafkaMember(const KafkaSourceOptions& options, SourceListener& listener)
      : options_(options), listener_(listener) {}

  static void on_rebalance(rd_kafka_t* handle, rd_kafka_resp_err_t what,
                           rd_kafka_topic_partition_list_t* partitions, void* member);
  static void on_error(rd_kafka_t* handle, int code, const char* why, void* member);
  static void on_commit(rd_kafka_t* handle, rd_kafka_resp_err_t error,
                        rd_kafka_topic_partition_list_t* offsets, void* member);

  Status open();
  void run();
  void serve_group();
  void rebalance(rd_kafka_resp_err_t what, const rd_kafka_topic_partition_list_t& partitions);
  void report(rd_kafka_resp_err_t code, const std::string& why);
  void fail(Error error);
  void fail_for_good(rd_kafka_resp_err_t code, const std::string& why);
  void look_for_topic();
  void look_for_brokers();
  void set_trouble(std::optional<std::string> why);
  Status leave_group();
  Status commit(const KafkaSeats::Marks& marks, Instant end);
  void close(Instant end);
  void log(bool warning, const std::string& text) const;
  void log_once(const std::string& text);

  const KafkaSourceOptions options_;
  SourceListener& listener_;
  Bell bell_;
  KafkaHandle handle_;
  KafkaQueue group_queue_;
  std::unique_ptr<KafkaSeats> seats_;

  // For the polling thread only.
  bool joined_ = false;  // It had partitions once, so a later refusal may pass by itself.
  bool failed_ = false;
  std::string said_;
  std::optional<Instant> topic_missing_since_;
  Instant look_for_topic_at_;
  Instant look_for_brokers_at_;
  Instant look_at_end_at_;

  mutable std::mutex trouble_mutex_;
  std::optional<std::string> trouble_;  // Set while no broker answers.

  std::atomic<bool> paused_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<std::int64_t> leave_ns_{0};
  Status left_{};  // Set by the thread before it ends.
  std::jthread thread_;
};

/// `bounds`: the brokers' limits, if they tell them.
Error session_refused(const KafkaSourceOptions& options,
                      const std::optional<KafkaSessionBounds>& bounds);

/// For KafkaSource::check(): a consumer that joins no group.
Result<KafkaHandle> make_onlooker(const KafkaSourceOptions& options);

}  // namespace baton::pipeline
