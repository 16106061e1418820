#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "pipeline/ends/pipeline_config.h"
#include "pipeline/engine/marks.h"
#include "pipeline/engine/sink.h"
#include "pipeline/schema/json_schema.h"
#include "pipeline/schema/mapping.h"

/// What all sinks share that are databases.
namespace baton::pipeline {

struct SqlSinkOptions {
  std::string pipeline{};
  std::string source{};  // The origin that rows record.
  std::uint32_t lanes = 1;
  bool by_partition = false;  // How records are spread over lanes; for the marks.
  bool exactly_once = false;
  std::size_t document_bytes_max = std::size_t{1} << 20U;
};

/// The options that follow from a pipeline's settings.
SqlSinkOptions sql_options(const PipelineConfig& config, std::string source);

/// Whose marks a database keeps, and in which layout.
class SqlMarks {
 public:
  void set_origin(std::string origin) { origin_ = std::move(origin); }

 protected:
  explicit SqlMarks(const SqlSinkOptions& options)
      : pipeline_(options.pipeline),
        origin_(options.source),
        lanes_(options.lanes),
        layout_(layout_of(options.lanes, options.by_partition)) {}

  std::string pipeline_;
  std::string origin_;
  std::uint32_t lanes_;
  std::int64_t layout_;
};

/// A sink that writes rows to the tables of a mapping, and marks in the same transaction.
class SqlSink : public Sink {
 public:
  std::unique_ptr<Preparer> preparer() override;
  [[nodiscard]] bool is_transactional() const override { return true; }

 protected:
  SqlSink(schema::Schema schema, schema::Mapping mapping, std::size_t document_bytes_max)
      : schema_(std::move(schema)),
        mapping_(std::move(mapping)),
        document_bytes_max_(document_bytes_max) {}
  [[nodiscard]] const schema::Mapping& mapping() const { return mapping_; }

 private:
  schema::Schema schema_;
  schema::Mapping mapping_;
  std::size_t document_bytes_max_;
};

}  // namespace baton::pipeline
