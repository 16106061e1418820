#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "worker/stores/kv_store.h"
#include "worker/stores/store_kind.h"

namespace baton::coord {

/// Fails with invalid_argument, naming the part that is wrong.
Result<StoreUrl> parse_store_url(std::string_view text);

/// Opens baton://HOST:PORT[/BUCKET], nats://HOST:PORT[,HOST:PORT...][/BUCKET][?replicas=N] or
/// etcd://HOST:PORT[,HOST:PORT...][/BUCKET], with TLS as batons://, natss:// or etcds://; the
/// bucket is `baton-leases` unless named, made on first use, history 1. Then runs the self-test.
///
/// invalid_argument: the URL, a file or the login is wrong, and waiting will not help.
Result<std::unique_ptr<KvStore>> open_store(std::string_view url, const StoreOptions& options);

}  // namespace baton::coord
