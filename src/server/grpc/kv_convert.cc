#include "server/grpc/kv_convert.h"

#include <utility>

#include <fmt/format.h>

#include "core/kv/types.h"
#include "server/grpc/status.h"
#include "server/grpc/times.h"
#include "server/session/checks.h"
#include "server/session/limits.h"

namespace baton {
namespace {

KvSettings convert_settings(const v1::BucketSettings& in) {
  KvSettings out;
  if (in.has_value_bytes_max()) out.value_bytes_max = in.value_bytes_max();
  if (in.has_keys_max()) out.keys_max = in.keys_max();
  if (in.has_history_changes_max()) out.history_changes_max = in.history_changes_max();
  if (in.has_history_bytes_max()) out.history_bytes_max = in.history_bytes_max();
  return out;
}

template <class Request>
std::optional<Revision> expected(const Request& request) {
  if (!request.has_expected_revision()) return std::nullopt;
  return Revision{request.expected_revision()};
}

/// The name of the list that its tokens are valid for.
std::string list_of_keys(const std::string& bucket, const std::string& prefix) {
  return fmt::format("keys {} {}", bucket, prefix);
}

Error mismatch(const KvEntryRef& current) {
  if (current == nullptr) return {Errc::revision_mismatch, "there is no such key"};
  return {Errc::revision_mismatch,
          fmt::format("the key is at revision {}", current->revision.value)};
}

}  // namespace

Result<CreateBucketCommand> convert(const v1::CreateBucketRequest& request) {
  CreateBucketCommand out;
  out.bucket = request.name();
  out.settings = convert_settings(request.settings());
  BATON_TRY_STATUS(check(out));
  return out;
}

Result<DeleteBucketCommand> convert(const v1::DeleteBucketRequest& request) {
  DeleteBucketCommand out{.bucket = request.name(), .error = {}};
  BATON_TRY_STATUS(check(out));
  return out;
}

Result<DescribeBucketCommand> convert(const v1::DescribeBucketRequest& request) {
  DescribeBucketCommand out{.bucket = request.name(), .error = {}, .description = {}};
  BATON_TRY_STATUS(check(out));
  return out;
}

Result<KvGetCommand> convert(const v1::GetKeyRequest& request) {
  KvGetCommand out{.bucket = request.bucket(), .key = request.key(), .error = {}, .entry = nullptr};
  BATON_TRY_STATUS(check(out));
  return out;
}

Result<KvPutCommand> convert(v1::PutKeyRequest& request) {
  KvPutCommand out;
  if (request.has_ttl()) {
    BATON_TRY(out.request.ttl, convert_duration("ttl", request.ttl(), limits::kKvTtlMax));
  }
  out.request.bucket = request.bucket();
  out.request.key = request.key();
  out.request.expected = expected(request);
  out.request.value = std::move(*request.mutable_value());
  BATON_TRY_STATUS(check(out));
  return out;
}

Result<KvRemoveCommand> convert(const v1::DeleteKeyRequest& request) {
  KvRemoveCommand out;
  out.request = {.bucket = request.bucket(), .key = request.key(), .expected = expected(request)};
  BATON_TRY_STATUS(check(out));
  return out;
}

Result<Paged<ListBucketsCommand>> convert(const v1::ListBucketsRequest& request) {
  Paged<ListBucketsCommand> out;
  out.wanted.bucket = request.prefix();
  BATON_TRY_STATUS(check(out.wanted));
  BATON_TRY(out.page,
            read_page("buckets " + request.prefix(), request.page_size(), request.page_token()));
  out.wanted.after = out.page.after;
  out.wanted.buckets_max = out.page.items_max;
  return out;
}

Result<KvListCommand> convert(const v1::ListKeysRequest& request) {
  BATON_TRY(Page page, read_page(list_of_keys(request.bucket(), request.prefix()),
                                 request.page_size(), request.page_token()));
  KvListCommand out;
  out.request = {.bucket = request.bucket(),
                 .prefix = request.prefix(),
                 .after = std::move(page.after),
                 .entries_max = page.items_max,
                 .bytes_max = limits::kPageBytes};
  BATON_TRY_STATUS(check(out));
  return out;
}

Result<WatchWanted> convert(const v1::WatchKeysRequest::Start& start) {
  WatchWanted out;
  out.bucket = start.bucket();
  if (start.has_key()) {
    out.filter = {.text = start.key(), .exact = true};
  } else {
    out.filter = {.text = start.prefix(), .exact = false};
  }
  if (start.has_resume_after()) out.after = Revision{start.resume_after()};
  out.session = start.session();
  BATON_TRY_STATUS(check(out));
  return out;
}

void describe(const KvBucketDescription& in, v1::Bucket& out) {
  out.set_name(in.name);
  out.set_id(in.id.value);
  v1::BucketSettings& settings = *out.mutable_settings();
  settings.set_value_bytes_max(in.settings.value_bytes_max);
  settings.set_keys_max(in.settings.keys_max);
  settings.set_history_changes_max(in.settings.history_changes_max);
  settings.set_history_bytes_max(in.settings.history_bytes_max);
  *out.mutable_created_at() = to_proto(in.created_at);
  out.set_revision(in.revision.value);
  out.set_history_floor(in.history_floor.value);
  out.set_keys(in.keys);
  out.set_bytes(in.bytes);
  out.set_watches(in.watches);
}

void show(const KvEntry& in, v1::KvEntry& out) {
  out.set_key(in.key);
  out.set_value(in.value);
  out.set_revision(in.revision.value);
  out.set_created_revision(in.created_revision.value);
  out.set_version(in.version);
  if (in.expires_at != Instant::never()) *out.mutable_expires_at() = to_proto(in.expires_at);
}

void reply(const KvListCommand& done, v1::ListKeysResponse& out) {
  for (const KvEntryRef& entry : done.page.entries) show(*entry, *out.add_entries());
  out.set_revision(done.page.revision.value);
  if (done.page.next.empty()) return;
  const std::string list = list_of_keys(done.request.bucket, done.request.prefix);
  out.set_next_page_token(page_token(list, done.page.next));
}

void reply(const KvOutcome& in, v1::PutKeyResponse& out) {
  out.set_revision(in.revision.value);
  if (in.verdict != KvOutcome::Verdict::refused) return;
  *out.mutable_error() = to_proto(mismatch(in.current));
  if (in.current != nullptr) show(*in.current, *out.mutable_current());
}

void reply(const KvOutcome& in, v1::DeleteKeyResponse& out) {
  out.set_revision(in.revision.value);
  out.set_deleted(in.verdict == KvOutcome::Verdict::done);
  if (in.verdict != KvOutcome::Verdict::refused) return;
  *out.mutable_error() = to_proto(mismatch(in.current));
  if (in.current != nullptr) show(*in.current, *out.mutable_current());
}

}  // namespace baton
