#include "cli/worker/handler_program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace baton::cli {
namespace {

// What execvp uses if $PATH is not set.
constexpr std::string_view kPathDefault = "/bin:/usr/bin";

/// Why `file` cannot be executed; empty if it can.
std::string obstacle(const std::string& file) {
  struct stat about{};
  if (::stat(file.c_str(), &about) != 0)
    return std::strerror(errno);  // NOLINT(concurrency-mt-unsafe)
  if (S_ISDIR(about.st_mode)) return "it is a folder";
  if (::access(file.c_str(), X_OK) != 0) return "it is not executable";
  return {};
}

Error cannot_run(std::string_view program, std::string_view why) {
  return {Errc::invalid_argument,
          fmt::format("cannot run the program '{}': {}", program.substr(0, 256), why)};
}

}  // namespace

Status check_handler(const std::vector<std::string>& command, std::string_view path) {
  if (command.empty()) return {};
  const std::string& program = command.front();
  if (program.empty()) return cannot_run(program, "its name is empty");
  if (program.find('{') != std::string::npos) return {};
  if (program.find('/') != std::string::npos) {
    const std::string why = obstacle(program);
    return why.empty() ? Status{} : cannot_run(program, why);
  }
  for (std::string_view rest = path.empty() ? kPathDefault : path; !rest.empty();) {
    const auto end = std::min(rest.find(':'), rest.size());
    const std::string_view folder = end == 0 ? "." : rest.substr(0, end);
    if (obstacle(fmt::format("{}/{}", folder, program)).empty()) return {};
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return cannot_run(program, "no folder of $PATH has it");
}

}  // namespace baton::cli
