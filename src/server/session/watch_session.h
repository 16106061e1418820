#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "server/session/leased_session.h"
#include "server/session/server_state.h"
#include "server/shard/kv_commands.h"

namespace baton {

/// The checked request for a watch.
struct WatchWanted {
  std::string bucket;
  KvFilter filter;
  std::optional<Revision> after;
  std::string session;
};

/// Which of the changes that arrive during a snapshot of several pages are already in it. A page
/// shows its part of the keys at its own revision; the watch continues after the first page's
/// revision. Pure.
class SnapshotPages {
 public:
  /// A page that ends with the key `last`, at `revision`; empty: it is the last page.
  void add(std::string last, Revision revision);
  [[nodiscard]] bool has_shown(const KvEntry& change) const;
  /// Whether all pages have arrived, and every change up to `complete_to` was examined.
  [[nodiscard]] bool is_complete(Revision complete_to) const {
    return last_.has_value() && complete_to >= *last_;
  }

 private:
  std::vector<std::pair<std::string, Revision>> pages_;
  std::optional<Revision> last_;  // Of the last page.
};

/// A watch of keys: a snapshot page by page, then changes, and a new snapshot whenever the client
/// has read too slowly.
///
/// **Memory.** The watch in the shard has credit for what may be on its way here, and gets it back
/// when output is written; without credit it only keeps a place in the bucket's history. The next
/// page of a snapshot is asked for when the one before is written. So for any slow client, at most
/// a page or the credit waits here (and one value that exceeds it).
///
/// **The end.** A client that leaves says goodbye. Any other end that the broker did not cause
/// counts as broken, and the shard then tells others that the session is lost. A client with a
/// lease that falls silent is lost when its lease ends.
///
/// Owned and locked like every Session (see there).
class WatchSession final : public LeasedSession, public KvWatchSink {
 public:
  // The contents of one output; its pieces are in this order.
  struct Started {
    bool resumed = false;
  };
  struct Compacted {
    enum class Reason : std::uint8_t { resume, fell_behind };
    Reason reason = Reason::resume;
  };
  struct SnapshotEnd {
    Revision revision;
  };
  struct CompleteTo {
    Revision revision;
  };
  using Piece = std::variant<Started, Compacted, KvEntryRef, SnapshotEnd, KvChange, KvSessionLost,
                             CompleteTo, HeartbeatAnswer>;
  using Output = std::vector<Piece>;

  struct Request {
    std::optional<std::uint64_t> heartbeat{};
    std::optional<Result<WatchWanted>> start{};
    bool goodbye = false;
  };

  explicit WatchSession(std::shared_ptr<ServerState> state) : LeasedSession(std::move(state)) {}

  void take(Request request);
  /// As much as fits into one output. Called with the lock held.
  Output take_output();

  void told(const KvWatchEffect& effect) override;

 private:
  using NextCommand = std::variant<KvWatchCommand, KvSnapshotCommand, KvGrantCommand>;

  // Overrides of Session.
  [[nodiscard]] bool has_room() const override { return true; }
  [[nodiscard]] bool has_output() const override { return !pieces_.empty(); }
  void written(bool ok) override;
  [[nodiscard]] bool settled() const override { return pieces_.empty(); }
  bool release(Lock& lock) override;
  [[nodiscard]] bool released() const override { return watch_ == KvWatchId{} && under_way_ == 0; }
  void lease_ended() override { fell_silent_ = true; }

  /// Submits whatever is due to the shard, and pumps. Called without the lock, after every change.
  void go_on();
  template <class Wanted>
  void send(Wanted command);

  // Called with the lock held.
  void start(Result<WatchWanted> wanted);
  /// The command to submit now; it counts as under way.
  std::optional<NextCommand> next_command();
  [[nodiscard]] bool is_idle() const {
    return pieces_.empty() && !writing_output_ && under_way_ == 0;
  }
  [[nodiscard]] bool grant_is_due() const;
  KvWatchCommand make_watch();
  KvSnapshotCommand make_snapshot();
  KvGrantCommand make_grant();
  void answered(KvWatchCommand& done);
  void answered(KvSnapshotCommand& done);
  void answered(KvGrantCommand& /*done*/) {}
  void answered(KvUnwatchCommand& /*done*/) {}
  void show_page(const KvPage& page);
  void take_changes(const KvWatchEffect& effect);
  void take_end(KvWatchEnd end);
  std::shared_ptr<WatchSession> self() {
    return std::static_pointer_cast<WatchSession>(shared_from_this());
  }

  // Guarded by the mutex.
  bool has_start_ = false;
  WatchWanted wanted_;  // Valid once has_start_ is set.
  bool begin_ = false;  // A watch must be begun, once everything is written.
  KvWatchId watch_;     // In the shard, or on its way there; 0: none.
  bool started_told_ = false;
  // The key after which the next page begins; empty: there is none.
  std::string next_page_;
  std::unique_ptr<SnapshotPages> pages_;  // Set during a snapshot of several pages.
  std::deque<Piece> pieces_;
  bool writing_output_ = false;
  std::uint64_t changes_in_output_ = 0;  // Of the output under way,
  std::int64_t bytes_in_output_ = 0;
  std::uint64_t changes_written_ = 0;  // and of those before it: credit not yet given back.
  std::int64_t bytes_written_ = 0;
  std::size_t under_way_ = 0;  // The number of commands.
  bool goodbye_ = false;
  bool fell_silent_ = false;
};

}  // namespace baton
