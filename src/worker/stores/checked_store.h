#pragma once

#include <string>
#include <utility>

#include "worker/stores/deadline.h"
#include "worker/stores/kv_store.h"

namespace baton::coord {

/// Letters, digits, _ and -, in parts that dots separate, none of them empty.
Status check_key(std::string_view key);
/// The beginning of a key, or nothing at all.
Status check_prefix(std::string_view prefix);
/// For one who opens a store to read.
Error no_bucket(std::string_view name);

/// What the stores have in common: arguments are checked in one place.
class CheckedStore : public KvStore {
 public:
  Result<std::optional<StoredEntry>> get(std::string_view key, Duration timeout) final;
  Result<CasOutcome> cas(std::string_view key, KvRevision expected, std::string_view value,
                         std::optional<Duration> ttl, Duration timeout) final;
  Result<CasOutcome> remove(std::string_view key, KvRevision expected, Duration timeout) final;
  Result<std::vector<StoredEntry>> list(std::string_view prefix, Duration timeout) final;
  Result<std::unique_ptr<Watch>> watch(WatchOptions options, WatchCallback callback,
                                       Duration timeout) final;
  [[nodiscard]] std::string name() const final { return name_; }

 protected:
  explicit CheckedStore(std::string name) : name_(std::move(name)) {}

  struct Write {
    std::string key{};
    KvRevision expected = 0;
    std::string_view value{};
    std::optional<Duration> ttl{};
  };
  virtual Result<std::optional<StoredEntry>> do_get(const std::string& key,
                                                    const Deadline& deadline) = 0;
  virtual Result<CasOutcome> do_cas(const Write& write, const Deadline& deadline) = 0;
  /// `expected` is not 0.
  virtual Result<CasOutcome> do_remove(const std::string& key, KvRevision expected,
                                       const Deadline& deadline) = 0;
  virtual Result<std::vector<StoredEntry>> do_list(const std::string& prefix,
                                                   const Deadline& deadline) = 0;
  virtual Result<std::unique_ptr<Watch>> do_watch(WatchOptions options, WatchCallback callback,
                                                  const Deadline& deadline) = 0;

 private:
  std::string name_;
};

}  // namespace baton::coord
