#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <baton/lease_stream.h>
#include <baton/v1/queues.grpc.pb.h>

#include "sdk/base/leased_link.h"

namespace baton::client {

/// Callbacks to call in order once the lock is released.
class Callbacks {
 public:
  void add(std::function<void()> callback) { callbacks_.push_back(std::move(callback)); }
  void run() {
    for (const auto& callback : callbacks_) callback();
    callbacks_.clear();
  }

 private:
  std::vector<std::function<void()>> callbacks_;
};

/// Items of one kind on their way to the broker, and their results: the broker answers each kind in
/// the order it was sent. Not thread-safe.
///
/// Invariant: the first sent() items are sent and unanswered; groups cover the items exactly.
template <class Item>
class PendingItems {
 public:
  struct Group {
    std::size_t unanswered = 0;
    ItemResults results;
    LeaseStream::ResultCallback callback;
    bool is_quiet = false;  // Failures are ignored.
  };

  void add(Item item, LeaseStream::ResultCallback callback) {
    if (callback || !can_join_last_group()) {
      groups_.push_back({.unanswered = 0, .results = {}, .callback = std::move(callback)});
    }
    items_.push_back(std::move(item));
    ++groups_.back().unanswered;
    ++groups_.back().results.items;
  }
  void add(std::vector<Item> items, LeaseStream::ResultCallback callback, bool is_quiet = false) {
    Group group;
    group.unanswered = items.size();
    group.results.items = items.size();
    group.callback = std::move(callback);
    group.is_quiet = is_quiet;
    groups_.push_back(std::move(group));
    for (Item& item : items) items_.push_back(std::move(item));
  }

  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] std::size_t sent() const { return sent_; }
  [[nodiscard]] std::size_t unsent() const { return items_.size() - sent_; }
  /// Passes the next `max` unsent items to `write`, in order.
  template <class Write>
  std::size_t send(std::size_t max, Write&& write) {
    const std::size_t count = std::min(max, unsent());
    for (std::size_t i = 0; i < count; ++i) write(items_[sent_ + i]);
    sent_ += count;
    return count;
  }
  /// The stream broke: everything has to be sent again.
  void unsend() { sent_ = 0; }

  /// Takes the result of the oldest item. A group that is complete is passed to `complete`.
  template <class Complete>
  void answer(std::optional<Error> error, Complete&& complete) {
    Group& group = groups_.front();
    if (error) {
      group.results.failures.push_back(
          {.index = group.results.items - group.unanswered, .error = std::move(*error)});
    }
    items_.pop_front();
    if (sent_ > 0) --sent_;
    if (--group.unanswered > 0) return;
    Group done = std::move(group);
    groups_.pop_front();
    complete(std::move(done));
  }

 private:
  // Items without a callback share a group, and its cost, until it is sent: groups must end, or
  // their failures would never be reported.
  [[nodiscard]] bool can_join_last_group() const {
    return !groups_.empty() && !groups_.back().callback && !groups_.back().is_quiet &&
           groups_.back().unanswered <= unsent();
  }

  std::deque<Item> items_;
  std::deque<Group> groups_;
  std::size_t sent_ = 0;
};

/// Which side grants the broker credit for further messages.
enum class Credit : std::uint8_t {
  broker,    // Nobody: in_flight_max is the bound.
  manual,    // The user, with add_credit().
  returned,  // in_flight_max at first; each ack and nack returns one, until pause().
};

/// The consumer's side of Consume: buffers incoming messages, gathers outgoing items, and forgets
/// nothing over a reconnect. Thread-safe; see LeaseStream for the rules of the callbacks.
///
/// What came in a call is handed out only while the lease of that call is valid, and not when its
/// own deadline may have passed at the broker: another consumer may hold it by then.
class LeaseLink final : public LeasedLink<v1::ConsumeRequest, v1::ConsumeResponse> {
 public:
  LeaseLink(const Connection& connection, std::string queue, LeaseStreamOptions options,
            Credit credit);
  ~LeaseLink() override;
  LeaseLink(const LeaseLink&) = delete;
  LeaseLink& operator=(const LeaseLink&) = delete;
  LeaseLink(LeaseLink&&) = delete;
  LeaseLink& operator=(LeaseLink&&) = delete;

  /// Opens the stream. Not in the constructor, so that callbacks find their owner complete.
  void start();

  Result<Registration> wait_until_registered(std::chrono::milliseconds timeout);
  Result<std::optional<LeasedMessage>> next(std::chrono::milliseconds timeout);
  /// `session` receives the number of the session in which they came, for may_begin().
  Result<std::vector<LeasedMessage>> next_batch(std::chrono::milliseconds timeout, std::size_t max,
                                                std::uint64_t* session = nullptr);
  void interrupt();

  void ack(LeaseToken token, LeaseStream::ResultCallback callback);
  void ack(std::vector<LeaseToken> tokens, LeaseStream::ResultCallback callback);
  void nack(Nack item, LeaseStream::ResultCallback callback);
  void nack(std::vector<Nack> items, LeaseStream::ResultCallback callback);
  /// `is_quiet`: failures are reported to the callback only, not to flush().
  void extend(std::vector<Extension> items, LeaseStream::ResultCallback callback,
              bool is_quiet = false);
  /// Tells the broker as soon as possible. Forgotten if the connection breaks first.
  void begin(std::vector<LeaseToken> tokens);
  void add_credit(std::uint32_t messages);
  /// Returns no more credit, and asks the broker to deliver nothing more.
  void pause();
  /// The broker's value, or its default until the broker has told it.
  [[nodiscard]] std::chrono::milliseconds visibility_timeout() const;
  /// flush() reports only failures from now on.
  void forget_failure();

  Status flush(std::chrono::milliseconds timeout);
  Status close(std::chrono::milliseconds timeout);
  LeaseStream::Stats stats() const;
  SessionLease lease() const;
  /// Whether messages that came in this session may be begun now.
  [[nodiscard]] bool may_begin(std::uint64_t session) const;
  /// Gives back a message that was not begun. A failure, because it was lost already, is ignored.
  void give_back(LeaseToken token);

 private:
  void begin_call(grpc::ClientContext* context, Reactor* reactor) override;
  [[nodiscard]] bool wants_session() const override { return true; }
  void session_opened() override;
  const v1::ConsumeRequest* next_frame() override;
  void received(v1::ConsumeResponse& response) override;
  void disconnected(const Error& error, bool over) override;

  [[nodiscard]] std::size_t unsent() const {
    return acks_.unsent() + nacks_.unsent() + extends_.unsent();
  }
  [[nodiscard]] std::size_t items() const { return acks_.size() + nacks_.size() + extends_.size(); }
  /// Whether no message can come any more that would count an attempt when the stream ends.
  [[nodiscard]] bool is_quiesced() const { return !quiesce_ || quiesced_ || !in_session_; }
  [[nodiscard]] bool frame_is_due() const;
  [[nodiscard]] std::optional<Error> ended() const;
  void fill_start(v1::ConsumeStart& start) const;
  void fill_items();
  void give_credit_back(std::size_t messages);
  bool wait_for_messages(Lock& lock, std::chrono::milliseconds timeout);
  void release_untaken();
  /// Drops the messages that wait here if others may hold them by now.
  void drop_if_cut_off(Lock& lock);
  /// Whether the message's deadline may have passed at the broker.
  [[nodiscard]] bool may_have_expired(const LeasedMessage& message) const;
  /// Takes expired messages out of `messages`, and gives them back.
  void drop_expired(std::vector<LeasedMessage>& messages);
  void release(std::span<LeasedMessage> messages);
  void hold(std::vector<LeasedMessage> messages);
  void count_answered(std::size_t answered);
  template <class Item, class Results>
  std::size_t answer(PendingItems<Item>& lane, const Results& results, Callbacks& callbacks);
  template <class Item>
  void fail(PendingItems<Item>& lane, const Error& error, Callbacks& callbacks);
  template <class Group>
  void complete(Group group, Callbacks& callbacks);
  template <class Item>
  void submit(PendingItems<Item>& lane, std::vector<Item> items,
              LeaseStream::ResultCallback callback, bool is_quiet = false);
  template <class Item>
  void submit(PendingItems<Item>& lane, Item item, LeaseStream::ResultCallback callback);
  void refuse(Lock& lock, std::size_t items, const Error& error,
              LeaseStream::ResultCallback callback);
  void run_unlocked(Lock& lock, Callbacks& callbacks);

  const std::string queue_;
  const LeaseStreamOptions options_;
  const Credit credit_mode_;
  const std::unique_ptr<v1::QueueService::Stub> stub_;
  v1::ConsumeRequest frame_;  // Not changed while writing_.
  // Separate from changed_, so that results do not wake threads that wait for messages.
  std::condition_variable arrived_;
  // All below under mutex_.
  PendingItems<LeaseToken> acks_;
  PendingItems<Nack> nacks_;
  PendingItems<Extension> extends_;
  std::vector<LeaseToken> begun_;  // Not yet reported to the broker.
  std::vector<LeasedMessage> untaken_;
  std::size_t taken_ = 0;                     // How many at the front of untaken_ are handed out.
  std::optional<Registration> registration_;  // Of the last session that was registered.
  bool start_sent_ = false;
  std::uint64_t session_ = 0;  // Number of the current session.
  std::uint64_t credit_unsent_ = 0;
  std::uint64_t credit_open_ = 0;          // Granted, and not yet used by a delivery.
  std::deque<std::uint64_t> frames_open_;  // For each unanswered frame: items sent up to its end.
  std::uint64_t items_written_ = 0;        // On this session.
  std::uint64_t items_answered_ = 0;       // On this session.
  std::size_t flushes_ = 0;
  std::size_t running_ = 0;  // Callbacks in progress: their items still count.
  bool interrupted_ = false;
  bool paused_ = false;
  bool in_session_ = false;
  bool quiesce_ = false;       // No more messages are wanted, on any session.
  bool quiesce_sent_ = false;  // On this session, as is quiesced_.
  bool quiesced_ = false;
  bool closed_ = false;
  std::optional<Error> first_failure_;
  LeaseStream::Stats stats_;
};

}  // namespace baton::client
