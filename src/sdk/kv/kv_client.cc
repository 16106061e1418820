#include <baton/kv_client.h>

#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "sdk/base/channel.h"
#include "sdk/base/errors.h"
#include "sdk/kv/kv_call.h"
#include "sdk/kv/kv_convert.h"
#include "sdk/kv/kv_watch_link.h"

namespace baton::client {

struct KvClient::State : KvCalls {
  using KvCalls::KvCalls;
};

namespace {

using Stub = KvStub;

std::string text(std::string_view view) { return std::string(view); }

}  // namespace

KvWatch::KvWatch(std::unique_ptr<KvWatchLink> link) : link_(std::move(link)) {}
KvWatch::~KvWatch() = default;

Status KvWatch::wait_until_started(std::chrono::milliseconds timeout) {
  return link_->wait_until_started(timeout);
}
std::uint64_t KvWatch::revision() const { return link_->revision(); }
void KvWatch::close(std::chrono::milliseconds timeout) { link_->close(timeout); }
void KvWatch::abandon() { link_->abandon(); }

KvClient::KvClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
KvClient::KvClient(KvClient&&) noexcept = default;
KvClient& KvClient::operator=(KvClient&&) noexcept = default;
KvClient::~KvClient() = default;

Result<KvClient> KvClient::connect(ConnectionOptions options) {
  BATON_TRY(auto channel, make_channel(options));
  return KvClient(std::make_unique<State>(std::move(options), std::move(channel)));
}

Status KvClient::wait_until_ready(std::chrono::milliseconds timeout) {
  if (state_->channel->WaitForConnected(std::chrono::system_clock::now() + timeout)) return {};
  return Error{Errc::unavailable, fmt::format("cannot reach the broker at {} within {} ms",
                                              state_->options.address, timeout.count())};
}

Result<BucketInfo> KvClient::create_bucket(std::string_view name, const BucketSettings& settings,
                                           const CallOptions& options) {
  v1::CreateBucketRequest request;
  request.set_name(text(name));
  to_proto(settings, *request.mutable_settings());
  BATON_TRY(const auto response, state_->call(&Stub::CreateBucket, request, options.deadline));
  return from_proto(response.bucket());
}

Status KvClient::delete_bucket(std::string_view name, const CallOptions& options) {
  v1::DeleteBucketRequest request;
  request.set_name(text(name));
  BATON_TRY_STATUS(state_->call(&Stub::DeleteBucket, request, options.deadline));
  return {};
}

Result<std::vector<BucketInfo>> KvClient::list_buckets(std::string_view prefix,
                                                       const CallOptions& options) {
  v1::ListBucketsRequest request;
  request.set_prefix(text(prefix));
  BATON_TRY(const auto response, state_->call(&Stub::ListBuckets, request, options.deadline));
  std::vector<BucketInfo> buckets;
  for (const v1::Bucket& bucket : response.buckets()) buckets.push_back(from_proto(bucket));
  return buckets;
}

Result<BucketInfo> KvClient::describe_bucket(std::string_view name, const CallOptions& options) {
  v1::DescribeBucketRequest request;
  request.set_name(text(name));
  BATON_TRY(const auto response, state_->call(&Stub::DescribeBucket, request, options.deadline));
  return from_proto(response.bucket());
}

Result<std::optional<KvEntry>> KvClient::get(std::string_view bucket, std::string_view key,
                                             const CallOptions& options) {
  v1::KvGetRequest request;
  request.set_bucket(text(bucket));
  request.set_key(text(key));
  BATON_TRY(auto response, state_->call(&Stub::Get, request, options.deadline));
  if (!response.has_entry()) return std::optional<KvEntry>();
  return std::optional(take(*response.mutable_entry()));
}

Result<KvOutcome> KvClient::put(std::string_view bucket, std::string_view key,
                                std::string_view value, const PutOptions& options) {
  v1::KvPutRequest request;
  request.set_bucket(text(bucket));
  request.set_key(text(key));
  request.set_value(text(value));
  if (options.expected_revision) request.set_expected_revision(*options.expected_revision);
  if (options.ttl) {
    if (options.ttl->count() <= 0) {
      return Error{Errc::invalid_argument,
                   fmt::format("ttl is {} ms; it is at least 1", options.ttl->count())};
    }
    request.set_ttl_ms(static_cast<std::uint64_t>(options.ttl->count()));
  }
  BATON_TRY(const auto response, state_->call(&Stub::Put, request, options.deadline));
  return from_proto(response);
}

Result<KvOutcome> KvClient::cas(std::string_view bucket, std::string_view key,
                                std::uint64_t expected, std::string_view value,
                                PutOptions options) {
  options.expected_revision = expected;
  return put(bucket, key, value, options);
}

Result<KvOutcome> KvClient::remove(std::string_view bucket, std::string_view key,
                                   const RemoveOptions& options) {
  v1::KvDeleteRequest request;
  request.set_bucket(text(bucket));
  request.set_key(text(key));
  if (options.expected_revision) request.set_expected_revision(*options.expected_revision);
  BATON_TRY(const auto response, state_->call(&Stub::Delete, request, options.deadline));
  return from_proto(response);
}

Result<KvPage> KvClient::list(std::string_view bucket, const ListKeysOptions& options) {
  v1::KvListRequest request;
  request.set_bucket(text(bucket));
  request.set_prefix(options.prefix);
  request.set_after(options.after);
  request.set_max(options.keys_max);
  BATON_TRY(auto response, state_->call(&Stub::List, request, options.deadline));
  KvPage page;
  page.revision = response.revision();
  page.next = response.next();
  page.entries.reserve(static_cast<std::size_t>(response.entries_size()));
  for (v1::KvEntry& entry : *response.mutable_entries()) page.entries.push_back(take(entry));
  return page;
}

Result<std::unique_ptr<KvWatch>> KvClient::watch(KvWatchOptions options, KvWatchCallback callback) {
  if (!options.prefix.empty() && !options.key.empty()) {
    return Error{Errc::invalid_argument, "a watch is of a prefix or of a key, not of both"};
  }
  if (!callback) return Error{Errc::invalid_argument, "a watch needs a callback"};
  BATON_TRY(const auto channel, make_channel(state_->options));
  auto link = std::make_unique<KvWatchLink>(state_->options, std::move(options),
                                            std::move(callback), channel);
  link->start();
  return std::unique_ptr<KvWatch>(new KvWatch(std::move(link)));
}

}  // namespace baton::client
