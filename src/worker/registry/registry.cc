#include "worker/registry/registry.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/secure/pem.h"
#include "base/switches.h"
#include "worker/broker/kind.h"
#include "worker/etcd/kind.h"
#include "worker/nats/kind.h"
#include "worker/stores/deadline.h"

namespace baton::coord {
namespace {

/// Every kind of store. A new one is a folder with a kind.h, and a line here.
constexpr std::array kStores = std::to_array<StoreRow>({
    {&kBrokerKind, &kBrokerAdapter},
    {&kNatsKind, BATON_NATS(&kNatsAdapter)},
    {&kEtcdKind, BATON_ETCD(&kEtcdAdapter)},
});

const StoreAdapter& adapter_of(const StoreUrl& url) {
  const auto* row = std::ranges::find(kStores, url.kind, &StoreRow::kind);
  BATON_ASSERT(row != kStores.end() && row->adapter != nullptr);
  return *row->adapter;
}

}  // namespace

Result<StoreUrl> parse_store_url(std::string_view text) { return parse_store_url(text, kStores); }

Result<std::unique_ptr<KvStore>> open_store(std::string_view url, const StoreOptions& options) {
  BATON_TRY(StoreUrl parsed, parse_store_url(url));
  const StoreAdapter& adapter = adapter_of(parsed);
  if (options.security.has_login() && adapter.check_login != nullptr) {
    BATON_TRY_STATUS(adapter.check_login(options.security));
  }
  // A file asks for TLS as the scheme does.
  parsed.tls = parsed.tls || options.security.tls.has_value();
  if (parsed.kind->scheme(parsed.tls) == nullptr) {
    return Error{Errc::invalid_argument, fmt::format("TLS is not for {}", parsed.kind->name)};
  }
  StoreOptions complete = options;
  if (parsed.tls && !complete.security.tls) complete.security.tls.emplace();
  if (complete.security.tls) BATON_TRY_STATUS(secure::read_pem(*complete.security.tls));
  const Deadline deadline(options.connect_timeout);
  BATON_TRY(std::unique_ptr<KvStore> store, adapter.open(parsed, complete, deadline));
  if (options.to_read) return store;
  BATON_TRY_STATUS(self_test(*store, deadline.left(), options.value_bytes));
  return store;
}

}  // namespace baton::coord
