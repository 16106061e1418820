#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "pipeline/engine/sink.h"
#include "pipeline/schema/json_schema.h"

namespace baton::pipeline {

struct StdoutSinkOptions {
  std::optional<schema::Schema> schema{};
  std::size_t document_bytes_max = std::size_t{1} << 20U;
  int file = 1;
};

/// Writes a line of JSON for each record to standard output.
class StdoutSink : public Sink {
 public:
  explicit StdoutSink(StdoutSinkOptions options) : options_(std::move(options)) {}

  Result<Findings> check(bool /*apply*/) override { return Findings(); }
  std::unique_ptr<Preparer> preparer() override;
  std::unique_ptr<LaneWriter> writer(std::uint32_t lane) override;
  std::optional<flow::SinkError> probe() override { return std::nullopt; }
  [[nodiscard]] std::string name() const override { return "stdout"; }

 private:
  class Writer;
  std::optional<flow::SinkError> write(const std::string& lines);

  StdoutSinkOptions options_;
  std::mutex mutex_;  // Keeps the lines of one batch together.
};

}  // namespace baton::pipeline
