#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/result.h"
#include "engine/record.h"
#include "pipeline/endpoint.h"

namespace baton::pipeline {

/// Puts records into what pipelines read from. One thread.
class RecordOutput {
 public:
  RecordOutput() = default;
  RecordOutput(const RecordOutput&) = delete;
  RecordOutput& operator=(const RecordOutput&) = delete;
  virtual ~RecordOutput() = default;

  /// Key, value and headers; may wait for room.
  virtual Status send(Record record) = 0;
  /// All that was sent is there for good; fails if any of it is not.
  virtual Status flush(std::chrono::milliseconds timeout) = 0;
};

/// `partitions`: of a nats subject with {partition}.
Result<std::unique_ptr<RecordOutput>> open_output(const Endpoint& endpoint,
                                                  std::uint32_t partitions);

}  // namespace baton::pipeline
