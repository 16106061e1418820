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

/// What a kind of source, sink or dead letters brings with it: the rows of the registries in
/// pipeline/app/registry.cc. How its URLs are written, and its name, is an EndKind.
namespace baton::pipeline {

struct SourceKind {
  /// Records have offsets that grow, which exactly_once_effect needs.
  bool has_offsets = true;
  /// Whether the settings fit the kind. Pure. Null: nothing to check.
  Status (*check)(const PipelineConfig& config) = nullptr;
  /// Connects to nothing.
  Result<std::unique_ptr<Source>> (*make)(const PipelineConfig& config) = nullptr;
  /// Writes where a source of this kind reads, for redrives and generated records.
  Result<std::unique_ptr<RecordOutput>> (*open_output)(const Endpoint& endpoint,
                                                       const OutputOptions& options) = nullptr;
};

/// What a sink is made of, beside its settings.
struct SinkParts {
  std::string source{};  // What rows say of where they came from.
  std::optional<schema::Schema> schema{};
  std::optional<schema::Mapping> mapping{};  // For kinds that take rows, and then with a schema.
};

struct SinkKind {
  /// Records become rows of tables, by a schema and a mapping.
  bool takes_rows = false;
  /// Rows and marks change in one transaction, which exactly_once_effect needs.
  bool has_transactions = false;
  /// Standard output is the sink's own: nothing else may be written there.
  bool owns_stdout = false;
  /// Connects to nothing.
  Result<std::unique_ptr<Sink>> (*make)(const PipelineConfig& config, SinkParts parts) = nullptr;
};

struct DeadLetterStoreOptions {
  std::string pipeline{};
  Properties properties{};  // Of the client library, where a kind has one that takes them.
};

struct DeadLetterKind {
  /// What open() would create: nothing when it is there.
  Result<std::optional<Finding>> (*find_missing)(const PipelineConfig& config) = nullptr;
  Result<std::unique_ptr<DeadLetterTarget>> (*open)(const PipelineConfig& config) = nullptr;
  /// What the target at `endpoint` has written.
  Result<std::unique_ptr<DeadLetterStore>> (*open_store)(
      const Endpoint& endpoint, const DeadLetterStoreOptions& options) = nullptr;
};

/// A row: a kind's name and URLs, and what it does; null: switched off in this build.
template <class Kind>
struct EndRow {
  const EndKind* end = nullptr;
  const Kind* kind = nullptr;
};

}  // namespace baton::pipeline
