#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pipeline/app/redrive.h"
#include "pipeline/engine/dead_letter.h"
#include "pipeline/engine/dead_letter_store.h"

/// Dead letters without a pipeline, and a source that only records what was sent back to it.
namespace baton::pipeline {

/// Numbered records that were dead-lettered, by turns at "decode" and at "schema".
class SomeLetters {
 public:
  explicit SomeLetters(std::size_t count, const std::string& pipeline = "orders",
                       std::int64_t first = 0) {
    for (std::size_t i = 0; i < count; ++i) {
      Record& record = *records_.emplace_back(std::make_unique<Record>());
      record.offset = first + static_cast<std::int64_t>(i);
      record.key = "key" + std::to_string(record.offset);
      record.value = "value" + std::to_string(record.offset);
      record.headers = {{"trace", std::to_string(record.offset)}};
      letters_.push_back({.record = &record,
                          .code = "json",
                          .text = "why not",
                          .stage = i % 2 == 0 ? "decode" : "schema",
                          .source = "baton-stream:orders",
                          .pipeline = pipeline});
    }
  }
  [[nodiscard]] const std::vector<DeadLetter>& all() const { return letters_; }
  std::vector<DeadLetter>& all() { return letters_; }
  Record& record(std::size_t i) { return *records_.at(i); }

 private:
  std::vector<std::unique_ptr<Record>> records_;
  std::vector<DeadLetter> letters_;
};

class OutputInMemory : public RecordOutput {
 public:
  Status send(Record record) override {
    if (record.value == refused_value) is_refusing_ = true;
    if (record.value != refused_value) records.push_back(std::move(record));
    if (on_send) on_send();
    return {};
  }
  Status flush(std::chrono::milliseconds /*timeout*/) override {
    ++flushes;
    if (down) return Error{Errc::unavailable, "down"};
    if (std::exchange(is_refusing_, false)) return Error{Errc::invalid_argument, "too odd"};
    return {};
  }

  std::vector<Record> records;
  std::function<void()> on_send;
  int flushes = 0;
  bool down = false;
  std::string refused_value;  // Records of this value are refused for good.

 private:
  bool is_refusing_ = false;
};

/// All readable letters, and the texts of the unreadable ones.
struct SeenLetters {
  std::vector<StoredLetter> letters;
  std::vector<std::string> unreadable;
};
inline SeenLetters read_all(DeadLetterStore& store) {
  SeenLetters seen;
  const Status status = store.read([&](FoundLetter letter) {
    if (letter.has_value()) {
      seen.letters.push_back(*std::move(letter));
    } else {
      seen.unreadable.push_back(letter.error().text);
    }
    return true;
  });
  EXPECT_TRUE(status.has_value()) << to_string(status.error());
  return seen;
}

}  // namespace baton::pipeline
