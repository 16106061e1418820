#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "pipeline/ends/endpoint.h"
#include "pipeline/ends/pipeline_config.h"
#include "pipeline/ends/record_output.h"
#include "pipeline/engine/dead_letter.h"
#include "pipeline/engine/dead_letter_store.h"
#include "pipeline/engine/finding.h"
#include "pipeline/engine/sink.h"
#include "pipeline/engine/source.h"
#include "pipeline/schema/json_schema.h"
#include "pipeline/schema/mapping.h"

/// What a kind of source, sink or dead letters consists of: the entries of the registries in
/// pipeline/app/registry.cc. An EndKind has its name and the form of its URLs.
namespace baton::pipeline {

struct SourceKind {
  /// Whether records have offsets that grow, which exactly_once_effect needs.
  bool has_offsets = true;
  /// Checks that the settings fit the kind. Pure. Null if there is nothing to check.
  Status (*check)(const PipelineConfig& config) = nullptr;
  /// Connects to nothing.
  Result<std::unique_ptr<Source>> (*make)(const PipelineConfig& config) = nullptr;
  /// Opens an output to the place that a source of this kind reads, for redrives and generated
  /// records.
  Result<std::unique_ptr<RecordOutput>> (*open_output)(const Endpoint& endpoint,
                                                       const OutputOptions& options) = nullptr;
};

/// What a sink needs besides its settings.
struct SinkParts {
  std::string source{};  // The origin that rows record.
  std::optional<schema::Schema> schema{};
  std::optional<schema::Mapping> mapping{};  // For kinds that take rows, which need a schema too.
};

struct SinkKind {
  /// Whether records become rows of tables, by a schema and a mapping.
  bool takes_rows = false;
  /// Whether rows and marks change in one transaction, which exactly_once_effect needs.
  bool has_transactions = false;
  /// Whether the sink writes to standard output: nothing else may be written there.
  bool owns_stdout = false;
  /// Connects to nothing.
  Result<std::unique_ptr<Sink>> (*make)(const PipelineConfig& config, SinkParts parts) = nullptr;
};

struct DeadLetterStoreOptions {
  std::string pipeline{};
  Properties properties{};  // Of the client library, if the kind has one that takes properties.
};

struct DeadLetterKind {
  /// What open() would create; nullopt if the target exists.
  Result<std::optional<Finding>> (*find_missing)(const PipelineConfig& config) = nullptr;
  Result<std::unique_ptr<DeadLetterTarget>> (*open)(const PipelineConfig& config) = nullptr;
  /// Opens the letters that the target at `endpoint` has written.
  Result<std::unique_ptr<DeadLetterStore>> (*open_store)(
      const Endpoint& endpoint, const DeadLetterStoreOptions& options) = nullptr;
};

/// An entry: a kind's name and URLs, and its functions; null if this build has the kind switched
/// off.
template <class Kind>
struct EndRow {
  const EndKind* end = nullptr;
  const Kind* kind = nullptr;
};

}  // namespace baton::pipeline
