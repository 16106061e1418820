#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/base/output.h"

/// What `baton bench failover` makes of its measurements. Pure.
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

/// The smallest value that `share` of all are not above; 0 of none.
double percentile(std::vector<double> values, double share);

std::string failover_table(const std::vector<FailoverRow>& rows);
Json to_json(const FailoverRow& row);
/// Bars up to the median, whiskers to the worst, marks at the reference; times on a logarithmic
/// scale.
std::string failover_svg(const std::vector<FailoverRow>& rows);

}  // namespace baton::cli
