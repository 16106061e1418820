#include "pipeline/ends/pipeline_config.h"

#include <fmt/format.h>

namespace baton::pipeline {
namespace {

std::string place_of(const PipelineConfig& config, std::string_view path) {
  while (!path.empty()) {
    if (const auto* given = find_given(config, path)) {
      return given->line > 0 ? fmt::format("{}:{}", config.file, given->line)
                             : fmt::format("environment {}", given->variable);
    }
    const std::size_t dot = path.rfind('.');
    path = path.substr(0, dot == std::string_view::npos ? 0 : dot);
  }
  return config.file;
}

}  // namespace

const PipelineConfig::Given* find_given(const PipelineConfig& config, std::string_view path) {
  const PipelineConfig::Given* first = nullptr;
  for (auto at = config.given.lower_bound(std::string(path)); at != config.given.end(); ++at) {
    if (!at->first.starts_with(path)) break;
    if (first == nullptr || at->second.line < first->line) first = &at->second;
    if (at->first.size() == path.size()) break;
  }
  return first;
}

Error wrong_at(const PipelineConfig& config, std::string_view path, std::string_view why) {
  return {Errc::invalid_argument, fmt::format("{}: {}: {}", place_of(config, path), path, why)};
}

Error with_place(const PipelineConfig& config, std::string_view path, const Error& error) {
  return {error.code, fmt::format("{}: {}: {}", place_of(config, path), path, error.text)};
}

Properties letter_properties(const PipelineConfig& config) {
  const bool same = config.dead_letters.endpoint.address == config.source.endpoint.address;
  return same ? config.source.properties : Properties{};
}

Status need(const PipelineConfig& config, const std::string& value, std::string_view path,
            std::string_view because) {
  if (!value.empty()) return {};
  return Error{Errc::invalid_argument, fmt::format("{}: {} is missing{}{}", config.file, path,
                                                   because.empty() ? "" : ": ", because)};
}

}  // namespace baton::pipeline
