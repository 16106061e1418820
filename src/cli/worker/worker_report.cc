#include "cli/worker/worker_report.h"

#include <algorithm>
#include <map>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/time.h"
#include "cli/base/terminal.h"
#include "core/workers/names.h"

namespace baton::cli {
namespace {

using partition::Holding;
using partition::SessionState;
using partition::WallTime;
using partition::WorkerSession;

std::string worker_name(const partition::SessionId& session) {
  return std::string(partition::worker_of(session));
}

std::string age(WallTime now, WallTime then) {
  if (then.count() == 0) return "-";
  const auto passed = std::max(now - then, WallTime{0});
  if (passed < std::chrono::seconds{10}) {
    return fmt::format("{:.1f}s", std::chrono::duration<double>(passed).count());
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(passed).count();
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m{:02}s", seconds / 60, seconds % 60);
  if (seconds < 86'400) return fmt::format("{}h{:02}m", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{}d{:02}h", seconds / 86'400, seconds / 3600 % 24);
}

bool is_silent(const WorkerSession& session, WallTime now) {
  const bool lives =
      !session.dead() && !(session.state == SessionState::restarting && session.stopped);
  return lives && now > session.renewed + session.lease;
}

Tone tone_of(const WorkerReport::Row& row) {
  if (row.silent || row.document.blind || row.document.dead()) return Tone::alarm;
  return row.document.state == SessionState::active ? Tone::good : Tone::notice;
}

/// Every state except the ordinary one is in capitals.
std::string state_text(const WorkerReport::Row& row) {
  std::string text(to_string(row.document.state));
  if (row.document.state != SessionState::active) {
    std::ranges::transform(text, text.begin(), [](char c) { return std::toupper(c); });
  }
  if (row.document.blind) text += " BLIND";
  if (row.document.fenced) text += " FENCED";
  if (row.silent) text += " SILENT";
  return paint(tone_of(row), text);
}

/// A former life of a worker, with nothing left to do.
bool is_over(const WorkerReport::Row& row) { return row.document.dead() && row.holds == 0; }

/// The columns that matter least come last; they are left out first.
std::string worker_table(const WorkerReport& report, std::size_t columns) {
  std::vector<std::vector<std::string>> rows{{"WORKER", "STATE", "HOLDS", "LEASE", "RENEWED", "AGE",
                                              "WEIGHT", "STATIC", "HOST", "SESSION"}};
  for (const WorkerReport::Row& row : report.workers) {
    if (is_over(row)) continue;
    const WorkerSession& session = row.document;
    rows.push_back({worker_name(row.session), state_text(row), fmt::format("{}", row.holds),
                    format_duration(session.lease), age(report.at, session.renewed) + " ago",
                    age(report.at, session.since), fmt::format("{}", session.weight),
                    session.static_id ? "yes" : "no", printable(session.host), row.session});
  }
  std::string table = format_table(rows);
  while (table_width(table) > columns && rows.front().size() > 2) {
    for (auto& row : rows) row.pop_back();
    table = format_table(rows);
  }
  return table;
}

std::string partition_table(const WorkerReport& report) {
  std::vector<std::vector<std::string>> rows{{"PARTITION", "OWNER", "EPOCH", "FOR", "WHY", "NEXT"}};
  for (std::size_t i = 0; i < report.holdings.size(); ++i) {
    const Holding& holding = report.holdings[i];
    rows.push_back(
        {fmt::format("{}", i),
         holding.owner.empty() ? paint(Tone::alarm, "NOBODY") : worker_name(holding.owner),
         fmt::format("{}", holding.epoch), age(report.at, holding.since),
         std::string(to_string(holding.why)),
         holding.next.empty() ? "" : "-> " + worker_name(holding.next)});
  }
  return format_table(rows);
}

std::string about_state(const WorkerReport::Row& row) {
  switch (row.document.state) {
    case SessionState::draining: return "is DRAINING: it leaves, and hands its partitions over";
    case SessionState::restarting:
      return row.document.stopped ? fmt::format("is RESTARTING: its partitions wait for it, for {}",
                                                format_duration(row.document.grace))
                                  : "is RESTARTING: it stops its work";
    case SessionState::standby: return "is on STANDBY: a former life of its static id is not over";
    case SessionState::evicted:
      return row.holds > 0 ? "was EVICTED, and its partitions have no new owner yet" : "";
    case SessionState::gone:
      return row.holds > 0 ? "is GONE, and its partitions have no new owner yet" : "";
    case SessionState::active: break;
  }
  return {};
}

void put_sessions(WorkerReport& report, const partition::GroupView& view) {
  std::map<std::string, std::uint32_t> holds;
  for (const Holding& holding : report.holdings) ++holds[holding.owner];
  for (const auto& [id, known] : view.sessions()) {
    if (known.session.lease.count() == 0) continue;  // Unreadable, which is reported elsewhere.
    const auto held = holds.find(id);
    report.workers.push_back({.session = id,
                              .document = known.session,
                              .holds = held == holds.end() ? 0 : held->second,
                              .silent = is_silent(known.session, report.at)});
  }
}

std::uint32_t count_lost(const WorkerReport& report) {
  const auto is_known = [&](const Holding& holding) {
    return std::ranges::any_of(report.workers,
                               [&](const auto& row) { return row.session == holding.owner; });
  };
  return static_cast<std::uint32_t>(std::ranges::count_if(
      report.holdings, [&](const Holding& holding) { return !is_known(holding); }));
}

}  // namespace

WorkerReport make_report(const ReportAbout& about, const std::vector<partition::Entry>& entries) {
  WorkerReport report{.group = about.group, .store = about.store, .at = about.now};
  partition::GroupView view(about.group);
  for (const partition::Entry& entry : entries) {
    const Status status = view.put(entry, {});
    if (!status) report.unreadable.emplace_back(entry.key, status.error().text);
  }
  for (const auto& [number, chunk] : view.chunks()) {
    report.partitions = chunk.assignment.partitions;
    report.holdings.resize(chunk.assignment.first);
    report.holdings.insert(report.holdings.end(), chunk.assignment.holdings.begin(),
                           chunk.assignment.holdings.end());
  }
  put_sessions(report, view);
  return report;
}

Json to_json(const WorkerReport& report) {
  Json out{{"group", report.group},      {"store", report.store},
           {"at_ms", report.at.count()}, {"partitions", report.partitions},
           {"workers", Json::array()},   {"assignment", Json::array()},
           {"alarms", alarms(report)},   {"unreadable", Json::array()}};
  for (const WorkerReport::Row& row : report.workers) {
    const WorkerSession& session = row.document;
    out["workers"].push_back({{"worker", worker_name(row.session)},
                              {"session", row.session},
                              {"state", to_string(session.state)},
                              {"holds", row.holds},
                              {"weight", session.weight},
                              {"static", session.static_id},
                              {"fenced", session.fenced},
                              {"blind", session.blind},
                              {"silent", row.silent},
                              {"lease_ms", session.lease.count()},
                              {"since_ms", session.since.count()},
                              {"renewed_ms", session.renewed.count()},
                              {"host", session.host}});
  }
  for (std::size_t i = 0; i < report.holdings.size(); ++i) {
    const Holding& holding = report.holdings[i];
    out["assignment"].push_back({{"partition", i},
                                 {"owner", worker_name(holding.owner)},
                                 {"session", holding.owner},
                                 {"epoch", holding.epoch},
                                 {"since_ms", holding.since.count()},
                                 {"why", to_string(holding.why)},
                                 {"next", worker_name(holding.next)}});
  }
  for (const auto& [key, why] : report.unreadable) {
    out["unreadable"].push_back({{"key", key}, {"error", why}});
  }
  return out;
}

std::vector<std::string> alarms(const WorkerReport& report) {
  std::vector<std::string> out;
  for (const WorkerReport::Row& row : report.workers) {
    const std::string name = worker_name(row.session);
    if (const std::string text = about_state(row); !text.empty()) {
      out.push_back(fmt::format("{} {}", name, text));
    }
    if (row.document.dead()) continue;
    if (row.document.blind) {
      out.push_back(fmt::format("{} is BLIND: its watch shows it nothing; it polls", name));
    }
    if (row.silent) {
      out.push_back(fmt::format("{} is SILENT: its last renewal is {} old, its lease {}", name,
                                age(report.at, row.document.renewed),
                                format_duration(row.document.lease)));
    }
  }
  if (const std::uint32_t lost = count_lost(report); lost > 0) {
    out.push_back(fmt::format("{} of {} partitions have NO OWNER", lost, report.holdings.size()));
  }
  for (const auto& [key, why] : report.unreadable) {
    out.push_back(fmt::format("{} cannot be read: {}", printable(key), printable(why)));
  }
  return out;
}

std::string describe(const WorkerReport& report, std::size_t columns) {
  const auto living =
      std::ranges::count_if(report.workers, [](const auto& row) { return !row.document.dead(); });
  std::string out = fmt::format("group {} at {}: {} partition{}, {} worker{}", report.group,
                                report.store, report.partitions, report.partitions == 1 ? "" : "s",
                                living, living == 1 ? "" : "s");
  for (const std::string& alarm : alarms(report)) {
    out += "\n" + paint(Tone::alarm, "!! " + alarm);
  }
  const auto over = std::ranges::count_if(report.workers, is_over);
  if (over < std::ssize(report.workers)) out += "\n\n" + worker_table(report, columns);
  if (over > 0) {
    out += fmt::format("\n({} not shown: left or evicted, and holding nothing)",
                       counted(static_cast<std::uint64_t>(over), "former session"));
  }
  if (!report.holdings.empty()) out += "\n\n" + partition_table(report);
  return out;
}

std::string shape_of(const WorkerReport& report) {
  WorkerReport still = report;
  still.at = {};
  for (WorkerReport::Row& row : still.workers) row.document.renewed = {};
  return dump(to_json(still));
}

}  // namespace baton::cli
