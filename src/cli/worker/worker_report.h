#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "cli/base/output.h"
#include "core/workers/documents.h"
#include "core/workers/view.h"

/// What `baton worker status` shows of a group. Pure: the store's entries in, text or JSON out.
namespace baton::cli {

struct WorkerReport {
  struct Row {
    std::string session;  // "w1.5f2c".
    partition::WorkerSession document;
    std::uint32_t holds = 0;
    /// By the wall clocks of two machines: only for people.
    bool silent = false;
  };
  std::string group;
  std::string store;
  partition::WallTime at{};
  std::uint32_t partitions = 0;
  std::vector<Row> workers{};
  std::vector<partition::Holding> holdings{};  // By partition; empty while there is no assignment.
  std::vector<std::pair<std::string, std::string>> unreadable{};  // The key, and the reason.

  [[nodiscard]] bool empty() const {
    return workers.empty() && holdings.empty() && unreadable.empty();
  }
};

struct ReportAbout {
  std::string group;
  std::string store;
  partition::WallTime now{};
};
WorkerReport make_report(const ReportAbout& about, const std::vector<partition::Entry>& entries);

Json to_json(const WorkerReport& report);
/// Alarms come first. Columns of the workers' table that do not fit into `columns` are left out, as
/// are sessions that have ended and hold nothing; --json has them.
std::string describe(const WorkerReport& report,
                     std::size_t columns = std::numeric_limits<std::size_t>::max());
/// What must be noticed, one line each.
std::vector<std::string> alarms(const WorkerReport& report);
/// Equal for two reports that differ only in heartbeats.
std::string shape_of(const WorkerReport& report);

}  // namespace baton::cli
