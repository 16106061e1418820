// Every request of the Kv service with arbitrary bytes: the conversion returns a command within the
// limits, or an error with a text.

#include <cstddef>
#include <cstdint>
#include <string>

#include <baton/v1/kv.pb.h>

#include "base/assert.h"
#include "server/grpc/convert_fuzz.h"
#include "server/grpc/kv_convert.h"
#include "server/session/limits.h"

namespace {

void check_names(const std::string& bucket, const std::string& key) {
  BATON_ASSERT(baton::validate_bucket_name(bucket).has_value());
  BATON_ASSERT(baton::validate_kv_key(key).has_value());
}

void check(const baton::KvGetCommand& command) { check_names(command.bucket, command.key); }
void check(const baton::KvPutCommand& command) {
  check_names(command.request.bucket, command.request.key);
  BATON_ASSERT(command.request.value.size() <= baton::limits::kKvValueBytesMax);
  if (command.request.ttl.has_value()) {
    BATON_ASSERT(*command.request.ttl >= baton::limits::kKvTtlMin &&
                 *command.request.ttl <= baton::limits::kKvTtlMax);
  }
}
void check(const baton::KvRemoveCommand& command) {
  check_names(command.request.bucket, command.request.key);
  BATON_ASSERT(command.request.expected != baton::Revision{0});
}
void check(const baton::KvListCommand& command) {
  BATON_ASSERT(baton::validate_bucket_name(command.request.bucket).has_value());
  BATON_ASSERT(command.request.prefix.size() <= baton::limits::kKvKeyBytes);
  BATON_ASSERT(command.request.entries_max >= 1 &&
               command.request.entries_max <= baton::limits::kPageItems);
}
void check(const baton::WatchWanted& wanted) {
  BATON_ASSERT(baton::validate_bucket_name(wanted.bucket).has_value());
  BATON_ASSERT(wanted.filter.text.size() <= baton::limits::kKvKeyBytes);
  BATON_ASSERT(!wanted.filter.exact || !wanted.filter.text.empty());
  BATON_ASSERT(wanted.session.size() <= baton::limits::kKvKeyBytes);
}
void check(const baton::CreateBucketCommand& command) {
  BATON_ASSERT(baton::validate_bucket_name(command.bucket).has_value());
  BATON_ASSERT(baton::validate(command.settings).has_value());
}
template <class Command>
void check(const baton::Paged<Command>& list) {
  baton::check_page(list);
}
template <class Command>
void check(const Command& command) {
  BATON_ASSERT(baton::validate_bucket_name(command.bucket).has_value());
}

template <class Request>
void try_request(const std::string& bytes) {
  Request request;
  if (!request.ParseFromString(bytes)) return;
  const auto result = baton::convert(request);
  baton::check_result(result, [](const auto& converted) { check(converted); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  namespace v1 = baton::v1;
  const std::string input(reinterpret_cast<const char*>(bytes), size);  // NOLINT
  try_request<v1::CreateBucketRequest>(input);
  try_request<v1::DeleteBucketRequest>(input);
  try_request<v1::DescribeBucketRequest>(input);
  try_request<v1::ListBucketsRequest>(input);
  try_request<v1::GetKeyRequest>(input);
  try_request<v1::PutKeyRequest>(input);
  try_request<v1::DeleteKeyRequest>(input);
  try_request<v1::ListKeysRequest>(input);
  v1::WatchKeysRequest watch;
  if (watch.ParseFromString(input)) {
    try_request<v1::WatchKeysRequest::Start>(watch.start().SerializeAsString());
  }
  return 0;
}
