#include "worker/guardian/worker_host.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "worker/runner/runner.h"

namespace baton::worker {
namespace {

using Kind = HostEvent::Kind;

// Handlers that are stopping are killed this long before the lease ends, unless it is very short.
constexpr Duration kStopMargin = std::chrono::milliseconds(200);
// The part of a lease in which handlers are told to stop because it was not renewed. After one lost
// renewal a fifth of the lease is left, at the longest heartbeat: that must not stop them.
constexpr int kNoticePart = 8;
// poll() uses a clock that stands still while the machine sleeps, so the thread checks the time at
// this interval.
constexpr Duration kLook = std::chrono::milliseconds(500);

client::WorkerTiming timing_of(const client::WorkerOptions& options) {
  if (options.timing.has_value()) return *options.timing;
  return client::worker_timing("default", options.store).value();
}

GuardianOptions guardian_options(const HostOptions& options) {
  const client::WorkerTiming timing = timing_of(options.worker);
  return {.group = options.worker.group,
          .command = options.command,
          .fenced = options.worker.fenced,
          .stop_margin = std::min<Duration>(kStopMargin, timing.lease / 8),
          .notice = std::min<Duration>(timing.drain, timing.lease / kNoticePart),
          .drain = timing.drain};
}

}  // namespace

WorkerHost::WorkerHost(HostOptions options)
    : options_(std::move(options)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Result<std::unique_ptr<WorkerHost>> WorkerHost::start(HostOptions options) {
  std::unique_ptr<WorkerHost> host(new WorkerHost(std::move(options)));
  if (!host->options_.command.empty()) {
    auto guardian = GuardianProcess::start(guardian_options(host->options_));
    if (!guardian.has_value()) return guardian.error();
    host->guardian_ = *std::move(guardian);
  }
  auto worker = client::Worker::open(host->options_.worker, host->callbacks());
  if (!worker.has_value()) return worker.error();
  host->worker_ = std::make_unique<client::Worker>(*std::move(worker));
  host->tell({.kind = Kind::started, .at = boot_time()});
  // Events that the worker sent in the meantime wait for this thread.
  host->thread_ = std::thread([raw = host.get()] { raw->run(); });
  return host;
}

WorkerHost::~WorkerHost() {
  if (thread_.joinable()) {
    ending_ = true;
    post([] {});
    thread_.join();
  }
  worker_.reset();
  guardian_.reset();
  ::close(wake_);
}

client::WorkerCallbacks WorkerHost::callbacks() {
  client::WorkerCallbacks calls;
  calls.acquired = [this](PartitionNumber partition, Epoch epoch) {
    post([this, task = HandlerTask{partition.value, epoch.value}, at = boot_time()] {
      tell({.kind = Kind::acquired, .at = at, .task = task});
      if (guardian_) book_.acquired(task, boot_time());
    });
  };
  calls.revoking = [this](PartitionNumber partition, Epoch epoch, Duration time_left) {
    post([this, task = HandlerTask{partition.value, epoch.value}, at = boot_time(), time_left] {
      tell({.kind = Kind::revoking, .at = at, .task = task, .time = time_left});
      if (guardian_) return book_.revoking(task.partition, at + time_left);
      act(HandlerBook::Stopped{task});
    });
  };
  calls.lost = [this](PartitionNumber partition, Epoch epoch, const std::string& why) {
    post([this, task = HandlerTask{partition.value, epoch.value}, at = boot_time(), why] {
      tell({.kind = Kind::lost, .at = at, .task = task, .text = why, .warning = true});
      if (guardian_) return book_.lost(task.partition);
      act(HandlerBook::Stopped{task});
    });
  };
  calls.renewed = [this](Duration deadline) {
    post([this, at = boot_time(), deadline] {
      tell({.kind = Kind::renewed, .at = at, .time = deadline});
      if (guardian_) book_.renewed({deadline.count()});
    });
  };
  calls.note = [this](bool warning, const std::string& text) {
    post([this, at = boot_time(), warning, text] {
      tell({.kind = Kind::note, .at = at, .text = text, .warning = warning});
    });
  };
  return calls;
}

void WorkerHost::post(Task task) {
  {
    const std::scoped_lock lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  constexpr std::uint64_t kOne = 1;
  // The write fails only when the counter is full, and then the thread is awake anyway.
  [[maybe_unused]] const ssize_t written = ::write(wake_, &kOne, sizeof kOne);
}

void WorkerHost::run() {
  while (!ending_) {
    wait_for_something();
    run_tasks();
    book_.tick(boot_time());
    perform();
    listen_to_guardian();
    perform();
  }
  run_tasks();  // Events that are still queued.
}

void WorkerHost::wait_for_something() {
  std::array<pollfd, 2> wanted{};
  wanted[0] = {.fd = wake_, .events = POLLIN, .revents = 0};
  wanted[1] = {.fd = -1, .events = 0, .revents = 0};
  if (guardian_ && !guardian_lost_) {
    wanted[1] = {
        .fd = guardian_->channel().fd(), .events = guardian_->channel().events(), .revents = 0};
  }
  const Duration wait = std::clamp(book_.next_deadline() - boot_time(), Duration::zero(), kLook);
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
  ::poll(wanted.data(), wanted.size(), static_cast<int>(ms));
  std::uint64_t ignored = 0;
  [[maybe_unused]] const ssize_t read = ::read(wake_, &ignored, sizeof ignored);
}

void WorkerHost::run_tasks() {
  std::deque<Task> tasks;
  {
    const std::scoped_lock lock(mutex_);
    tasks.swap(tasks_);
  }
  for (const Task& task : tasks) {
    task();
    perform();
  }
}

void WorkerHost::listen_to_guardian() {
  if (!guardian_ || guardian_lost_) return;
  std::vector<std::string> lines;
  const bool connected = guardian_->channel().flush() && guardian_->channel().receive(lines);
  for (const std::string& line : lines) {
    const auto report = parse_guard_report(line);
    if (report.has_value()) std::visit([this](const auto& known) { on(known); }, *report);
  }
  if (!connected) guardian_gone();
}

/// Without the guardian nothing kills the handlers at the deadline: this worker cannot go on.
void WorkerHost::guardian_gone() {
  guardian_lost_ = true;
  for (const auto& [partition, pid] : pids_) ::kill(-pid, SIGKILL);
  tell({.kind = Kind::note,
        .at = boot_time(),
        .text = "the guardian of the handlers has died: leaving",
        .warning = true});
  worker_->begin_close();
  book_.guardian_gone();
}

void WorkerHost::perform() {
  for (const auto& action : book_.take_actions()) {
    std::visit([this](const auto& known) { act(known); }, action);
  }
}

void WorkerHost::act(const GuardCommand& command) {
  if (!guardian_lost_) guardian_->channel().send(encode(command));
}

void WorkerHost::act(const HandlerBook::Stopped& stopped) {
  pids_.erase(stopped.task.partition);
  tell({.kind = Kind::stopped, .at = boot_time(), .task = stopped.task});
  worker_->stopped(PartitionNumber{stopped.task.partition}, Epoch{stopped.task.epoch});
}

void WorkerHost::act(const HandlerBook::WillRestart& restart) {
  pids_.erase(restart.task.partition);
  tell({.kind = Kind::handler_ended,
        .at = boot_time(),
        .task = restart.task,
        .warning = true,
        .lease_over = restart.lease_over,
        .time = restart.delay,
        .code = restart.code});
}

void WorkerHost::on(const HandlerStarted& report) {
  pids_[report.task.partition] = report.pid;
  tell({.kind = Kind::handler_started, .at = boot_time(), .task = report.task, .pid = report.pid});
}

void WorkerHost::on(const HandlerEnded& report) { book_.ended(report, boot_time()); }

void WorkerHost::tell(HostEvent event) const {
  event.worker = worker_->id();
  if (options_.tell) options_.tell(event);
}

void WorkerHost::leave(bool for_good) { worker_->begin_close(for_good); }

void WorkerHost::hurry() {
  post([this] { book_.hurry(); });
}

void WorkerHost::signal(int number) {
  post([this, number] {
    if (guardian_) book_.signal(number);
  });
}

std::optional<Status> WorkerHost::wait_for(Duration time) {
  auto end = worker_->wait(std::chrono::ceil<std::chrono::milliseconds>(time));
  if (!end.has_value() || !end->has_value() || !guardian_lost_) return end;
  return Error{Errc::internal, "the guardian of the handlers died; everything was handed over"};
}

}  // namespace baton::worker
