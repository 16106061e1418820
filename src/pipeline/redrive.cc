#include "pipeline/redrive.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "engine/dead_letter.h"

namespace baton::pipeline {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kConfirm{30'000};
constexpr std::size_t kUnconfirmedMax = 250;
// What a kill would send twice is little, also when few are sent.
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
    BATON_TRY_STATUS(output_.send(record_of(*std::move(letter))));
    if (unconfirmed_++ == 0) unconfirmed_since_ = Clock::now();
    return true;
  }

  bool is_due() const override {
    const Clock::time_point next = std::max(Clock::now(), next_turn_);
    return unconfirmed_ >= kUnconfirmedMax ||
           (unconfirmed_ > 0 && next - unconfirmed_since_ >= kUnconfirmedFor);
  }

  Status confirm() override {
    if (unconfirmed_ == 0) return {};
    unconfirmed_ = 0;
    return output_.flush(kConfirm);
  }

 private:
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

  /// False: it is not worth waiting.
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
  std::size_t unconfirmed_ = 0;
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
