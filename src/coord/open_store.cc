#include "coord/broker_store.h"
#include "coord/deadline.h"
#include "coord/etcd_store.h"
#include "coord/kv_store.h"
#include "coord/nats_store.h"
#include "coord/store_url.h"

namespace baton::coord {
namespace {

Result<std::unique_ptr<KvStore>> open(const StoreUrl& url, const StoreOptions& options,
                                      const Deadline& deadline) {
  switch (url.kind) {
    case StoreUrl::Kind::broker: return open_broker_store(url, options, deadline);
    case StoreUrl::Kind::nats: return open_nats_store(url, options, deadline);
    case StoreUrl::Kind::etcd: return open_etcd_store(url, deadline);
  }
  return Error{Errc::internal, "a kind of store that nobody opens"};
}

}  // namespace

Result<std::unique_ptr<KvStore>> open_store(std::string_view url, const StoreOptions& options) {
  BATON_TRY(const StoreUrl parsed, parse_store_url(url));
  const Deadline deadline(options.connect_timeout);
  BATON_TRY(std::unique_ptr<KvStore> store, open(parsed, options, deadline));
  if (options.to_read) return store;
  BATON_TRY_STATUS(self_test(*store, deadline.left(), options.value_bytes));
  return store;
}

}  // namespace baton::coord
