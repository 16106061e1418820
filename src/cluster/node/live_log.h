#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/loglet/memory_loglet.h"

namespace baton::cluster {

/// A MemoryLog whose messages travel by themselves, on a thread: for code that has threads.
class LiveLog {
 public:
  LiveLog() : thread_([this] { run(); }) {}
  LiveLog(const LiveLog&) = delete;
  LiveLog& operator=(const LiveLog&) = delete;
  ~LiveLog() {
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
    }
    asked_.notify_all();
    thread_.join();
  }

  /// The log must outlive its clients.
  std::unique_ptr<loglet::Loglet> client() { return std::make_unique<Client>(*this); }
  /// Does something with the log, alone.
  template <class Do>
  auto with(Do something) {
    const std::scoped_lock lock(mutex_);
    return something(log_);
  }

 private:
  class Client final : public loglet::Loglet {
   public:
    explicit Client(LiveLog& live) : live_(live), inner_(live.log_) {
      const std::scoped_lock lock(live_.wakes_mutex_);
      live_.wakes_.emplace_back(this, nullptr);
    }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;
    ~Client() override {
      const std::scoped_lock lock(live_.wakes_mutex_);
      std::erase_if(live_.wakes_, [this](const auto& wake) { return wake.first == this; });
    }
    [[nodiscard]] std::size_t entry_bytes_max() const override { return inner_.entry_bytes_max(); }
    void append(std::uint64_t request, std::string_view bytes,
                std::optional<std::uint64_t> expected) override {
      ask([&] { inner_.append(request, bytes, expected); });
    }
    void read(std::uint64_t request, std::uint64_t after) override {
      ask([&] { inner_.read(request, after); });
    }
    void trim(std::uint64_t request, std::uint64_t before) override {
      ask([&] { inner_.trim(request, before); });
    }
    void redial() override {
      ask([&] { inner_.redial(); });
    }
    std::vector<Answer> take_answers() override {
      const std::scoped_lock lock(live_.mutex_);
      return inner_.take_answers();
    }
    void set_wake(std::function<void()> wake) override {
      const std::scoped_lock lock(live_.wakes_mutex_);
      for (auto& [client, known] : live_.wakes_) {
        if (client == this) known = wake;
      }
    }

   private:
    template <class Ask>
    void ask(Ask something) {
      {
        const std::scoped_lock lock(live_.mutex_);
        something();
        live_.news_ = true;
      }
      live_.asked_.notify_all();
    }

    LiveLog& live_;
    loglet::MemoryLoglet inner_;
  };

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      asked_.wait(lock, [&] { return news_ || stopping_; });
      if (stopping_) return;
      while (log_.arrive()) {
      }
      news_ = false;
      lock.unlock();
      {
        const std::scoped_lock wakes_lock(wakes_mutex_);
        for (const auto& [client, wake] : wakes_) {
          if (wake != nullptr) wake();
        }
      }
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable asked_;
  loglet::MemoryLog log_{1};
  bool news_ = false;
  bool stopping_ = false;
  std::mutex wakes_mutex_;
  std::vector<std::pair<Client*, std::function<void()>>> wakes_;
  std::thread thread_;
};

}  // namespace baton::cluster
