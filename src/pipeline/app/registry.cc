#include "pipeline/app/registry.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/assert.h"
#include "base/switches.h"
#include "pipeline/baton/kind.h"
#include "pipeline/http/kind.h"
#include "pipeline/kafka/kind.h"
#include "pipeline/local/kind.h"
#include "pipeline/nats/kind.h"
#include "pipeline/postgres/kind.h"
#include "pipeline/sqlite/kind.h"

namespace baton::pipeline {
namespace {

// To add a kind, add a folder with a kind.h, and a line in the table of its role. Errors list the
// kinds in this order.

constexpr std::array kSources = std::to_array<EndRow<SourceKind>>({
    {&kStreamEnd, &kStreamSource},
    {&kQueueEnd, &kQueueSource},
    {&kKafkaEnd, BATON_KAFKA(&kKafkaSource)},
    {&kNatsEnd, BATON_NATS(&kNatsSource)},
});

constexpr std::array kSinks = std::to_array<EndRow<SinkKind>>({
    {&kSqliteEnd, &kSqliteSink},
    {&kPostgresEnd, BATON_POSTGRES(&kPostgresSink)},
    {&kHttpEnd, &kHttpSink},
    {&kStdoutEnd, &kStdoutSink},
});

constexpr std::array kDeadLetters = std::to_array<EndRow<DeadLetterKind>>({
    {&kQueueEnd, &kQueueLetters},
    {&kKafkaEnd, BATON_KAFKA(&kKafkaLetters)},
    {&kFileEnd, &kFileLetters},
});

template <class Kind, std::size_t N>
Result<Endpoint> parse(std::string_view url, const std::array<EndRow<Kind>, N>& rows) {
  std::array<KnownKind, N> kinds;
  std::ranges::transform(rows, kinds.begin(), [](const EndRow<Kind>& row) {
    return KnownKind{.end = row.end, .is_on = row.kind != nullptr};
  });
  return parse_url(url, kinds);
}

template <class Kind, std::size_t N>
const Kind& find(const Endpoint& endpoint, const std::array<EndRow<Kind>, N>& rows) {
  const auto* row = std::ranges::find(rows, endpoint.kind, &EndRow<Kind>::end);
  BATON_ASSERT(row != rows.end() && row->kind != nullptr);
  return *row->kind;
}

bool has_setting(const EndKind& kind, std::string_view path) {
  return std::ranges::find(kind.settings, path) != kind.settings.end();
}

}  // namespace

Result<Endpoint> parse_source_url(std::string_view url) { return parse(url, kSources); }
Result<Endpoint> parse_sink_url(std::string_view url) { return parse(url, kSinks); }
Result<Endpoint> parse_dead_letters_url(std::string_view url) { return parse(url, kDeadLetters); }

const SourceKind& source_kind(const Endpoint& endpoint) { return find(endpoint, kSources); }
const SinkKind& sink_kind(const Endpoint& endpoint) { return find(endpoint, kSinks); }
const DeadLetterKind& dead_letter_kind(const Endpoint& endpoint) {
  return find(endpoint, kDeadLetters);
}

std::optional<Endpoint> source_beside(const Endpoint& other, std::string_view name) {
  const std::size_t colon = name.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view kind = name.substr(0, colon);
  const auto* row =
      std::ranges::find(kSources, kind, [](const auto& one) { return one.end->name; });
  if (row == kSources.end() || row->end->servers != other.kind->servers) return std::nullopt;
  auto source = parse_source_url(fmt::format("{}{}/{}", row->end->schemes.front().prefix,
                                             other.address, name.substr(colon + 1)));
  if (!source.has_value()) return std::nullopt;
  source->security = other.security;
  return *std::move(source);
}

Result<std::unique_ptr<RecordOutput>> open_output(const Endpoint& endpoint,
                                                  const OutputOptions& options) {
  return source_kind(endpoint).open_output(endpoint, options);
}

Status check_has_setting(const Endpoint& endpoint, std::string_view path) {
  if (has_setting(*endpoint.kind, path)) return {};
  std::vector<std::string_view> names;
  for (const auto& row : kSources) {
    if (has_setting(*row.end, path)) names.push_back(row.end->name);
  }
  return Error{Errc::invalid_argument,
               fmt::format("is of {}, not of {}", fmt::join(names, " and "), endpoint.kind->name)};
}

Status check_source_settings(const PipelineConfig& config) {
  for (const auto& row : kSources) {
    for (const std::string_view path : row.end->settings) {
      if (path.empty() || find_given(config, path) == nullptr) continue;
      const Status has = check_has_setting(config.source.endpoint, path);
      if (!has.has_value()) return wrong_at(config, path, has.error().text);
    }
  }
  return {};
}

std::string names_of_row_sinks() {
  std::vector<std::string_view> names;
  for (const auto& row : kSinks) {
    if (row.kind != nullptr && row.kind->takes_rows) names.push_back(row.end->name);
  }
  return fmt::format("{}", fmt::join(names, " and "));
}

}  // namespace baton::pipeline
