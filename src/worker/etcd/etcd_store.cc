#include <utility>

#include "base/assert.h"
#include "worker/etcd/etcd_link.h"
#include "worker/etcd/etcd_watch.h"
#include "worker/etcd/kind.h"
#include "worker/stores/checked_store.h"

namespace baton::coord {
namespace {

namespace pb = etcdserverpb;

/// The first key after all that begin with `prefix`.
std::string end_of(std::string prefix) {
  // Keys are of ASCII letters: adding one overflows nothing.
  BATON_ASSERT(!prefix.empty() && prefix.back() < '\x7f');
  ++prefix.back();
  return prefix;
}

class EtcdStore final : public CheckedStore {
 public:
  EtcdStore(std::string name, std::string bucket, std::shared_ptr<EtcdLink> link)
      : CheckedStore(std::move(name)), keys_(std::move(bucket) + "/"), link_(std::move(link)) {}

  [[nodiscard]] std::uint64_t requests() const override { return link_->requests(); }

 protected:
  Result<std::optional<StoredEntry>> do_get(const std::string& key,
                                            const Deadline& deadline) override {
    pb::RangeRequest request;
    request.set_key(keys_ + key);
    BATON_TRY(pb::RangeResponse found, link_->read(&pb::KV::Stub::Range, request, deadline));
    if (found.kvs().empty()) return std::nullopt;
    return entry_of(*found.mutable_kvs(0));
  }

  Result<CasOutcome> do_cas(const Write& write, const Deadline& deadline) override {
    pb::TxnRequest request = if_at(write.key, write.expected);
    auto& put = *request.add_success()->mutable_request_put();
    put.set_key(keys_ + write.key);
    put.set_value(std::string(write.value));
    BATON_TRY(const pb::TxnResponse done, link_->call(&pb::KV::Stub::Txn, request, deadline));
    if (!done.succeeded()) return CasOutcome{};
    return CasOutcome{.done = true, .revision = static_cast<KvRevision>(done.header().revision())};
  }

  Result<CasOutcome> do_remove(const std::string& key, KvRevision expected,
                               const Deadline& deadline) override {
    pb::TxnRequest request = if_at(key, expected);
    request.add_success()->mutable_request_delete_range()->set_key(keys_ + key);
    BATON_TRY(const pb::TxnResponse done, link_->call(&pb::KV::Stub::Txn, request, deadline));
    return CasOutcome{.done = done.succeeded()};
  }

  Result<std::vector<StoredEntry>> do_list(const std::string& prefix,
                                           const Deadline& deadline) override {
    BATON_TRY(pb::RangeResponse found,
              link_->read(&pb::KV::Stub::Range, all_under(prefix), deadline));
    std::vector<StoredEntry> entries;
    for (mvccpb::KeyValue& each : *found.mutable_kvs()) entries.push_back(entry_of(each));
    return entries;
  }

  Result<std::unique_ptr<Watch>> do_watch(WatchOptions options, WatchCallback callback,
                                          const Deadline& deadline) override {
    const pb::RangeRequest range = all_under(options.prefix);
    BATON_TRY(pb::RangeResponse found, link_->read(&pb::KV::Stub::Range, range, deadline));
    BATON_TRY(const EtcdLink::Member* member, link_->reach(deadline));
    link_->count_request();
    return std::make_unique<EtcdWatch>(link_, *member,
                                       EtcdSnapshot{.keys = keys_,
                                                    .key = range.key(),
                                                    .range_end = range.range_end(),
                                                    .found = std::move(found)},
                                       std::move(callback));
  }

 private:
  [[nodiscard]] pb::RangeRequest all_under(const std::string& prefix) const {
    pb::RangeRequest request;
    request.set_key(keys_ + prefix);
    request.set_range_end(end_of(keys_ + prefix));
    return request;
  }

  /// A transaction that happens if the key is at `expected`; etcd gives a key that is not there the
  /// revision 0.
  [[nodiscard]] pb::TxnRequest if_at(const std::string& key, KvRevision expected) const {
    pb::TxnRequest request;
    auto& compare = *request.add_compare();
    compare.set_key(keys_ + key);
    compare.set_target(pb::Compare::MOD);
    compare.set_result(pb::Compare::EQUAL);
    compare.set_mod_revision(static_cast<std::int64_t>(expected));
    return request;
  }

  [[nodiscard]] StoredEntry entry_of(mvccpb::KeyValue& found) const {
    return {.key = found.key().substr(keys_.size()),
            .value = std::move(*found.mutable_value()),
            .revision = static_cast<KvRevision>(found.mod_revision())};
  }

  std::string keys_;  // "<bucket>/", what every key begins with.
  std::shared_ptr<EtcdLink> link_;
};

Result<std::unique_ptr<KvStore>> open(const StoreUrl& url, const StoreOptions& options,
                                      const Deadline& deadline) {
  BATON_TRY(auto link, EtcdLink::make(url.endpoints, options.security));
  const auto reached = link->reach(deadline, EtcdLink::Patience::fail_at_once);
  if (!reached) return link->explain(reached.error());
  BATON_TRY_STATUS(link->log_in(deadline));
  return std::make_unique<EtcdStore>(to_string(url), url.bucket, std::move(link));
}

Status check_login(const client::SecurityOptions& security) {
  if (!security.user.empty()) return {};
  return Error{Errc::invalid_argument, "etcd takes a user and a password, and no other login"};
}

}  // namespace

const StoreAdapter kEtcdAdapter{.check_login = check_login, .open = open};

}  // namespace baton::coord
