#include "base/secure/pem.h"
#include "worker/stores/broker_store.h"
#include "worker/stores/deadline.h"
#include "worker/stores/etcd_store.h"
#include "worker/stores/kv_store.h"
#include "worker/stores/nats_store.h"
#include "worker/stores/store_url.h"

namespace baton::coord {
namespace {

Result<std::unique_ptr<KvStore>> open(const StoreUrl& url, const StoreOptions& options,
                                      const Deadline& deadline) {
  switch (url.kind) {
    case StoreUrl::Kind::broker: return open_broker_store(url, options, deadline);
    case StoreUrl::Kind::nats: return open_nats_store(url, options, deadline);
    case StoreUrl::Kind::etcd: return open_etcd_store(url, options, deadline);
  }
  return Error{Errc::internal, "a kind of store that nobody opens"};
}

Status check_login(const StoreUrl& url, const client::SecurityOptions& security) {
  if (!security.has_login() || url.kind == StoreUrl::Kind::nats) return {};
  if (url.kind == StoreUrl::Kind::broker) {
    return Error{Errc::invalid_argument,
                 "a Baton broker has no logins: it knows clients by their certificates"};
  }
  if (!security.user.empty()) return {};
  return Error{Errc::invalid_argument, "etcd takes a user and a password, and no other login"};
}

}  // namespace

Result<std::unique_ptr<KvStore>> open_store(std::string_view url, const StoreOptions& options) {
  BATON_TRY(StoreUrl parsed, parse_store_url(url));
  BATON_TRY_STATUS(check_login(parsed, options.security));
  // A file asks for TLS as the scheme does.
  parsed.tls = parsed.tls || options.security.tls.has_value();
  StoreOptions complete = options;
  if (parsed.tls && !complete.security.tls) complete.security.tls.emplace();
  if (complete.security.tls) BATON_TRY_STATUS(secure::read_pem(*complete.security.tls));
  const Deadline deadline(options.connect_timeout);
  BATON_TRY(std::unique_ptr<KvStore> store, open(parsed, complete, deadline));
  if (options.to_read) return store;
  BATON_TRY_STATUS(self_test(*store, deadline.left(), options.value_bytes));
  return store;
}

}  // namespace baton::coord
