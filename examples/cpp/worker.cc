// worker STORE GROUP PARTITIONS: holds a share of the group's partitions until SIGTERM or SIGINT,
// then hands it over.
//
// Each partition is with exactly one worker of the group. STORE is where the workers agree:
// baton://HOST:PORT.

#include <signal.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <baton/client.h>

namespace client = baton::client;
using namespace std::chrono_literals;

/// Partitions whose work has to end. The worker's callbacks may not wait, and may come before there
/// is a Worker to answer to: they leave a note here.
class Ended {
 public:
  void add(baton::PartitionNumber partition, baton::Epoch epoch) {
    const std::scoped_lock lock(mutex_);
    ended_.emplace_back(partition, epoch);
  }
  void report(client::Worker& worker) {
    const std::scoped_lock lock(mutex_);
    for (const auto& [partition, epoch] : std::exchange(ended_, {})) {
      worker.stopped(partition, epoch);
    }
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<baton::PartitionNumber, baton::Epoch>> ended_;
};

baton::Status work(const client::WorkerOptions& options) {
  Ended ended;
  client::WorkerCallbacks callbacks;
  callbacks.acquired = [](baton::PartitionNumber partition, baton::Epoch epoch) {
    // Here the work on the partition begins. Before each effect it asks worker.may_act().
    std::printf("acquired partition %u, epoch %lu\n", partition.value,
                static_cast<unsigned long>(epoch.value));
  };
  callbacks.revoking = [&](baton::PartitionNumber partition, baton::Epoch epoch,
                           std::chrono::milliseconds /*time_left*/) {
    std::printf("gave up partition %u\n", partition.value);
    ended.add(partition, epoch);
  };
  callbacks.lost = [&](baton::PartitionNumber partition, baton::Epoch epoch,
                       const std::string& why) {
    std::printf("lost partition %u: %s\n", partition.value, why.c_str());
    ended.add(partition, epoch);
  };

  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // In all threads that start from here on.

  auto worker = client::Worker::open(options, callbacks);
  if (!worker) return worker.error();
  const timespec look{.tv_sec = 0, .tv_nsec = 20'000'000};
  while (sigtimedwait(&signals, nullptr, &look) < 0) {
    ended.report(*worker);
    if (auto end = worker->wait(0ms)) return *end;
  }
  worker->begin_close();
  while (true) {  // The worker gives up by itself when nobody answers.
    ended.report(*worker);
    if (auto end = worker->wait(20ms)) return *end;
  }
}

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // Line by line, into a file as well.
  if (argc != 4) {
    std::fprintf(stderr, "usage: worker STORE GROUP PARTITIONS\n");
    return 2;
  }
  client::WorkerOptions options;
  options.store = argv[1];
  options.group = argv[2];
  options.partitions = static_cast<std::uint32_t>(std::atoi(argv[3]));
  const baton::Status done = work(options);
  if (!done) {
    std::fprintf(stderr, "worker: %s\n", baton::to_string(done.error()).c_str());
    return 1;
  }
  std::printf("left\n");
  return 0;
}
