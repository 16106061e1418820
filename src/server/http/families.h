#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <prometheus/metric_family.h>

#include "base/latency.h"

namespace baton {

using Labels = std::vector<prometheus::ClientMetric::Label>;
using Families = std::vector<prometheus::MetricFamily>;

inline prometheus::MetricFamily make_family(const char* name, const char* help,
                                            prometheus::MetricType type) {
  prometheus::MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = type;
  return family;
}

/// Adds a value to a family of counters or gauges.
inline void add_value(prometheus::MetricFamily& family, Labels labels, double value) {
  prometheus::ClientMetric metric;
  metric.label = std::move(labels);
  const bool counter = family.type == prometheus::MetricType::Counter;
  (counter ? metric.counter.value : metric.gauge.value) = value;
  family.metric.push_back(std::move(metric));
}

inline double seconds_of(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

/// Adds a histogram to a family of them.
inline void add_latencies(prometheus::MetricFamily& family, Labels labels,
                          const Latencies& latencies) {
  prometheus::ClientMetric metric;
  metric.label = std::move(labels);
  std::uint64_t count = 0;
  for (std::size_t bucket = 0; bucket < latencies.counts.size(); ++bucket) {
    count += latencies.counts.at(bucket);
    const double bound = bucket < kLatencyBounds.size() ? seconds_of(kLatencyBounds.at(bucket))
                                                        : std::numeric_limits<double>::infinity();
    metric.histogram.bucket.push_back({.cumulative_count = count, .upper_bound = bound});
  }
  metric.histogram.sample_count = count;
  metric.histogram.sample_sum = seconds_of(latencies.sum);
  family.metric.push_back(std::move(metric));
}

}  // namespace baton
