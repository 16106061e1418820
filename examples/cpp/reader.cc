// reader ADDRESS STREAM GROUP COUNT: reads COUNT records of the stream as a member of a group, and
// leaves it.
//
// Of all readers of a group, one at a time gets the records of a partition; the others stand by.
// When the active one leaves or dies, another goes on where it was. Start several of them, and kill
// the active one.

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <baton/client.h>

namespace client = baton::client;
using namespace std::chrono_literals;

baton::Status read(const std::string& address, const std::string& stream, const std::string& group,
                   int count) {
  std::atomic<int> seen = 0;
  client::StreamConsumerOptions options;
  options.group = group;
  options.single_active = true;
  options.from = client::StartFrom::first();  // Where a group begins that has read nothing yet.
  options.on_active = [](const client::StreamPosition& position) {
    std::printf("active on partition %u, epoch %lu\n", position.partition.value,
                static_cast<unsigned long>(position.epoch.value));
  };
  auto broker = client::Broker::open({.address = address});
  if (!broker) return broker.error();
  auto consumer = broker->stream(stream).consumer(options, [&](client::RecordBatch& batch) {
    for (const client::Record& record : batch.records) {
      if (seen == count) {
        batch.next_offset = record.offset;  // The next member of the group begins here.
        return;
      }
      // The epoch grows with each change of the seat. Whatever is written for a record should be
      // refused when it comes with an epoch smaller than one seen before.
      std::printf("record %ld: %s\n", static_cast<long>(record.offset.value),
                  record.value.value_or("").c_str());
      ++seen;
    }
  });
  if (!consumer) return consumer.error();
  while (seen < count) {
    if (auto ended = consumer->wait(20ms)) return *ended;
  }
  return consumer->close(10s);  // Stores the offset, and hands the seat over.
}

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // Line by line, into a file as well.
  if (argc != 5) {
    std::fprintf(stderr, "usage: reader ADDRESS STREAM GROUP COUNT\n");
    return 2;
  }
  const baton::Status done = read(argv[1], argv[2], argv[3], std::atoi(argv[4]));
  if (!done) {
    std::fprintf(stderr, "reader: %s\n", baton::to_string(done.error()).c_str());
    return 1;
  }
  return 0;
}
