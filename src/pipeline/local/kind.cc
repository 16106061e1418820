#include "pipeline/local/kind.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "pipeline/local/file_dead_letters.h"
#include "pipeline/local/file_letter_store.h"
#include "pipeline/local/stdout_sink.h"

namespace baton::pipeline {
namespace {

Result<std::unique_ptr<Sink>> make_stdout_sink(const PipelineConfig& config, SinkParts parts) {
  return std::make_unique<StdoutSink>(StdoutSinkOptions{
      .schema = std::move(parts.schema), .document_bytes_max = config.record_bytes_max});
}

Result<std::optional<Finding>> find_missing_file(const PipelineConfig& config) {
  const std::filesystem::path path = config.dead_letters.endpoint.name;
  std::error_code unknown;  // On an error the file counts as missing.
  if (std::filesystem::exists(path, unknown)) return std::nullopt;
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (::access(folder.c_str(), W_OK) == 0) return missing(false, "file", path.string());
  return Error{Errc::failed_precondition, fmt::format("cannot create {}: {}", path.string(),
                                                      std::generic_category().message(errno))};
}

Result<std::unique_ptr<DeadLetterTarget>> open_letters(const PipelineConfig& config) {
  BATON_TRY(std::unique_ptr<DeadLetterTarget> target,
            FileDeadLetters::open(config.dead_letters.endpoint.name));
  return target;
}

Result<std::unique_ptr<DeadLetterStore>> open_letter_store(
    const Endpoint& endpoint, const DeadLetterStoreOptions& /*options*/) {
  BATON_TRY(std::unique_ptr<DeadLetterStore> store, FileLetterStore::open(endpoint.name));
  return store;
}

}  // namespace

const SinkKind kStdoutSink{.owns_stdout = true, .make = make_stdout_sink};
const DeadLetterKind kFileLetters{
    .find_missing = find_missing_file, .open = open_letters, .open_store = open_letter_store};

}  // namespace baton::pipeline
