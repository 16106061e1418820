#pragma once

#include <memory>

#include "base/result.h"
#include "worker/stores/deadline.h"
#include "worker/stores/kv_store.h"
#include "worker/stores/store_url.h"

namespace baton::coord {

/// Keys of etcd (3.4 or newer) under "<bucket>/", by its gRPC API. A key's revision is its
/// mod_revision. Never etcd's leases: they would end with etcd's clock and not with ours, so a
/// time-to-live is not kept, and the key stays until somebody removes it.
Result<std::unique_ptr<KvStore>> open_etcd_store(const StoreUrl& url, const StoreOptions& options,
                                                 const Deadline& deadline);

}  // namespace baton::coord
