// What must hold among simulated workers.

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "sim/worker_world.h"

namespace baton {

using partition::Assignment;
using partition::Entry;
using partition::Holding;

void WorkerWorld::violate(std::string text) {
  if (!violation_.empty()) return;
  violation_ = fmt::format("seed {} at {}: {}", options_.seed,
                           format_duration(Duration(timeline_.now().ns)), text);
  say(violation_);
}

void WorkerWorld::say(std::string text) {
  if (!options_.trace) return;
  trace_.push_back(fmt::format("{:>9.3f} {}", static_cast<double>(timeline_.now().ns) / 1e9, text));
}

/// No two workers may act on one partition. The handlers of a worker that stands still keep
/// working: they end at the deadline that their guardian was told.
void WorkerWorld::check_acting() {
  for (std::uint32_t partition = 0; partition < kPartitionsMax; ++partition) {
    check_acting(partition);
  }
}

void WorkerWorld::check_acting(std::uint32_t partition) {
  const Process* holder = nullptr;
  for (const auto& process : processes_) {
    if (process->dead || !process->machine->may_act(partition, clock_of(*process))) continue;
    if (holder == nullptr) {
      holder = process.get();
      continue;
    }
    const bool first_is_older = holder->epochs.at(partition) < process->epochs.at(partition);
    const Process& older = first_is_older ? *holder : *process;
    // Its sink refuses what it still writes.
    if (older.fenced && holder->epochs.at(partition) != process->epochs.at(partition)) continue;
    violate(fmt::format("{} and {} both act on partition {}", holder->machine->session(),
                        process->machine->session(), partition));
  }
}

void WorkerWorld::check_assignment(const Entry& entry) {
  const Result<Assignment> assignment = partition::decode_assignment(entry.value);
  if (!assignment.has_value()) return violate(to_string(assignment.error()));
  if (assignments_.empty()) partitions_ = assignment->partitions;
  if (assignment->partitions != partitions_) violate("the number of partitions changed");
  Assignment& last = assignments_[assignment->first];
  last.holdings.resize(assignment->holdings.size());
  for (std::size_t i = 0; i < last.holdings.size(); ++i) {
    check_change(assignment->first + static_cast<std::uint32_t>(i), last.holdings[i],
                 assignment->holdings[i]);
  }
  last = *assignment;
}

/// Epochs grow with each change of the owner, and only then; and only the owner takes a partition
/// from a session that lives.
void WorkerWorld::check_change(std::uint32_t partition, const Holding& before,
                               const Holding& after) {
  if (before.owner == after.owner) {
    if (before.epoch != after.epoch) violate("an epoch changed without its owner");
    return;
  }
  if (after.epoch <= before.epoch) violate("an owner changed without a new epoch");
  const std::string_view worker = partition::worker_of(before.owner);
  if (worker != partition::worker_of(after.owner)) ++owner_changes_;
  if (before.owner.empty() || worker == writer_) return;
  for (const Entry& other : store_.list(partition::session_key(kGroup, before.owner))) {
    const auto session = partition::decode_session(other.value);
    if (!session.has_value() || session->dead()) continue;
    violate(
        fmt::format("{} took partition {} from {}, which lives", writer_, partition, before.owner));
  }
}

std::vector<WorkerWorld::Process*> WorkerWorld::alive() const {
  std::vector<Process*> result;
  for (const auto& process : processes_) {
    if (!process->dead) result.push_back(process.get());
  }
  return result;
}

/// Complete, balanced, and every worker works on what the assignment gives it.
void WorkerWorld::check_settled() {
  std::map<std::string, std::size_t> counts;
  std::set<std::string> names;
  for (const Process* process : alive()) {
    counts[process->machine->session()] = 0;
    if (!names.insert(process->name).second) violate(fmt::format("two live as {}", process->name));
    if (process->partitions != partitions_) {
      violate(fmt::format("{} lives with {} partitions", process->name, process->partitions));
    }
  }
  if (counts.empty()) return;
  for (const auto& [first, assignment] : assignments_) {
    for (std::uint32_t i = 0; i < assignment.holdings.size(); ++i) {
      check_held(first + i, assignment.holdings[i]);
      ++counts[assignment.holdings[i].owner];
    }
  }
  const auto [least, most] =
      std::ranges::minmax_element(counts, {}, [](const auto& count) { return count.second; });
  if (most->second > least->second + 1) {
    violate(fmt::format("{} has {} partitions, and {} has {}", most->first, most->second,
                        least->first, least->second));
  }
}

void WorkerWorld::check_held(std::uint32_t partition, const Holding& holding) {
  if (!holding.next.empty())
    return violate(fmt::format("partition {} is still to move", partition));
  for (const Process* process : alive()) {
    if (process->machine->session() != holding.owner) continue;
    if (process->machine->may_act(partition, clock_of(*process))) return;
    return violate(fmt::format("{} does not work on its partition {}", holding.owner, partition));
  }
  violate(
      fmt::format("partition {} belongs to \"{}\", who is not alive", partition, holding.owner));
}

}  // namespace baton
