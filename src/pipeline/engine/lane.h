#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "pipeline/engine/dead_letter.h"
#include "pipeline/engine/gate.h"
#include "pipeline/engine/item_queue.h"
#include "pipeline/engine/record.h"
#include "pipeline/engine/sink.h"
#include "pipeline/engine/window.h"
#include "pipeline/flow/backoff.h"
#include "pipeline/flow/error_class.h"

namespace baton::pipeline {

/// Counted when records finish. Read from any thread.
struct Counters {
  std::atomic<std::uint64_t> received{0};
  std::atomic<std::uint64_t> applied{0};
  std::atomic<std::uint64_t> duplicates{0};
  std::atomic<std::uint64_t> dead_letters{0};
  std::atomic<std::uint64_t> filtered{0};  // Tombstones.
  std::atomic<std::uint64_t> dropped{0};   // Revoked or abandoned: the next owner reads them again.
  std::atomic<std::uint64_t> replayed{0};  // Already in the sink, by its marks.
  std::atomic<std::uint64_t> batches{0};
  std::atomic<std::uint64_t> outages{0};
  std::atomic<std::uint64_t> retries{0};
  std::atomic<std::uint64_t> isolations{0};  // Batches cut in two to find a bad record.
  std::array<std::atomic<std::uint64_t>, flow::kErrorClasses> errors{};  // The sink's, by class.

  /// Finished records.
  [[nodiscard]] std::uint64_t ended() const {
    return applied + duplicates + dead_letters + filtered + replayed;
  }
};

struct LaneOptions {
  std::size_t batch_records = 500;
  std::size_t batch_bytes = std::size_t{4} << 20U;
  Duration linger = std::chrono::milliseconds(5);
  std::uint32_t retries = 5;  // In place, before the breaker opens.
  flow::Backoff backoff{};
  std::uint32_t unknown_attempts = 3;  // For a single record with an unknown error.
  bool duplicates_are_dead_letters = false;
  std::string pipeline{};
  std::string source{};
};

/// What all lanes share.
struct LaneContext {
  Gate* gate = nullptr;
  Window* window = nullptr;
  DeadLetterTarget* dead_letters = nullptr;
  Counters* counters = nullptr;
  std::function<std::shared_ptr<const LaneOptions>()> options{};  // The current ones.
  // True once the time to drain is over.
  std::function<bool()> abandoned{};
  std::function<void(std::span<const Item>)> ended{};
  std::function<void(bool warning, const std::string&)> log{};
};

/// Writes the records of its keys in their order, in batches, until each one is finished: in the
/// sink, found there already, or among the dead letters. run() is its thread.
class Lane {
 public:
  Lane(LaneContext context, std::unique_ptr<LaneWriter> writer, Random random);

  ItemQueue& queue() { return queue_; }
  /// Runs until the queue is closed and empty.
  void run();

 private:
  using Part = std::span<Item>;
  /// What to do about a batch that failed.
  enum class Verdict : std::uint8_t { again, halve, over };

  void process(Items& items);
  /// Writes the records that can be written and buries the others.
  void write(Part items);
  /// Adds halves to `parts` if the part must be cut in two.
  void write_part(Part part, std::vector<Part>& parts);
  /// The records that are still to be written, moved to the front.
  static Part pending(Part part);
  Verdict judge(Part batch, const flow::SinkError& error, std::uint32_t& attempt);
  Verdict judge_outage(Part batch, const flow::SinkError& error, std::uint32_t& attempt);
  Verdict judge_records(Part batch, const flow::SinkError& error, std::uint32_t& attempt);
  void count_poison(Part items);
  /// `before` was admitted, and is buried if `one` is not admitted.
  void admit_poison(flow::StormGuard::Judge judge, Part one, Part before);
  /// Writes rejected records to the dead letters, and retries until no partition waits for them.
  void bury(Part items);
  [[nodiscard]] bool is_to_be_buried(const Item& item) const;
  [[nodiscard]] DeadLetter letter_of(const Item& item) const;
  /// False: no partition waits for the records any more.
  bool write_letters(Part dead, std::span<const DeadLetter> letters);
  /// A letter is permanently refused: writes those before it, and halts. False: no partition waits.
  bool halt_on_refusal(Part dead, std::span<const DeadLetter>& letters);
  /// The record's letter is written. Counted now, because the rest of the batch may take long.
  void confirm(Item& item);
  void finish(Items& items);
  void tell(const Item& item);
  bool pause(Duration time, Part items);
  [[nodiscard]] bool gives_up(std::span<const Item> items) const;

  LaneContext context_;
  std::shared_ptr<const LaneOptions> options_;  // Of the present batch.
  std::unique_ptr<LaneWriter> writer_;
  Random random_;
  ItemQueue queue_;
  Instant told_at_;  // Limits the lines about single records per second.
  std::uint32_t told_ = 0;
};

}  // namespace baton::pipeline
