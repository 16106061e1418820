#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/base/output.h"

/// The report of `baton bench failover`. Pure.
namespace baton::cli {

/// One scenario, measured several times.
struct FailoverRow {
  std::string store;  // "baton", "nats", "etcd".
  std::string profile;
  std::string scenario;
  std::optional<double> reference_ms{};
  std::vector<double> ms{};  // Of each run, in order.
  std::uint64_t moves = 0;   // Static restart: partitions that went to another worker.
};

/// The smallest value that at least `share` of all values do not exceed; 0 if there are none.
double percentile(std::vector<double> values, double share);

std::string failover_table(const std::vector<FailoverRow>& rows);
Json to_json(const FailoverRow& row);
/// Bars up to the median, whiskers to the worst, marks at the reference; times are on a logarithmic
/// scale.
std::string failover_svg(const std::vector<FailoverRow>& rows);

}  // namespace baton::cli
