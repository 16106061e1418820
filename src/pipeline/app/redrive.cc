#include "pipeline/app/redrive.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/engine/dead_letter.h"

namespace baton::pipeline {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kConfirm{30'000};
constexpr std::size_t kUnconfirmedMax = 250;
// A bound on the time between confirmations, so that a killed process sends few letters twice, even
// at a low rate.
constexpr milliseconds kUnconfirmedFor{500};
constexpr milliseconds kLook{50};
constexpr std::size_t kTextsMax = 20;

class Redrive : public LetterTaker {
 public:
  Redrive(const RedriveRequest& request, RecordOutput& output)
      : request_(request), output_(output) {}

  RedriveCounts& counts() { return counts_; }

  bool wants_more() override {
    return (request_.limit == 0 || counts_.redriven < request_.limit) && !gives_up();
  }

  Result<bool> offer(FoundLetter letter) override {
    const bool goes = is_to_go(letter);
    if (request_.progress) request_.progress(++looked_at_);
    if (!goes || !wait_for_turn()) return false;
    ++counts_.redriven;
    if (request_.dry_run) return false;
    Sent sent{.id = letter->id, .record = record_of(*std::move(letter))};
    const Status status = output_.send(sent.record);
    if (is_refusal(status)) return refuse(sent.id, status.error());
    BATON_TRY_STATUS(status);
    if (unconfirmed_.empty()) unconfirmed_since_ = Clock::now();
    unconfirmed_.push_back(std::move(sent));
    return true;
  }

  bool is_due() const override {
    const Clock::time_point next = std::max(Clock::now(), next_turn_);
    return unconfirmed_.size() >= kUnconfirmedMax ||
           (!unconfirmed_.empty() && next - unconfirmed_since_ >= kUnconfirmedFor);
  }

  Result<std::set<std::size_t>> confirm() override {
    if (unconfirmed_.empty()) return std::set<std::size_t>();
    std::vector<Sent> sent = std::exchange(unconfirmed_, {});
    const Status status = output_.flush(kConfirm);
    if (is_refusal(status)) return send_one_by_one(std::move(sent));
    BATON_TRY_STATUS(status);
    return std::set<std::size_t>();
  }

 private:
  struct Sent {
    std::string id;
    Record record;
  };

  static bool is_refusal(const Status& status) {
    return !status.has_value() && status.error().code == Errc::invalid_argument;
  }

  /// After a failed batch it is not known which letters were refused, so all are sent again, one by
  /// one. Accepted ones arrive twice, as after a kill.
  Result<std::set<std::size_t>> send_one_by_one(std::vector<Sent> sent) {
    std::set<std::size_t> refused;
    for (std::size_t i = 0; i < sent.size(); ++i) {
      Status status = output_.send(std::move(sent[i].record));
      if (status.has_value()) status = output_.flush(kConfirm);
      if (is_refusal(status)) {
        refuse(sent[i].id, status.error());
        refused.insert(i);
      } else {
        BATON_TRY_STATUS(status);
      }
    }
    return refused;
  }

  /// Counts a refused letter, which stays in the store.
  bool refuse(const std::string& id, const Error& why) {
    --counts_.redriven;
    ++counts_.refused;
    if (counts_.refused_texts.size() < kTextsMax) {
      counts_.refused_texts.push_back(id + ": " + why.text);
    }
    return false;
  }

  bool gives_up() const { return request_.give_up && request_.give_up(); }

  bool is_to_go(const FoundLetter& letter) {
    if (!letter.has_value()) {
      ++counts_.unreadable;
      if (counts_.unreadable_texts.size() < kTextsMax) {
        counts_.unreadable_texts.push_back(letter.error().text);
      }
      return false;
    }
    if (letter->what("baton-pipeline") != request_.pipeline || !matches(*letter, request_.where)) {
      ++counts_.other;
      return false;
    }
    if (letter->redrives() >= request_.redrives_max) {
      ++counts_.worn_out;
      return false;
    }
    return true;
  }

  /// False: the caller should not wait any longer.
  bool wait_for_turn() {
    if (request_.rate <= 0 || request_.dry_run) return true;
    const Clock::time_point now = Clock::now();
    const Clock::time_point turn = std::max(next_turn_, now);
    next_turn_ = turn + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(1 / request_.rate));
    for (Clock::time_point at = now; at < turn; at = Clock::now()) {
      if (gives_up()) return false;
      std::this_thread::sleep_for(std::min<Clock::duration>(turn - at, kLook));
    }
    return true;
  }

  static Record record_of(StoredLetter letter) {
    const std::uint32_t redrives = letter.redrives() + 1;
    Record record = std::move(letter.record);
    std::erase_if(record.headers,
                  [](const auto& header) { return header.first == kRedrivesHeader; });
    record.headers.emplace_back(kRedrivesHeader, std::to_string(redrives));
    return record;
  }

  const RedriveRequest& request_;
  RecordOutput& output_;
  RedriveCounts counts_;
  std::uint64_t looked_at_ = 0;
  std::vector<Sent> unconfirmed_;
  Clock::time_point unconfirmed_since_;
  Clock::time_point next_turn_;
};

}  // namespace

bool matches(const StoredLetter& letter, const LetterFilter& filter) {
  return std::ranges::all_of(filter, [&](const auto& wanted) {
    return letter.what("baton-" + wanted.first) == wanted.second;
  });
}

Result<RedriveCounts> redrive(DeadLetterStore& store, const RedriveRequest& request,
                              RecordOutput& output) {
  Redrive taker(request, output);
  BATON_TRY(taker.counts().not_reached, store.take(taker));
  return std::move(taker.counts());
}

}  // namespace baton::pipeline
