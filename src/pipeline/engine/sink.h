#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "pipeline/engine/finding.h"
#include "pipeline/engine/record.h"
#include "pipeline/flow/error_class.h"

namespace baton::pipeline {

/// Converts records to the form that a sink writes; one for each decoding thread.
class Preparer {
 public:
  Preparer() = default;
  Preparer(const Preparer&) = delete;
  Preparer& operator=(const Preparer&) = delete;
  virtual ~Preparer() = default;
  virtual std::expected<std::unique_ptr<Prepared>, Rejection> prepare(const Record& record) = 0;
};

/// Writes the batches of one lane; used only by that lane's thread. Connects on first use, and
/// again after a failure.
class LaneWriter {
 public:
  LaneWriter() = default;
  LaneWriter(const LaneWriter&) = delete;
  LaneWriter& operator=(const LaneWriter&) = delete;
  virtual ~LaneWriter() = default;
  /// When it returns, the items are durable and their fates are set. After an error, items whose
  /// fate is open were not written, or, after an outage, may have been: they are written again, and
  /// the sink recognises those that it has.
  ///
  /// With exactly_once_effect it also moves the marks (see moves_of()). If a mark is not where it
  /// should be: class fenced, and OwnedPartition::drop(), if another process owns the partition by
  /// now; otherwise OwnedPartition::set_mark() to the sink's value, and class retry.
  virtual std::optional<flow::SinkError> write(std::span<Item> items) = 0;
};

/// What a sink stores of a partition with exactly_once_effect: its owner, and the mark of each
/// lane. Moved in the transaction that writes the rows.
struct SinkMarks {
  std::uint64_t epoch = 0;         // The sink's own; grows with every claim.
  std::vector<std::int64_t> next;  // By lane: all records of that lane below it are in the sink.
  std::int64_t begin = 0;          // Everything below it, of all lanes, is finished.
};

/// Where records are written. Thread-safe.
class Sink {
 public:
  Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  virtual ~Sink() = default;

  /// Verifies the tables. With `apply`, creates what is missing. Returns what it created or would
  /// create.
  virtual Result<Findings> check(bool apply) = 0;
  /// Source::origin(), which marks and keys of records belong to. Called before check() and the
  /// first writer().
  virtual void set_origin(std::string /*origin*/) {}
  virtual std::unique_ptr<Preparer> preparer() = 0;
  virtual std::unique_ptr<LaneWriter> writer(std::uint32_t lane) = 0;
  /// Checks cheaply that the sink answers. A sink may answer and still not take a batch.
  virtual std::optional<flow::SinkError> probe() = 0;
  [[nodiscard]] virtual std::string name() const = 0;

  // For exactly_once_effect. Only called if is_transactional().

  [[nodiscard]] virtual bool is_transactional() const { return false; }
  /// Makes this process the owner of a partition: the previous owner cannot write any more. `next`
  /// is where a partition begins that the sink does not know yet. Fails with class config if the
  /// marks are of another number of lanes and not settled.
  virtual std::expected<SinkMarks, flow::SinkError> claim(std::uint32_t partition,
                                                          std::int64_t next);
  /// Everything below `next` is finished and nothing is in flight: all lanes' marks move to `next`.
  virtual std::optional<flow::SinkError> settle(std::uint32_t partition, std::uint64_t epoch,
                                                std::int64_t next);
};

}  // namespace baton::pipeline
