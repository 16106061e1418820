#include "stores/contract.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include <fmt/format.h>

namespace baton::stores {
namespace {

/// Ended by gtest after the last test, not by static destructors, whose order is undefined.
class SharedServers : public testing::Environment {
 public:
  Server& of(Kind kind) {
    std::unique_ptr<Server>& server = servers_[kind];
    if (!server) server = std::make_unique<Server>(ServerOptions{.kind = kind});
    return *server;
  }
  void TearDown() override { servers_.clear(); }

 private:
  std::map<Kind, std::unique_ptr<Server>> servers_;
};

// Owned by gtest.
auto* const kServers =
    dynamic_cast<SharedServers*>(testing::AddGlobalTestEnvironment(new SharedServers));

}  // namespace

void Seen::add(WatchEvent event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  changed_.notify_all();
}

bool Seen::wait(const std::function<bool(const std::vector<WatchEvent>&)>& holds,
                milliseconds within) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, within, [&] { return holds(events_); });
}

bool Seen::wait_for(Kinds kind, const std::string& key, milliseconds within) {
  return wait(
      [&](const std::vector<WatchEvent>& events) {
        return std::ranges::any_of(events, [&](const WatchEvent& event) {
          return event.kind == kind && (key.empty() || event.entry.key == key);
        });
      },
      within);
}

std::vector<WatchEvent> Seen::events() {
  const std::lock_guard lock(mutex_);
  return events_;
}

std::vector<std::string> Seen::lines() {
  std::vector<std::string> lines;
  for (const WatchEvent& event : events()) {
    switch (event.kind) {
      case Kinds::put: lines.push_back("+" + event.entry.key + "=" + event.entry.value); break;
      case Kinds::removed: lines.push_back("-" + event.entry.key); break;
      case Kinds::snapshot_end: lines.emplace_back("|"); break;
      case Kinds::session_lost: lines.push_back("?" + event.entry.key); break;
      case Kinds::broken: lines.emplace_back("!"); break;
    }
  }
  return lines;
}

std::unique_ptr<KvStore> open(const std::string& url) {
  auto store = coord::open_store(url, {.connect_timeout = 4 * kTimeout});
  if (store) return *std::move(store);
  // Ends the test; gtest reports it.
  throw std::runtime_error(url + ": " + to_string(store.error()));
}

KvRevision must_write(KvStore& store, std::string_view key, KvRevision expected,
                      std::string_view value) {
  const auto done = store.cas(key, expected, value, std::nullopt, kTimeout);
  if (!done) {
    ADD_FAILURE() << key << ": " << to_string(done.error());
    return 0;
  }
  EXPECT_TRUE(done->done) << key;
  EXPECT_NE(done->revision, 0U) << key;
  return done->revision;
}

void must_remove(KvStore& store, std::string_view key, KvRevision expected) {
  const auto done = store.remove(key, expected, kTimeout);
  if (!done) ADD_FAILURE() << key << ": " << to_string(done.error());
  EXPECT_TRUE(done && done->done) << key;
}

std::string value_of(KvStore& store, std::string_view key) {
  const auto found = store.get(key, kTimeout);
  if (!found) {
    ADD_FAILURE() << key << ": " << to_string(found.error());
    return "(error)";
  }
  return *found ? (*found)->value : "(none)";
}

std::string new_bucket() {
  static int number = 0;
  return fmt::format("contract-{}-{}", ::getpid(), ++number);
}

Server& shared_server(Kind kind) { return kServers->of(kind); }

void Contract::SetUp() {
  if (const std::string why = Server::missing({.kind = GetParam()}); !why.empty()) {
    GTEST_SKIP() << "SKIPPED: " << why;
  }
  bucket_ = new_bucket();
  server().resume();
  ASSERT_TRUE(server().start());
}

}  // namespace baton::stores
