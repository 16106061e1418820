#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include <baton/bucket_handle.h>
#include <fmt/format.h>

#include "base/result.h"
#include "sdk/base/connection.h"
#include "sdk/base/pages.h"
#include "sdk/base/times.h"
#include "sdk/kv/kv_convert.h"
#include "sdk/kv/kv_watch_link.h"

namespace baton::client {

namespace {

using Stub = v1::KvService::Stub;
using Deadline = std::optional<std::chrono::milliseconds>;

template <class Method, class Request>
auto call(const Connection& connection, Method method, const Request& request,
          const Deadline& deadline) {
  return connection.call(*connection.kv, method, request, {.deadline = deadline});
}

}  // namespace

KvWatch::KvWatch(std::unique_ptr<KvWatchLink> link) : link_(std::move(link)) {}
KvWatch::KvWatch(KvWatch&&) noexcept = default;
KvWatch& KvWatch::operator=(KvWatch&&) noexcept = default;
KvWatch::~KvWatch() = default;

Status KvWatch::wait_until_started(std::chrono::milliseconds timeout) {
  return link_->wait_until_started(timeout);
}
std::uint64_t KvWatch::revision() const { return link_->revision(); }
void KvWatch::close(std::chrono::milliseconds timeout) { link_->close(timeout); }
void KvWatch::abandon() { link_->abandon(); }

Result<BucketInfo> Bucket::create(const BucketSettings& settings,
                                  const CallOptions& options) const {
  v1::CreateBucketRequest request;
  request.set_name(name_);
  to_proto(settings, *request.mutable_settings());
  BATON_TRY(const auto response,
            call(*connection_, &Stub::CreateBucket, request, options.deadline));
  return from_proto(response.bucket());
}

Status Bucket::drop(const CallOptions& options) const {
  v1::DeleteBucketRequest request;
  request.set_name(name_);
  BATON_TRY_STATUS(call(*connection_, &Stub::DeleteBucket, request, options.deadline));
  return {};
}

Result<std::vector<BucketInfo>> Bucket::list_all(const ConnectionPointer& connection,
                                                 std::string_view prefix,
                                                 const CallOptions& options) {
  v1::ListBucketsRequest request;
  request.set_prefix(std::string(prefix));
  std::vector<BucketInfo> buckets;
  BATON_TRY_STATUS(walk_pages(
      request,
      [&](const auto& page) {
        return call(*connection, &Stub::ListBuckets, page, options.deadline);
      },
      [&](const v1::ListBucketsResponse& page) {
        for (const v1::Bucket& bucket : page.buckets()) buckets.push_back(from_proto(bucket));
      }));
  return buckets;
}

Result<BucketInfo> Bucket::describe(const CallOptions& options) const {
  v1::DescribeBucketRequest request;
  request.set_name(name_);
  BATON_TRY(const auto response,
            call(*connection_, &Stub::DescribeBucket, request, options.deadline));
  return from_proto(response.bucket());
}

Result<std::optional<KvEntry>> Bucket::get(std::string_view key, const CallOptions& options) const {
  v1::GetKeyRequest request;
  request.set_bucket(name_);
  request.set_key(std::string(key));
  BATON_TRY(auto response, call(*connection_, &Stub::GetKey, request, options.deadline));
  if (!response.has_entry()) return std::optional<KvEntry>();
  return std::optional(take(*response.mutable_entry()));
}

Result<KvOutcome> Bucket::put(std::string_view key, std::string_view value,
                              const PutOptions& options) const {
  v1::PutKeyRequest request;
  request.set_bucket(name_);
  request.set_key(std::string(key));
  request.set_value(std::string(value));
  if (options.expected_revision) request.set_expected_revision(*options.expected_revision);
  if (options.ttl) {
    if (options.ttl->count() <= 0) {
      return Error{Errc::invalid_argument,
                   fmt::format("ttl is {} ms; it is at least 1", options.ttl->count())};
    }
    *request.mutable_ttl() = proto_duration(*options.ttl);
  }
  BATON_TRY(const auto response, call(*connection_, &Stub::PutKey, request, options.deadline));
  return from_proto(response);
}

Result<KvOutcome> Bucket::cas(std::string_view key, std::uint64_t expected, std::string_view value,
                              PutOptions options) const {
  options.expected_revision = expected;
  return put(key, value, options);
}

Result<KvOutcome> Bucket::remove(std::string_view key, const RemoveOptions& options) const {
  v1::DeleteKeyRequest request;
  request.set_bucket(name_);
  request.set_key(std::string(key));
  if (options.expected_revision) request.set_expected_revision(*options.expected_revision);
  BATON_TRY(const auto response, call(*connection_, &Stub::DeleteKey, request, options.deadline));
  return from_proto(response);
}

Result<KvPage> Bucket::list(const ListKeysOptions& options) const {
  v1::ListKeysRequest request;
  request.set_bucket(name_);
  request.set_prefix(options.prefix);
  request.set_page_token(options.after);
  request.set_page_size(static_cast<std::int32_t>(
      std::min<std::uint32_t>(options.keys_max, std::numeric_limits<std::int32_t>::max())));
  BATON_TRY(auto response, call(*connection_, &Stub::ListKeys, request, options.deadline));
  KvPage page;
  page.revision = response.revision();
  page.next = response.next_page_token();
  page.entries.reserve(static_cast<std::size_t>(response.entries_size()));
  for (v1::KvEntry& entry : *response.mutable_entries()) page.entries.push_back(take(entry));
  return page;
}

Result<KvWatch> Bucket::watch(KvWatchOptions options, KvWatchCallback callback) const {
  if (!options.prefix.empty() && !options.key.empty()) {
    return Error{Errc::invalid_argument, "a watch is of a prefix or of a key, not of both"};
  }
  if (!callback) return Error{Errc::invalid_argument, "a watch needs a callback"};
  BATON_TRY(const auto connection, make_connection(connection_->options));
  auto link =
      std::make_unique<KvWatchLink>(*connection, name_, std::move(options), std::move(callback));
  link->start();
  return KvWatch(std::move(link));
}

}  // namespace baton::client
