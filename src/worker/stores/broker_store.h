#pragma once

#include <memory>

#include "base/result.h"
#include "worker/stores/deadline.h"
#include "worker/stores/kv_store.h"
#include "worker/stores/store_url.h"

namespace baton::coord {

/// A bucket of a Baton broker, through the SDK. The only store that tells the other watches when
/// the connection behind a session breaks.
Result<std::unique_ptr<KvStore>> open_broker_store(const StoreUrl& url, const StoreOptions& options,
                                                   const Deadline& deadline);

}  // namespace baton::coord
