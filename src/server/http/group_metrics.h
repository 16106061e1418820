#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "server/shard/broker.h"

namespace baton {

/// Adds what is told of each group: its lag in records and in time, its generation, its consumers.
/// Asks every shard and may read the disk, so no thread of gRPC or of a shard calls it. Of more
/// than limits::kGroupsInMetrics groups the rest is left out, which one number says.
void add_group_metrics(Broker& broker, std::vector<prometheus::MetricFamily>& families);

/// How long hand-overs took, of all shards together.
prometheus::MetricFamily handover_histogram(const std::vector<ShardStats>& shards);

}  // namespace baton
