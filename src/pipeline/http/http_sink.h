#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/engine/sink.h"
#include "pipeline/schema/json_schema.h"

namespace baton::pipeline {

struct HttpSinkOptions {
  std::string url{};
  std::vector<std::pair<std::string, std::string>> headers{};
  Duration timeout = std::chrono::seconds(30);
  std::string pipeline{};
  std::string source{};
  std::optional<schema::Schema> schema{};
  std::size_t document_bytes_max = std::size_t{1} << 20U;
};

/// Sends a POST for each record, with the record as its body and `Idempotency-Key:
/// pipeline/origin/partition/offset`: a receiver that remembers the key takes a record once. 2xx:
/// the record is written. 409: it was written before.
class HttpSink : public Sink {
 public:
  /// Fails if the URL is invalid.
  static Result<std::unique_ptr<HttpSink>> open(HttpSinkOptions options);

  Result<Findings> check(bool apply) override;
  std::unique_ptr<Preparer> preparer() override;
  std::unique_ptr<LaneWriter> writer(std::uint32_t lane) override;
  void set_origin(std::string origin) override { options_.source = std::move(origin); }
  /// Checks that the server answers; only the next record shows whether it accepts records.
  std::optional<flow::SinkError> probe() override;
  [[nodiscard]] std::string name() const override { return server_ + path_; }

 private:
  /// Sends OPTIONS and sets the status of the answer.
  std::optional<flow::SinkError> ask(int& status);
  class Writer;
  HttpSink(HttpSinkOptions options, std::string server, std::string path)
      : options_(std::move(options)), server_(std::move(server)), path_(std::move(path)) {}

  HttpSinkOptions options_;
  std::string server_;  // "http://host:port"
  std::string path_;
};

}  // namespace baton::pipeline
