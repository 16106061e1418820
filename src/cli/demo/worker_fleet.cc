#include "cli/demo/worker_fleet.h"

#include <signal.h>

#include <algorithm>
#include <deque>
#include <fstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/base/output.h"
#include "worker/runner/runner.h"

namespace baton::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kFleetPoll{2};
constexpr std::chrono::seconds kEndPatience{30};
constexpr std::size_t kLogLines = 5;

}  // namespace

Result<Instant> WorkerFleet::start(const std::string& name, const std::vector<std::string>& flags) {
  std::vector<std::string> arguments{"worker",
                                     "run",
                                     "--json",
                                     "--store",
                                     options_.store,
                                     "--group",
                                     options_.group,
                                     "--partitions",
                                     fmt::format("{}", options_.partitions),
                                     "--id",
                                     name};
  arguments.insert(arguments.end(), options_.flags.begin(), options_.flags.end());
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  Member& member = members_[name];
  member.process = std::make_unique<ChildProcess>();
  member.joined_at.reset();
  const Instant at = worker::boot_time();
  BATON_TRY_STATUS(member.process->start({.arguments = arguments, .log_file = options_.log_file}));
  return at;
}

Instant WorkerFleet::terminate(const std::string& name) {
  const Instant at = worker::boot_time();
  // A worker that ended by itself has no pid, and -1 would signal every process.
  if (const pid_t process = pid(name); process > 0) ::kill(process, SIGTERM);
  return at;
}

Instant WorkerFleet::kill(const std::string& name) {
  const Instant at = worker::boot_time();
  members_.at(name).process->kill();
  read_events();  // Its last events.
  drop(name);
  return at;
}

std::optional<int> WorkerFleet::wait_for_end(const std::string& name) {
  const auto end = Clock::now() + kEndPatience;
  ChildProcess& process = *members_.at(name).process;
  std::optional<int> code;
  while (Clock::now() < end && !code.has_value()) {
    read_events();
    code = process.wait(kFleetPoll);
  }
  read_events();
  if (!code.has_value()) process.kill();
  drop(name);
  return code;
}

Result<Instant> WorkerFleet::settle(const Shares& wanted, std::chrono::milliseconds patience) {
  const auto end = Clock::now() + patience;
  while (shares() != wanted) {
    if (Clock::now() >= end) {
      std::string is;
      for (const auto& [name, count] : shares()) is += fmt::format(" {} holds {}", name, count);
      return with_log(Errc::deadline_exceeded, fmt::format("the group did not settle within {}:{}",
                                                           format_duration(patience), is));
    }
    read_events();
    for (const auto& [name, share] : wanted) {
      if (members_.at(name).process->has_ended()) {
        return with_log(Errc::internal, fmt::format("worker {} has ended by itself", name));
      }
    }
  }
  return last_acquired_;
}

Error WorkerFleet::with_log(Errc code, const std::string& what) const {
  std::ifstream file(options_.log_file);
  std::deque<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(std::move(line));
    if (lines.size() > kLogLines) lines.pop_front();
  }
  if (lines.empty()) return {code, what};
  return {code, fmt::format("{}; its log ends with:\n  {}", what, fmt::join(lines, "\n  "))};
}

void WorkerFleet::read_events() {
  for (auto& [name, member] : members_) {
    while (const auto line = member.process->read_line(kFleetPoll)) take(*line);
  }
}

void WorkerFleet::take(const std::string& line) {
  const Json event = Json::parse(line, nullptr, false);
  if (!event.is_object()) return;
  const std::string kind = event.value("event", "");
  const std::string name = event.value("worker", "");
  const Instant at{event.value("at_ns", std::int64_t{0})};
  const auto member = members_.find(name);
  if (member == members_.end()) return;
  if (kind == "started") {
    member->second.joined_at = at;
  } else if (kind == "acquired") {
    holders_[event.at("partition").get<std::uint32_t>()] = name;
    last_acquired_ = std::max(last_acquired_, at);
    ++member->second.acquisitions;
  } else if (kind == "stopped" || kind == "lost") {
    const auto held = holders_.find(event.at("partition").get<std::uint32_t>());
    // Lines of two workers are not read in the order of their events.
    if (held != holders_.end() && held->second == name) holders_.erase(held);
  }
}

WorkerFleet::Shares WorkerFleet::shares() const {
  Shares result;
  for (const auto& [partition, name] : holders_) ++result[name];
  return result;
}

void WorkerFleet::drop(const std::string& name) {
  std::erase_if(holders_, [&](const auto& held) { return held.second == name; });
}

std::optional<Instant> WorkerFleet::joined_at(const std::string& name) const {
  return members_.at(name).joined_at;
}

std::uint64_t WorkerFleet::acquisitions(const std::string& name) const {
  const auto member = members_.find(name);
  return member == members_.end() ? 0 : member->second.acquisitions;
}

std::vector<std::uint32_t> WorkerFleet::held_by(const std::string& name) const {
  std::vector<std::uint32_t> result;
  for (const auto& [partition, holder] : holders_) {
    if (holder == name) result.push_back(partition);
  }
  return result;
}

pid_t WorkerFleet::pid(const std::string& name) const { return members_.at(name).process->pid(); }

}  // namespace baton::cli
