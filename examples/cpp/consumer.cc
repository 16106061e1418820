// consumer ADDRESS QUEUE COUNT: handles COUNT messages of the queue, and ends.

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <baton/client.h>

namespace client = baton::client;
using namespace std::chrono_literals;

baton::Status consume(const std::string& address, const std::string& queue, int count) {
  std::atomic<int> handled = 0;
  auto broker = client::Broker::open({.address = address});
  if (!broker) return broker.error();
  auto consumer =
      broker->queue(queue).consumer({}, [&](client::Delivery& delivery) -> client::Outcome {
        // What no handler has begun goes back to the queue, without an attempt counted.
        if (handled == count) return client::Outcome::release();
        std::printf("handled %s\n", delivery.message().payload.c_str());
        ++handled;
        return client::Outcome::ack();  // To throw, or Outcome::nack(), asks for another attempt.
      });
  if (!consumer) return consumer.error();

  while (handled < count) {
    // It ends by itself only when the broker refuses it: because there is no such queue, say.
    if (auto ended = consumer->wait(20ms)) return *ended;
  }
  return consumer->close(10s);  // Waits until the acknowledgements are on the broker's disk.
}

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: consumer ADDRESS QUEUE COUNT\n");
    return 2;
  }
  const baton::Status done = consume(argv[1], argv[2], std::atoi(argv[3]));
  if (!done) {
    std::fprintf(stderr, "consumer: %s\n", baton::to_string(done.error()).c_str());
    return 1;
  }
  return 0;
}
