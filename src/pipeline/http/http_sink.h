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

/// A POST for each record, with the record as its body and `Idempotency-Key:
/// pipeline/origin/partition/offset`: a receiver that remembers it takes a record once. 2xx: it is
/// in. 409: it was in before.
class HttpSink : public Sink {
 public:
  /// Fails when the URL is none.
  static Result<std::unique_ptr<HttpSink>> open(HttpSinkOptions options);

  Result<Findings> check(bool apply) override;
  std::unique_ptr<Preparer> preparer() override;
  std::unique_ptr<LaneWriter> writer(std::uint32_t lane) override;
  void set_origin(std::string origin) override { options_.source = std::move(origin); }
  /// Whether somebody listens: the next record is the real question.
  std::optional<flow::SinkError> probe() override;
  [[nodiscard]] std::string name() const override { return server_ + path_; }

 private:
  /// OPTIONS, and what the answer's status was.
  std::optional<flow::SinkError> ask(int& status);
  class Writer;
  HttpSink(HttpSinkOptions options, std::string server, std::string path)
      : options_(std::move(options)), server_(std::move(server)), path_(std::move(path)) {}

  HttpSinkOptions options_;
  std::string server_;  // "http://host:port"
  std::string path_;
};

}  // namespace baton::pipeline
