#include "worker/guardian/process_group.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace baton::worker {
namespace {

std::optional<pid_t> process_number(const std::string& name) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  if (error != std::errc{} || end != name.data() + name.size()) return std::nullopt;
  return pid;
}

}  // namespace

std::optional<ProcessState> parse_process_state(std::string_view stat) {
  // PID (NAME) STATE PARENT GROUP ... THREADS (the 20th); the name may hold anything.
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  std::istringstream fields{std::string(stat.substr(name_end + 1))};
  constexpr int kSkipped = 14;  // Fields between the group and the number of threads.
  char state = 0;
  pid_t parent = 0;
  ProcessState found;
  fields >> state >> parent >> found.group;
  std::string ignored;
  for (int i = 0; i < kSkipped; ++i) fields >> ignored;
  long threads = 0;
  fields >> threads;
  if (!fields) return std::nullopt;
  // A process whose first thread has ended shows as a zombie too, while others run.
  found.dead = (state == 'Z' || state == 'X') && threads <= 1;
  return found;
}

GroupMembers members_of_group(pid_t group) {
  GroupMembers members;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc", error), end; !error && at != end;
       at.increment(error)) {
    const auto pid = process_number(at->path().filename().string());
    if (!pid) continue;
    std::ifstream file(at->path() / "stat");
    const std::string stat{std::istreambuf_iterator<char>(file), {}};
    const auto state = parse_process_state(stat);
    if (!state || state->group != group) continue;
    if (state->dead) {
      members.has_dead = true;
    } else {
      members.alive.push_back(*pid);
    }
  }
  return members;
}

}  // namespace baton::worker
