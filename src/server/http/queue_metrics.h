#pragma once

#include "server/http/families.h"
#include "server/shard/broker.h"

namespace baton {

/// Adds the metrics of each queue: its messages by state, the age of the oldest, dead letters. Asks
/// every shard, so no thread of gRPC or of a shard may call it. At most limits::kQueuesInMetrics
/// queues are shown; one number says how many are left out.
void add_queue_metrics(Broker& broker, Families& families);

}  // namespace baton
