#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "cluster/loglet/loglet.h"

namespace baton::loglet {

/// How often things go wrong in a MemoryLog, in percent.
struct MemoryFaults {
  std::uint64_t request_lost = 0;
  std::uint64_t request_twice = 0;
  std::uint64_t answer_lost = 0;
  std::uint64_t reordered = 0;   // Any message arrives next, instead of the oldest.
  std::uint64_t read_short = 0;  // By a copy that is behind, possibly with nothing.
  std::uint64_t read_damaged = 0;
  std::uint64_t unable = 0;  // The entry was stored, or was not.
  bool full = false;         // Nothing is stored, and the answer says so.
  bool conditional = true;   // Engines like Kafka check no condition.
};

class MemoryLoglet;

/// An engine in memory, for tests and simulations: one log, any number of clients. Messages between
/// clients and log wait until arrive() is called.
class MemoryLog {
 public:
  explicit MemoryLog(std::uint64_t seed, MemoryFaults faults = {})
      : random_(seed), faults_(faults) {}

  void set_faults(const MemoryFaults& faults) { faults_ = faults; }
  /// While it is down, every request is lost.
  void set_down(bool down) { down_ = down; }
  /// One message reaches its end. False if none is on its way.
  bool arrive();

  [[nodiscard]] const std::vector<std::string>& entries() const { return entries_; }
  /// Forgets entries from `sequence` on, as an engine must not.
  void lose_from(std::uint64_t sequence) {
    if (sequence <= entries_.size()) entries_.resize(sequence - 1);
  }

 private:
  friend class MemoryLoglet;
  struct Request {
    enum class Kind : std::uint8_t { append, read, trim };
    Kind kind = Kind::append;
    std::uint64_t number = 0;
    std::string bytes{};
    std::optional<std::uint64_t> sequence{};  // The expected one, the one read after, or trimmed.
  };
  struct Message {
    std::weak_ptr<std::vector<Loglet::Answer>> client;
    std::optional<Request> request{};  // nullopt: it is an answer.
    Loglet::Answer answer{};
  };

  void ask(const std::shared_ptr<std::vector<Loglet::Answer>>& client, const Request& request);
  Loglet::Answer serve(const Request& request);
  Loglet::Answer store(const Request& request);
  Loglet::Answer read(const Request& request);

  Random random_;
  MemoryFaults faults_;
  bool down_ = false;
  std::vector<std::string> entries_;  // Entry 1 first, also if it was trimmed.
  std::uint64_t first_ = 1;
  std::deque<Message> on_their_way_;
};

/// A client of a MemoryLog, which must outlive it.
class MemoryLoglet final : public Loglet {
 public:
  explicit MemoryLoglet(MemoryLog& log) : log_(log) {}

  [[nodiscard]] std::size_t entry_bytes_max() const override { return kEntryBytesMax; }
  void append(std::uint64_t request, std::string_view bytes,
              std::optional<std::uint64_t> expected) override;
  void read(std::uint64_t request, std::uint64_t after) override;
  void trim(std::uint64_t request, std::uint64_t before) override;
  void redial() override;
  std::vector<Answer> take_answers() override { return std::exchange(*answers_, {}); }
  void set_wake(std::function<void()> /*wake*/) override {}

  [[nodiscard]] std::uint64_t redials() const { return redials_; }

 private:
  MemoryLog& log_;
  // Answers on their way to a client that is gone, or was connected anew, are lost.
  std::shared_ptr<std::vector<Answer>> answers_ = std::make_shared<std::vector<Answer>>();
  std::uint64_t redials_ = 0;
};

}  // namespace baton::loglet
