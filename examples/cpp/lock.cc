// lock ADDRESS NAME MILLISECONDS: waits for the lock NAME, holds it for that long, and releases it.
//
// A lock is a key that goes by itself unless its holder writes it again: a lease. The revision of
// the write that took the lock is its fencing token: it grows with each holder.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include <baton/client.h>

namespace client = baton::client;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr const char* kBucket = "locks";
constexpr std::chrono::milliseconds kLease = 3s;

/// One thread acquires and releases; a thread of its own renews meanwhile.
class Lock {
 public:
  Lock(client::Bucket locks, std::string name) : locks_(std::move(locks)), name_(std::move(name)) {}

  /// Waits until the lock is ours, and answers its token.
  baton::Result<std::uint64_t> acquire() {
    auto watch =
        locks_.watch({.key = name_}, [this](const client::KvWatchEvent& event) { see(event); });
    if (!watch) return watch.error();
    if (auto started = watch->wait_until_started(5s); !started) return started.error();
    for (bool told = false;; told = true) {
      const std::uint64_t seen = changes_;
      const Clock::time_point asked = Clock::now();
      auto taken = locks_.cas(name_, 0, "held", {.ttl = kLease, .deadline = 2s});
      if (!taken) return taken.error();  // The write may have happened: it goes by itself.
      if (taken->done) return begin(taken->revision, asked);
      if (!told) say("waiting");
      wait_for_change(seen);
    }
  }

  /// The question before each effect on the world. By our own clock, counted from before the last
  /// renewal was sent: so it turns false before the broker gives the lock to anybody else.
  bool is_held() const { return Clock::now().time_since_epoch().count() < held_until_; }

  baton::Status release() {
    renewal_ = {};  // Ends the thread.
    const auto removed = locks_.remove(name_, {.expected_revision = revision_});
    session_.reset();  // Says goodbye.
    if (!removed) return removed.error();
    return {};
  }

 private:
  static void say(const char* text) { std::printf("%s\n", text); }

  baton::Result<std::uint64_t> begin(std::uint64_t revision, Clock::time_point asked) {
    revision_ = revision;
    held_until_ = (asked + kLease).time_since_epoch().count();
    // The lock's key is the session of this watch: when the connection breaks, because the process
    // died, say, the broker tells the waiting processes at once.
    auto session =
        locks_.watch({.key = name_, .session = name_}, [](const client::KvWatchEvent&) {});
    if (!session) return session.error();
    session_ = *std::move(session);
    renewal_ = std::jthread([this](const std::stop_token& stop) { renew(stop); });
    return revision;
  }

  void renew(const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    while (true) {
      std::unique_lock lock(mutex);
      if (wake.wait_for(lock, stop, kLease / 4, [] { return false; }) || stop.stop_requested())
        return;
      const Clock::time_point asked = Clock::now();
      auto renewed = locks_.cas(name_, revision_, "held", {.ttl = kLease, .deadline = 1s});
      if (!renewed) continue;      // Unknown. is_held() turns false unless a later one is answered.
      if (!renewed->done) return;  // Somebody else's by now.
      revision_ = renewed->revision;
      held_until_ = (asked + kLease).time_since_epoch().count();
    }
  }

  void see(const client::KvWatchEvent& event) {
    using Kind = client::KvWatchEvent::Kind;
    // Only a hint: the holder may be at work, and not know yet. Its lease decides.
    if (event.kind == Kind::session_lost) say("the holder's connection broke");
    const bool free = event.kind == Kind::removed || event.kind == Kind::expired;
    if (!free) return;
    const std::scoped_lock lock(mutex_);
    ++changes_;
    changed_.notify_all();
  }

  /// A watch may be late, or away: the lock is asked for now and then in any case.
  void wait_for_change(std::uint64_t seen) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLease, [&] { return changes_ != seen; });
  }

  const client::Bucket locks_;
  const std::string name_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<std::uint64_t> changes_ = 0;
  std::atomic<std::uint64_t> revision_ = 0;
  std::atomic<Clock::rep> held_until_ = 0;
  std::optional<client::KvWatch> session_;
  std::jthread renewal_;
};

baton::Status run(const std::string& address, const std::string& name,
                  std::chrono::milliseconds time) {
  auto broker = client::Broker::open({.address = address});
  if (!broker) return broker.error();
  client::Bucket locks = broker->bucket(kBucket);
  if (auto made = locks.create(); !made) return made.error();
  Lock lock(locks, name);
  auto token = lock.acquire();
  if (!token) return token.error();
  std::printf("holding %s, token %lu\n", name.c_str(), static_cast<unsigned long>(*token));
  const Clock::time_point end = Clock::now() + time;
  while (Clock::now() < end && lock.is_held()) std::this_thread::sleep_for(10ms);
  std::printf("%s %s\n", lock.is_held() ? "releasing" : "lost", name.c_str());
  return lock.release();
}

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // Line by line, into a file as well.
  if (argc != 4) {
    std::fprintf(stderr, "usage: lock ADDRESS NAME MILLISECONDS\n");
    return 2;
  }
  const baton::Status done = run(argv[1], argv[2], std::chrono::milliseconds(std::atoi(argv[3])));
  if (!done) {
    std::fprintf(stderr, "lock: %s\n", baton::to_string(done.error()).c_str());
    return 1;
  }
  return 0;
}
