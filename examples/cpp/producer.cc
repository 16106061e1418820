// producer ADDRESS QUEUE COUNT: creates the queue if it is not there, and sends COUNT messages to
// it.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <baton/client.h>

namespace client = baton::client;
using namespace std::chrono_literals;

baton::Status produce(const std::string& address, const std::string& queue, int count) {
  auto broker = client::Broker::open({.address = address});
  if (!broker) return broker.error();
  client::Queue orders = broker->queue(queue);
  // Creating a queue that is there with the same settings is fine.
  auto created = orders.create({.dedup_window = 10min});
  if (!created) return created.error();

  auto producer = orders.producer();
  if (!producer) return producer.error();
  for (int i = 0; i < count; ++i) {
    client::NewMessage message;
    message.payload = "order " + std::to_string(i);
    message.dedup_id = queue + "-" + std::to_string(i);  // Sent twice, it is stored once.
    producer->send(std::move(message), [](const client::EnqueueResult& result) {
      if (!result.ok()) std::printf("refused: %s\n", baton::to_string(*result.error).c_str());
    });
  }
  return producer->close(30s);  // Waits until each message is on the broker's disk.
}

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: producer ADDRESS QUEUE COUNT\n");
    return 2;
  }
  const int count = std::atoi(argv[3]);
  const baton::Status done = produce(argv[1], argv[2], count);
  if (!done) {
    std::fprintf(stderr, "producer: %s\n", baton::to_string(done.error()).c_str());
    return 1;
  }
  std::printf("sent %d messages to %s\n", count, argv[2]);
  return 0;
}
