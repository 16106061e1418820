#pragma once

#include "worker/stores/store_kind.h"

namespace baton::coord {

/// A bucket of NATS JetStream. Reads go to the leader of the bucket, writes are conditional on the
/// last sequence number of the key's subject.
///
/// A time-to-live is kept by servers from 2.11 on, in whole seconds; older ones (Debian's 2.9 among
/// them) have none, and keep the key.
inline constexpr StoreKind kNatsKind{
    .name = "nats",
    .schemes = {{{"nats"}, {"natss", true}, {"tls", true}}},  // tls:// as NATS has it.
    .option = "BATON_WITH_NATS",
    .takes_replicas = true,
    .slow_failover = true};
extern const StoreAdapter kNatsAdapter;

}  // namespace baton::coord
