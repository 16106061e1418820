#pragma once

#include <memory>
#include <string>
#include <utility>

#include <baton/broker.h>

#include "pipeline/ends/endpoint.h"
#include "pipeline/engine/dead_letter_store.h"

namespace baton::pipeline {

/// The dead letters of a pipeline in a Baton queue, by the ids of its messages.
class DeadLetterQueue : public DeadLetterStore {
 public:
  static Result<std::unique_ptr<DeadLetterQueue>> open(const Endpoint& endpoint);

  /// Shows the first 1000 letters, because the broker shows no more.
  Status read(const std::function<bool(FoundLetter)>& see) override;
  Result<StoredLetter> find(const std::string& id) override;
  /// Holds letters that stay until the end of the run, or they would be delivered again and again:
  /// at most 100 000.
  Result<std::uint64_t> take(LetterTaker& taker) override;

 private:
  DeadLetterQueue(Endpoint endpoint, client::Queue queue)
      : endpoint_(std::move(endpoint)), queue_(std::move(queue)) {}

  Endpoint endpoint_;
  client::Queue queue_;
};

}  // namespace baton::pipeline
