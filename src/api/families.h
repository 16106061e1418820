#pragma once

#include <prometheus/metric_family.h>

#include <chrono>
#include <utility>
#include <vector>

#include "base/time.h"

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

}  // namespace baton
