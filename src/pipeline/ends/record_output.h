#pragma once

#include <chrono>
#include <cstdint>

#include "base/result.h"
#include "pipeline/ends/endpoint.h"
#include "pipeline/engine/record.h"

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

struct OutputOptions {
  std::uint32_t partitions = 1;  // Of a nats subject with {partition}.
  Properties properties{};       // Of a client library.
};

}  // namespace baton::pipeline
