#pragma once

#include "worker/stores/store_kind.h"

namespace baton::coord {

/// Keys of etcd (3.4 or newer) under "<bucket>/", by its gRPC API. A key's revision is its
/// mod_revision. Never etcd's leases: they would end with etcd's clock and not with ours, so a
/// time-to-live is not kept, and the key stays until somebody removes it.
inline constexpr StoreKind kEtcdKind{
    .name = "etcd", .schemes = {{{"etcd"}, {"etcds", true}}}, .option = "BATON_WITH_ETCD"};
extern const StoreAdapter kEtcdAdapter;

}  // namespace baton::coord
