#include "worker/stores/checked_store.h"

#include <fmt/format.h>

#include "base/names.h"
#include "worker/stores/limits.h"

namespace baton::coord {
namespace {

bool is_key_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

Status check_letters(std::string_view field, std::string_view text) {
  if (text.size() > limits::kKeyBytes) return too_long(field, text.size(), limits::kKeyBytes);
  char before = '.';
  for (const char c : text) {
    if (!is_key_letter(c) && (c != '.' || before == '.')) {
      return Error{Errc::invalid_argument,
                   fmt::format("{} \"{}\" is not of letters, digits, _ and -, with single dots",
                               field, text)};
    }
    before = c;
  }
  return {};
}

}  // namespace

Status check_key(std::string_view key) {
  BATON_TRY_STATUS(check_letters("key", key));
  if (key.empty()) return Error{Errc::invalid_argument, "the key is empty"};
  if (key.ends_with('.')) {
    return Error{Errc::invalid_argument, fmt::format("key \"{}\" ends with a dot", key)};
  }
  return {};
}

Error no_bucket(std::string_view name) {
  return {Errc::bucket_not_found, fmt::format("there is no bucket {}", name)};
}

Status check_prefix(std::string_view prefix) { return check_letters("prefix", prefix); }

Result<std::optional<StoredEntry>> CheckedStore::get(std::string_view key, Duration timeout) {
  BATON_TRY_STATUS(check_key(key));
  return do_get(std::string(key), Deadline(timeout));
}

Result<CasOutcome> CheckedStore::cas(std::string_view key, KvRevision expected,
                                     std::string_view value, std::optional<Duration> ttl,
                                     Duration timeout) {
  BATON_TRY_STATUS(check_key(key));
  if (ttl && ttl->count() <= 0) {
    return Error{Errc::invalid_argument, "a time-to-live is longer than nothing"};
  }
  return do_cas({.key = std::string(key), .expected = expected, .value = value, .ttl = ttl},
                Deadline(timeout));
}

Result<CasOutcome> CheckedStore::remove(std::string_view key, KvRevision expected,
                                        Duration timeout) {
  BATON_TRY_STATUS(check_key(key));
  if (expected == 0) {
    // Not a refusal: nobody who means this can have meant it.
    return Error{Errc::invalid_argument, "a key that is not there cannot be removed"};
  }
  return do_remove(std::string(key), expected, Deadline(timeout));
}

Result<std::vector<StoredEntry>> CheckedStore::list(std::string_view prefix, Duration timeout) {
  BATON_TRY_STATUS(check_prefix(prefix));
  return do_list(std::string(prefix), Deadline(timeout));
}

Result<std::unique_ptr<Watch>> CheckedStore::watch(WatchOptions options, WatchCallback callback,
                                                   Duration timeout) {
  BATON_TRY_STATUS(check_prefix(options.prefix));
  if (!options.session.empty()) BATON_TRY_STATUS(check_key(options.session));
  return do_watch(std::move(options), std::move(callback), Deadline(timeout));
}

}  // namespace baton::coord
