#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include <baton/result.h>

#include "cli/base/output.h"
#include "worker/guardian/worker_host.h"

namespace baton::cli {

/// One object: {"event":"acquired","partition":2,"epoch":5,"at_ns":...,"worker":"w1"}.
Json to_json(const worker::HostEvent& event);
/// The same for people.
std::string describe(const worker::HostEvent& event);

/// Prints events as they come, on a thread of its own: the reader of our output may be slow, and
/// must not delay a worker that has a lease to renew. Thread-safe.
class EventPrinter {
 public:
  struct Options {
    bool json = false;
    bool renewals = false;  // Whether to print renewals too.
  };

  explicit EventPrinter(Options options) : options_(options), thread_([this] { run(); }) {}
  EventPrinter(const EventPrinter&) = delete;
  EventPrinter& operator=(const EventPrinter&) = delete;
  ~EventPrinter();

  void print(const worker::HostEvent& event);
  void print_finished(const std::string& worker, const Status& status);
  /// Waits until all is printed. Returns false if the reader has closed our output.
  bool flush();

 private:
  void add(std::string line);
  void run();

  Options options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Under mutex_.
  std::deque<std::string> lines_;
  std::uint64_t dropped_ = 0;
  bool idle_ = true;
  bool ending_ = false;

  std::thread thread_;
};

}  // namespace baton::cli
