#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <baton/client.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/base/interrupt.h"
#include "cli/broker/commands.h"
#include "cli/broker/stream_flags.h"
#include "cli/broker/stream_output.h"

namespace baton::cli {
namespace {

using client::Record;
using client::StreamReader;

// Poll interval for interrupts while waiting.
constexpr Milliseconds kReadSlice{50};

struct ReadFlags : StreamFlags {
  std::optional<PartitionNumber> partition;
  client::StartFrom from;
  std::uint64_t max = 0;
  bool follow = false;
};

/// A reader, and the partition that it reads.
struct PartitionReader {
  PartitionNumber partition{};
  StreamReader reader;
};

/// Reads partitions and prints their records: one partition after the other, or all at once when
/// following. One thread per partition that is read at the same time; run() joins all of them.
class Reading {
 public:
  Reading(const ReadFlags& flags, std::vector<PartitionReader> readers)
      : flags_(flags),
        out_(flags.output()),
        what_(about_stream("read", flags.stream)),
        readers_(std::move(readers)) {}

  ExitCode run() {
    std::vector<std::thread> threads;
    if (flags_.follow) {
      for (auto& reader : readers_) {
        threads.emplace_back([this, &reader] {
          read(reader);
          note_end();
        });
      }
    } else {
      threads.emplace_back([this] {
        for (auto& reader : readers_) read(reader);
        note_end();
      });
    }
    wait_for_end(threads.size());
    for (std::thread& thread : threads) thread.join();
    if (error_) return out_.fail(what_, *error_);
    return ExitCode::ok;
  }

 private:
  void read(PartitionReader& from) {
    while (!over_) {
      auto records = from.reader.next();
      const std::lock_guard lock(mutex_);
      if (!records) {
        if (!error_) {
          error_ = records.error();
          error_->text = fmt::format("partition {}: {}", from.partition.value, error_->text);
        }
        over_ = true;
        return;
      }
      const auto& found = *records;
      if (!found) return;
      for (const Record& record : found.value()) print(record);
      // The reader of our output handles each record as it comes.
      std::fflush(stdout);
    }
  }

  void print(const Record& record) {
    if (over_) return;
    if (out_.json()) {
      Output::object(to_json(record));
    } else {
      Output::text(describe(record));
    }
    if (++count_ == flags_.max) over_ = true;
  }

  void note_end() {
    const std::lock_guard lock(mutex_);
    ++ended_;
    changed_.notify_all();
  }

  void wait_for_end(std::size_t threads) {
    std::unique_lock lock(mutex_);
    while (ended_ < threads) {
      changed_.wait_for(lock, kReadSlice);
      if (!over_ && !is_interrupted()) continue;
      over_ = true;
      for (auto& reader : readers_) reader.reader.close();
    }
  }

  const ReadFlags& flags_;
  Output out_;
  std::string what_;
  std::vector<PartitionReader> readers_;
  std::atomic<bool> over_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t ended_ = 0;       // Under mutex_.
  std::uint64_t count_ = 0;     // Under mutex_.
  std::optional<Error> error_;  // Under mutex_.
};

ExitCode run_read(const ReadFlags& flags) {
  const std::string what = about_stream("read", flags.stream);
  return with_broker(flags, what, [&](const client::Broker& broker, const Output& out) {
    const auto stream = broker.stream(flags.stream).describe();
    if (!stream) return out.fail(what, stream.error());
    std::vector<PartitionNumber> partitions;
    if (flags.partition) {
      const Status status = check_partition(*stream, *flags.partition);
      if (!status) return out.fail_here(what, status.error());
      partitions.push_back(*flags.partition);
    } else {
      for (std::uint32_t i = 0; i < stream->partitions; ++i) partitions.emplace_back(i);
    }
    std::vector<PartitionReader> readers;
    readers.reserve(partitions.size());
    for (const PartitionNumber partition : partitions) {
      readers.push_back({.partition = partition,
                         .reader = broker.stream(flags.stream)
                                       .read({.partition = partition,
                                              .from = flags.from,
                                              .records_max = flags.max,
                                              .follow = flags.follow})});
    }
    watch_for_interrupt();
    return Reading(flags, std::move(readers)).run();
  });
}

}  // namespace

void add_stream_read(CLI::App& stream, Action& action) {
  const auto flags = std::make_shared<ReadFlags>();
  CLI::App* command = add_verb(
      stream,
      {.name = "read",
       .help = "Print records without a group: one partition, or all of them one after the "
               "other. With --follow, all partitions at once as records come, until "
               "interrupted.",
       .example = "baton stream read events --partition 0 --from first --max 10\n"
                  "  baton stream read events --from 15m --json\n"
                  "  baton stream read events --from next --follow"},
      flags, run_read, action);
  add_stream_argument(*command, *flags);
  add_parsed(
      *command, "--partition", read_partition,
      [flags = flags.get()](PartitionNumber value) { flags->partition = value; },
      "Only this partition [all].");
  add_parsed(
      *command, "--from", read_from,
      [flags = flags.get()](const client::StartFrom& from) { flags->from = from; },
      "Where to begin: first [default], last (the last batch), next (only new records), an "
      "offset, a time (2026-01-31T08:30:00Z) or an age (15m).");
  add_parsed(
      *command, "-n,--max", parse_count,
      [flags = flags.get()](std::uint64_t value) { flags->max = value; },
      "End after this many records [no limit].");
  command->add_flag("-f,--follow", flags->follow, "At the end, wait for new records.");
}

}  // namespace baton::cli
