#include "stores/programs.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "e2e/process.h"
#include "paths.h"

namespace baton::stores {
namespace {

// Debian puts servers where a plain user's PATH does not always point.
std::string find_on_path(std::string_view name) {
  const char* variable = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
  std::istringstream folders(fmt::format("{}:/usr/sbin:/sbin", variable ? variable : ""));
  std::string folder;
  while (std::getline(folders, folder, ':')) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    if (!folder.empty() && ::access(path.c_str(), X_OK) == 0) return path.string();
  }
  return {};
}

Program found_on_path(std::string_view name, std::string_view package) {
  Program program{.path = find_on_path(name)};
  if (program.path.empty()) {
    program.missing = fmt::format("{} is not installed: ./dev setup gets {}", name, package);
  }
  return program;
}

}  // namespace

Program etcd_program() { return found_on_path("etcd", "etcd-server"); }

Program debian_nats_program() { return found_on_path("nats-server", "nats-server"); }

coord::NatsVersion nats_version_of(const std::string& path) {
  const std::string said = e2e::run_command({path, "--version"}).out;
  const auto at = said.find(": v");
  if (at == std::string::npos) return {};
  return coord::parse_nats_version(said.substr(at + 3)).value_or(coord::NatsVersion{});
}

Program nats_program(const coord::NatsVersion& least) {
  std::vector<std::string> candidates;
  if (const char* named = std::getenv("BATON_NATS_SERVER"))
    candidates.emplace_back(named);  // NOLINT
  candidates.push_back(std::string(paths::kTools) + "/nats-server");
  if (const std::string installed = find_on_path("nats-server"); !installed.empty()) {
    candidates.push_back(installed);
  }
  for (const std::string& path : candidates) {
    if (::access(path.c_str(), X_OK) == 0 && nats_version_of(path) >= least) return {.path = path};
  }
  return {.missing = fmt::format("there is no nats-server {} or newer here: ./dev setup builds one "
                                 "where Go is installed",
                                 coord::to_string(least))};
}

}  // namespace baton::stores
