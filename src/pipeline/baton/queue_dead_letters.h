#pragma once

#include <memory>
#include <string>
#include <vector>

#include <baton/broker.h>

#include "pipeline/engine/dead_letter.h"

namespace baton::pipeline {

struct QueueDeadLetterOptions {
  client::ConnectionOptions connection{};
  std::string queue{};
};

/// Dead letters as messages of a Baton queue, which is created if it does not exist. A letter's id
/// is its dedup id, so that a letter written twice is stored once.
class QueueDeadLetters : public DeadLetterTarget {
 public:
  static Result<std::unique_ptr<QueueDeadLetters>> open(QueueDeadLetterOptions options);

  Status write(std::span<const DeadLetter> letters) override;
  [[nodiscard]] std::string name() const override;

 private:
  QueueDeadLetters(QueueDeadLetterOptions options, client::Queue queue)
      : options_(std::move(options)), queue_(std::move(queue)) {}

  Status send(std::vector<client::NewMessage> messages);
  Result<bool> is_stored(const client::EnqueueResult& result);

  QueueDeadLetterOptions options_;
  client::Queue queue_;
};

}  // namespace baton::pipeline
