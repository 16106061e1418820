#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "pipeline/ends/kinds.h"

/// Every kind of end that a pipeline can have, in one place.
namespace baton::pipeline {

/// These fail with invalid_argument: the error for an unknown kind lists the known ones.
Result<Endpoint> parse_source_url(std::string_view url);
Result<Endpoint> parse_sink_url(std::string_view url);
Result<Endpoint> parse_dead_letters_url(std::string_view url);

/// The kind of an endpoint that the function above has parsed.
const SourceKind& source_kind(const Endpoint& endpoint);
const SinkKind& sink_kind(const Endpoint& endpoint);
const DeadLetterKind& dead_letter_kind(const Endpoint& endpoint);

/// The source called `name`, "KIND:NAME", at the servers of `other`; nullopt if that kind has other
/// servers, or if `name` does not have this form.
std::optional<Endpoint> source_beside(const Endpoint& other, std::string_view name);

/// Opens an output that writes to the place that a source at `endpoint` reads.
Result<std::unique_ptr<RecordOutput>> open_output(const Endpoint& endpoint,
                                                  const OutputOptions& options = {});

/// Fails if the config gives a setting that its source does not have; the error names the sources
/// that have it.
Status check_source_settings(const PipelineConfig& config);
/// Whether the source at `endpoint` has the setting `path`, which only some sources have; the error
/// names those.
Status check_has_setting(const Endpoint& endpoint, std::string_view path);
/// The kinds of sinks that take rows: "sqlite and postgres".
std::string names_of_row_sinks();

}  // namespace baton::pipeline
