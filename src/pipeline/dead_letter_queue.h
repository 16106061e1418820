#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <baton/queue_client.h>

#include "base/result.h"
#include "pipeline/endpoint.h"
#include "pipeline/record_output.h"
#include "sink/queue_letter.h"

namespace baton::pipeline {

/// Which letters: each field must be as said ("class", "code", "stage", "source", "partition").
using LetterFilter = std::vector<std::pair<std::string, std::string>>;
bool matches(const StoredLetter& letter, const LetterFilter& filter);

struct RedriveRequest {
  std::string pipeline{};  // Letters of others stay.
  LetterFilter where{};
  std::uint64_t limit = 0;  // 0: all that are there now.
  double rate = 0;          // A second; 0: as fast as it goes.
  std::uint32_t redrives_max = 3;
  bool dry_run = false;
  std::function<bool()> give_up{};
  /// After each letter that was looked at.
  std::function<void(std::uint64_t looked_at, std::uint64_t all)> progress{};
};

struct RedriveCounts {
  std::uint64_t redriven = 0;  // Or would be.
  std::uint64_t other = 0;     // Did not match.
  std::uint64_t worn_out = 0;  // Were redriven too often.
  std::uint64_t unreadable = 0;
};

/// The dead letters of a pipeline in a Baton queue.
class DeadLetterQueue {
 public:
  struct Entry {
    std::string id;
    StoredLetter letter;
  };

  static Result<DeadLetterQueue> open(const Endpoint& endpoint);

  Result<std::vector<Entry>> list(std::uint32_t limit, const LetterFilter& where);
  Result<Entry> show(const std::string& id);
  /// Sends letters back to where they came from, as the records they were; each is confirmed there
  /// before it is gone here.
  Result<RedriveCounts> redrive(const RedriveRequest& request, RecordOutput& output);

 private:
  DeadLetterQueue(Endpoint endpoint, client::QueueClient client)
      : endpoint_(std::move(endpoint)), client_(std::move(client)) {}

  Endpoint endpoint_;
  client::QueueClient client_;
};

}  // namespace baton::pipeline
