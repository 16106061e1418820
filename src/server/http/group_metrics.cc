#include "server/http/group_metrics.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "core/stream/record_batch.h"
#include "server/http/families.h"
#include "server/session/ask_shard.h"
#include "server/session/limits.h"
#include "storage/log/partition_reader.h"

namespace baton {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily make_gauge(const char* name, const char* help) {
  MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = MetricType::Gauge;
  return family;
}

void add(MetricFamily& family, const GroupDescription& group, double value) {
  ClientMetric metric;
  metric.label = {{"stream", group.group.stream},
                  {"partition", std::to_string(group.group.partition)},
                  {"group", group.group.name}};
  metric.gauge.value = value;
  family.metric.push_back(std::move(metric));
}

/// Every group of a shard; empty if the shard has too much to do.
std::vector<GroupReport> ask(Broker& broker, std::size_t shard) {
  auto answer = ask_shard(broker, shard, ListGroupsCommand{});
  return answer.has_value() ? std::move(answer->groups) : std::vector<GroupReport>{};
}

/// The age of the oldest record that the group has not read.
Duration lag_time(const GroupReport& group, Instant now) {
  if (group.lag == 0 || group.partition == nullptr) return Duration{0};
  PartitionReader reader = group.partition->reader();
  const auto stored = group.description.offset.value_or(GroupOffset{0}).value;
  const Offset from = std::max(reader.first(), Offset{static_cast<std::int64_t>(stored)});
  const auto batches = reader.read(from, kBatchHeaderBytes);
  if (!batches.has_value() || batches->bytes.empty()) return Duration{0};
  const auto header = decode_batch_header(batches->bytes);
  if (!header.has_value()) return Duration{0};
  return std::max(Duration{0}, now - to_instant(header->first_timestamp));
}

}  // namespace

void add_group_metrics(Broker& broker, std::vector<MetricFamily>& families) {
  MetricFamily records =
      make_gauge("baton_group_lag_records", "Records that the group has yet to read.");
  MetricFamily age = make_gauge("baton_group_lag_seconds",
                                "Age of the oldest record that the group has yet to read.");
  MetricFamily generation = make_gauge("baton_group_generation", "Changes of the seat so far.");
  MetricFamily consumers = make_gauge("baton_group_consumers", "Consumers, active and waiting.");
  MetricFamily hidden =
      make_gauge("baton_groups_not_shown", "Groups that are not shown individually.");
  std::uint64_t shown = 0;
  std::uint64_t left_out = 0;
  for (std::size_t shard = 0; shard < broker.shards(); ++shard) {
    for (const GroupReport& group : ask(broker, shard)) {
      if (shown >= limits::kGroupsInMetrics) {
        ++left_out;
        continue;
      }
      ++shown;
      add(records, group.description, static_cast<double>(group.lag));
      add(age, group.description, seconds_of(lag_time(group, broker.now())));
      add(generation, group.description, static_cast<double>(group.description.generation.value));
      add(consumers, group.description, static_cast<double>(group.description.members.size()));
    }
  }
  ClientMetric metric;
  metric.gauge.value = static_cast<double>(left_out);
  hidden.metric.push_back(std::move(metric));
  for (MetricFamily* const family : {&records, &age, &generation, &consumers, &hidden}) {
    families.push_back(std::move(*family));
  }
}

MetricFamily handover_histogram(const std::vector<ShardStats>& shards) {
  MetricFamily family;
  family.name = "baton_group_handover_seconds";
  family.help = "From the step-down, or the loss of a consumer, to the next activation.";
  family.type = MetricType::Histogram;
  ClientMetric metric;
  std::uint64_t count = 0;
  Duration took{0};
  for (std::size_t bucket = 0; bucket <= kHandoverBounds.size(); ++bucket) {
    for (const ShardStats& shard : shards) count += shard.streams.groups.handovers.at(bucket);
    const double bound = bucket < kHandoverBounds.size() ? seconds_of(kHandoverBounds.at(bucket))
                                                         : std::numeric_limits<double>::infinity();
    metric.histogram.bucket.push_back({.cumulative_count = count, .upper_bound = bound});
  }
  for (const ShardStats& shard : shards) took += shard.streams.groups.handovers_took;
  metric.histogram.sample_count = count;
  metric.histogram.sample_sum = seconds_of(took);
  family.metric.push_back(std::move(metric));
  return family;
}

}  // namespace baton
