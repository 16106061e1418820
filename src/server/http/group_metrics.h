#pragma once

#include <vector>

#include <prometheus/metric_family.h>

#include "server/shard/broker.h"

namespace baton {

/// Adds the metrics of each group: its lag in records and in time, its generation, its consumers.
/// Asks every shard and may read the disk, so no thread of gRPC or of a shard may call it. At most
/// limits::kGroupsInMetrics groups are shown; one number says how many are left out.
void add_group_metrics(Broker& broker, std::vector<prometheus::MetricFamily>& families);

/// The duration of hand-overs, over all shards.
prometheus::MetricFamily handover_histogram(const std::vector<ShardStats>& shards);

}  // namespace baton
