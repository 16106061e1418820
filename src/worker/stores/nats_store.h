#pragma once

#include <memory>

#include "base/result.h"
#include "worker/stores/deadline.h"
#include "worker/stores/kv_store.h"
#include "worker/stores/store_url.h"

namespace baton::coord {

/// A bucket of NATS JetStream. Reads go to the leader of the bucket, writes are conditional on the
/// last sequence number of the key's subject.
///
/// A time-to-live is kept by servers from 2.11 on, in whole seconds; older ones (Debian's 2.9 among
/// them) have none, and keep the key.
Result<std::unique_ptr<KvStore>> open_nats_store(const StoreUrl& url, const StoreOptions& options,
                                                 const Deadline& deadline);

}  // namespace baton::coord
