#pragma once

#include <chrono>
#include <cstdint>

#include "base/result.h"
#include "pipeline/ends/endpoint.h"
#include "pipeline/engine/record.h"

namespace baton::pipeline {

/// Writes records to a place that pipelines read from. For one thread.
class RecordOutput {
 public:
  RecordOutput() = default;
  RecordOutput(const RecordOutput&) = delete;
  RecordOutput& operator=(const RecordOutput&) = delete;
  virtual ~RecordOutput() = default;

  /// Sends key, value and headers; may wait for room.
  virtual Status send(Record record) = 0;
  /// Waits until everything sent is durable; fails if any of it is not.
  virtual Status flush(std::chrono::milliseconds timeout) = 0;
};

struct OutputOptions {
  std::uint32_t partitions = 1;  // For a nats subject with {partition}.
  Properties properties{};       // For a client library.
};

}  // namespace baton::pipeline
