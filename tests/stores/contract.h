#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stores/server.h"
#include "worker/registry/registry.h"

/// What the tests of every store share.
namespace baton::stores {

using coord::CasOutcome;
using coord::KvRevision;
using coord::KvStore;
using coord::StoredEntry;
using coord::WatchEvent;
using Kinds = WatchEvent::Kind;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Factor by which a sanitizer slows things down.
#if defined(__SANITIZE_THREAD__)
constexpr int kSlower = 20;
#elif defined(__SANITIZE_ADDRESS__)
constexpr int kSlower = 3;
#else
constexpr int kSlower = 1;
#endif
constexpr seconds kTimeout{5 * kSlower};
/// How often something is repeated, if `count` times are enough on a fast build.
constexpr int times(int count) { return count / kSlower + 5; }

/// What a watch has seen, for a test to wait on.
class Seen {
 public:
  coord::WatchCallback callback() {
    return [this](WatchEvent event) { add(std::move(event)); };
  }
  void add(WatchEvent event);
  /// Waits until `holds` is true for all events so far.
  bool wait(const std::function<bool(const std::vector<WatchEvent>&)>& holds,
            milliseconds within = seconds{10} * kSlower);
  /// Waits for an event of that kind (and key, unless empty).
  bool wait_for(Kinds kind, const std::string& key = {},
                milliseconds within = seconds{10} * kSlower);
  std::vector<WatchEvent> events();
  /// "+key=value" for a put, "-key" for a removal, "|" for the snapshot's end, "!" for broken.
  std::vector<std::string> lines();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<WatchEvent> events_;
};

/// Opens a store; ends the test if that fails, so only for the test's own thread.
std::unique_ptr<KvStore> open(const std::string& url);

/// Writes, and returns the new revision; fails the test unless it succeeds.
KvRevision must_write(KvStore& store, std::string_view key, KvRevision expected,
                      std::string_view value);
void must_remove(KvStore& store, std::string_view key, KvRevision expected);
/// The value, "(none)" or "(error)".
std::string value_of(KvStore& store, std::string_view key);

/// A name that no other test of this program has, nor an earlier run of it.
std::string new_bucket();

/// The program's own server of that kind; starts it if needed.
Server& shared_server(Kind kind);

/// A test against each kind of store. The servers are started once per program; every test has its
/// own bucket.
class Contract : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override;

  static Server& server() { return shared_server(GetParam()); }
  [[nodiscard]] std::string url() const { return server().url(bucket_); }
  [[nodiscard]] const std::string& bucket() const { return bucket_; }
  /// A client of its own.
  [[nodiscard]] std::unique_ptr<KvStore> client() const { return open(url()); }

 private:
  std::string bucket_;
};

// NOLINTNEXTLINE
#define BATON_FOR_EACH_STORE(suite)                                                              \
  INSTANTIATE_TEST_SUITE_P(Stores, suite, testing::Values(Kind::broker, Kind::nats, Kind::etcd), \
                           [](const auto& each) { return std::string(name_of(each.param)); })

}  // namespace baton::stores
