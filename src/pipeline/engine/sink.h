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

/// Turns records into what a sink writes; one for each decoding thread.
class Preparer {
 public:
  Preparer() = default;
  Preparer(const Preparer&) = delete;
  Preparer& operator=(const Preparer&) = delete;
  virtual ~Preparer() = default;
  virtual std::expected<std::unique_ptr<Prepared>, Rejection> prepare(const Record& record) = 0;
};

/// Writes the batches of one lane; used by that lane's thread alone. Connects when first needed,
/// and again after a failure.
class LaneWriter {
 public:
  LaneWriter() = default;
  LaneWriter(const LaneWriter&) = delete;
  LaneWriter& operator=(const LaneWriter&) = delete;
  virtual ~LaneWriter() = default;
  /// Durable when it returns; sets each item's fate. After an error the items whose fate is open
  /// are not in, or, of an outage, nobody knows: they are written again, and what is in already is
  /// found to be so.
  ///
  /// With exactly_once_effect it also moves the marks (see moves_of()). A mark that is not where it
  /// should be: class fenced, and OwnedPartition::drop(), if the partition is another's by now;
  /// otherwise OwnedPartition::set_mark() to what the sink says, and class retry.
  virtual std::optional<flow::SinkError> write(std::span<Item> items) = 0;
};

/// What a sink keeps of a partition with exactly_once_effect: whose it is, and how far each lane
/// came. Moved in the transaction that writes the rows.
struct SinkMarks {
  std::uint64_t epoch = 0;         // Of the sink; grows with every claim.
  std::vector<std::int64_t> next;  // By lane: everything of that lane below it is in.
  std::int64_t begin = 0;          // Everything below it, of all lanes, is over and done with.
};

/// Where records go. Thread-safe.
class Sink {
 public:
  Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  virtual ~Sink() = default;

  /// Are the tables there, and as they should be? `apply`: makes what is missing. Answers what it
  /// made, or would make.
  virtual Result<Findings> check(bool apply) = 0;
  /// Source::origin(): what marks, or keys of records, are of. Before check() and the first
  /// writer().
  virtual void set_origin(std::string /*origin*/) {}
  virtual std::unique_ptr<Preparer> preparer() = 0;
  virtual std::unique_ptr<LaneWriter> writer(std::uint32_t lane) = 0;
  /// Is anybody there? A cheap question, that a sink may answer and still not take a batch.
  virtual std::optional<flow::SinkError> probe() = 0;
  [[nodiscard]] virtual std::string name() const = 0;

  // exactly_once_effect. A sink without it never gets this far: is_transactional() says so.

  [[nodiscard]] virtual bool is_transactional() const { return false; }
  /// Makes us the owner of a partition: whoever was it before cannot write any more. `next` is
  /// where a partition begins that the sink does not know yet. Fails with class config when the
  /// marks are of another number of lanes and not settled.
  virtual std::expected<SinkMarks, flow::SinkError> claim(std::uint32_t partition,
                                                          std::int64_t next);
  /// Everything below `next` is over and done with, nothing is in flight: all lanes move there.
  virtual std::optional<flow::SinkError> settle(std::uint32_t partition, std::uint64_t epoch,
                                                std::int64_t next);
};

}  // namespace baton::pipeline
