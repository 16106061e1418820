#include "cli/pipeline/pipeline_config.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "base/secure/settings.h"

namespace baton::cli {
namespace {

constexpr std::uintmax_t kFileMax = std::uintmax_t{1} << 20U;

std::map<std::string, std::string> environment() {
  std::map<std::string, std::string> result;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {  // NOLINT
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    result.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return result;
}

}  // namespace

Result<pipeline::PipelineConfig> read_pipeline_config(const std::string& file) {
  std::error_code unreadable;
  const std::uintmax_t size = std::filesystem::file_size(file, unreadable);
  std::ifstream in(file, std::ios::binary);
  if (unreadable || !in.is_open()) {
    return Error{Errc::invalid_argument, fmt::format("cannot read the config file {}", file)};
  }
  if (size > kFileMax) {
    return Error{Errc::invalid_argument, fmt::format("{} is larger than 1 MiB", file)};
  }
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  BATON_TRY(pipeline::PipelineConfig config, pipeline::parse_config(text, file, environment()));
  pipeline::resolve_paths(config, std::filesystem::absolute(file).parent_path().string());
  BATON_TRY_STATUS(pipeline::load_security(config, secure::process_environment()));
  return config;
}

}  // namespace baton::cli
