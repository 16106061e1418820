#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "pipeline/engine/source.h"
#include "pipeline/kafka/bell.h"
#include "pipeline/kafka/kafka_handles.h"
#include "pipeline/kafka/kafka_source_options.h"

namespace baton::pipeline {

/// The partitions that the group assigned to this member, and the path of their records to the
/// listener. Owned by a KafkaMember and used by its thread, except for store(), ends() and
/// oldest(), which any thread may call.
///
/// librdkafka fetches only partitions for which the listener knows where to begin: a partition
/// whose sink is unavailable has a seat, but is not in librdkafka's assignment until then.
class KafkaSeats {
 public:
  using Marks = std::map<std::uint32_t, std::int64_t>;
  struct Context {
    const KafkaSourceOptions* options = nullptr;
    rd_kafka_t* handle = nullptr;
    rd_kafka_queue_t* group_queue = nullptr;
    SourceListener* listener = nullptr;
    Bell* bell = nullptr;
    std::function<void(rd_kafka_resp_err_t, const std::string&)> report{};
    std::function<void(Error)> fail{};
  };
  explicit KafkaSeats(Context context);
  ~KafkaSeats();
  KafkaSeats(const KafkaSeats&) = delete;
  KafkaSeats& operator=(const KafkaSeats&) = delete;

  /// Called in the callback of a rebalance.
  void assign(const rd_kafka_topic_partition_list_t& partitions);
  /// Waits for records in flight, for about `time`, stores the offsets to commit, and gives up all
  /// seats; librdkafka commits what is stored. `lost`: the partitions already belong to other
  /// members, and nothing is stored.
  Marks revoke(bool lost, Duration time);
  /// Called before revoke(): hands over records that found no room and that the topic no longer
  /// has. Waits until there is room for all of them.
  void deliver_last_copies();
  /// Asks again where to begin with partitions for which the answer was missing.
  void settle();
  /// Stops fetching until resumed; discards what was fetched, so this is for breakers only.
  void pause(bool wanted);
  /// Hands over some records of each partition, while there is room. True if there may be more.
  bool deliver();
  /// Asks for the end of one partition that is not fetched: fetches tell the ends of the others.
  void look_at_end();

  Status store(std::uint32_t partition, std::uint64_t epoch, std::int64_t next);
  [[nodiscard]] std::vector<PartitionLag> ends() const;
  /// The offset of the oldest record in the topic; nullopt if the brokers do not answer.
  [[nodiscard]] std::optional<std::int64_t> oldest(std::uint32_t partition) const;

 private:
  struct Seat {
    std::uint64_t epoch = 0;
    KafkaQueue queue{};
    std::optional<std::int64_t> next{};  // The group's offset, or its substitute.
    bool is_first = false;               // The group has never committed.
    bool ready = false;                  // The listener has said where to begin.
    bool wanted = true;                  // The listener takes more records.
    bool out_of_range = false;
    std::int64_t begin = 0;
    std::int64_t position = 0;   // A lower bound for the next offset from the queue.
    std::vector<Record> held{};  // Taken from the queue, but there was no room.
    std::optional<std::int64_t> stored{};
    std::int64_t end = -1;  // As last asked for.
  };

  void add(std::uint32_t partition);
  bool look_up();
  std::optional<std::int64_t> beginning(std::uint32_t partition);
  bool ask();
  void apply();
  void match_pauses();
  bool deliver(std::uint32_t partition, Seat& seat);
  void fill(Seat& seat);
  void failed_fetch(Seat& seat, const rd_kafka_message_t& message);
  [[nodiscard]] bool has_ended(const Seat& seat) const;
  void begin_again(std::uint32_t partition, Seat& seat);
  /// Ends the pipeline because of the gap, once everything read from all partitions is finished.
  void end_with(Error gap);
  Marks ask_marks(bool lost, Duration time);
  void release(rd_kafka_queue_t& queue);
  rd_kafka_resp_err_t store_offset(std::uint32_t partition, std::int64_t next);
  void log(bool warning, const std::string& text) const;
  void log_trouble(const Error& error);

  const Context context_;
  const KafkaSourceOptions& options_;
  std::set<std::uint32_t> paused_;  // In librdkafka, where a pause outlives an assignment.
  bool pause_wanted_ = false;
  std::uint64_t epochs_ = 0;
  std::uint32_t served_last_ = 0;
  std::uint32_t looked_last_ = 0;
  Instant ask_at_;
  std::string trouble_;
  std::optional<Error> gap_;  // Why fetching has stopped and the pipeline is about to end.

  mutable std::mutex mutex_;  // Guards changes to the members below, and reads by other threads.
  std::map<std::uint32_t, Seat> seats_;
};

}  // namespace baton::pipeline
