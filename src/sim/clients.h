#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "core/queue/commands.h"
#include "sim/ledger.h"
#include "sim/plan.h"
#include "sim/sim_broker.h"
#include "sim/timeline.h"
#include "sim/trace.h"

/// The clients of a simulation. They know the broker only by its answers and deliveries, as in
/// production, and report to the ledger what they do and see.
namespace baton {

struct ClientWorld {
  const Plan& plan;
  Timeline& timeline;
  Trace& trace;
  SimBroker& broker;
  Ledger& ledger;
};

/// Sends batches of all kinds of messages, with a few batches in flight at a time.
class Producer {
 public:
  Producer(ClientWorld world, std::size_t number);
  void begin() { act(); }
  void stop() { stopped_ = true; }

 private:
  void act();
  void send();
  NewMessage make_message(const std::string& queue);

  ClientWorld world_;
  std::size_t number_;
  Random random_;
  bool stopped_ = false;
  std::size_t under_way_ = 0;
};

/// Leases messages and does with them anything that a consumer may do: ack, nack, extend, forget,
/// disappear.
class Consumer {
 public:
  enum class Habit : std::uint8_t { erratic, drain };

  Consumer(ClientWorld world, std::size_t number, Habit habit, std::string queue);
  ~Consumer();
  Consumer(const Consumer&) = delete;
  Consumer& operator=(const Consumer&) = delete;

  void begin();
  /// Leaves, if it is attached, and does nothing more.
  void stop();
  void on_crash();

 private:
  class Sink;
  enum class State : std::uint8_t { away, attaching, attached };
  struct Held {
    std::string queue;
    LeaseToken token;
  };

  void act();
  void choose(AttachCommand& command);
  void attach();
  void attached(const AttachCommand& command);
  void detach();
  void arrive(const Sink& sink, const std::vector<Delivery>& deliveries);
  void closed(const Sink& sink);
  void write();
  void act_on_leases();
  void ack(std::size_t count);
  void ack_stale();
  void send_acks(const std::string& queue, std::vector<LeaseToken> tokens);
  void nack();
  void extend();
  void mark();
  void give_credit();
  [[nodiscard]] std::optional<Held> take_held();

  ClientWorld world_;
  std::size_t number_;
  Habit habit_;
  std::string queue_;
  std::string id_;
  Random random_;
  State state_ = State::away;
  bool stopped_ = false;
  ConsumerNumber registration_;
  Ledger::Parting parting_;  // What the ledger will have to know when it leaves.
  std::shared_ptr<Sink> sink_;
  std::deque<Delivery> unwritten_;
  std::deque<Held> held_;
  std::deque<Held> stale_;
};

/// Creates and changes queues, peeks, purges, cancels, redrives.
class Operator {
 public:
  explicit Operator(ClientWorld world);
  void begin();
  void stop() { stopped_ = true; }

 private:
  void act();
  void act_once();
  void create(const PlannedQueue& queue);
  void update();
  void look();
  void peek_one();
  void cancel();
  void destroy();
  void redrive();
  [[nodiscard]] std::string any_queue();

  ClientWorld world_;
  Random random_;
  bool stopped_ = false;
};

/// Every queue that may exist.
std::vector<std::string> all_queues();

}  // namespace baton
