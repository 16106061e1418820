#include "server/http/process_metrics.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

namespace baton {
namespace {

using prometheus::MetricType;

void add(Families& families, const char* name, const char* help, double value) {
  add_value(families.emplace_back(make_family(name, help, MetricType::Gauge)), {}, value);
}

/// The numbers of /proc/self/stat after the program's name, which may contain anything; the first
/// is the parent's process id, field 4 of proc(5).
std::array<double, 30> read_stat() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');
  std::array<double, 30> numbers{};
  if (name_end == std::string::npos || text.size() < name_end + 4) return numbers;
  std::istringstream rest(text.substr(name_end + 4));  // ") S "
  for (double& number : numbers) rest >> number;
  return numbers;
}
constexpr std::size_t stat_field(std::size_t number) { return number - 4; }

double boot_seconds() {
  timespec wall{};
  timespec since_boot{};
  ::clock_gettime(CLOCK_REALTIME, &wall);
  ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
  return static_cast<double>(wall.tv_sec - since_boot.tv_sec) +
         static_cast<double>(wall.tv_nsec - since_boot.tv_nsec) * 1e-9;
}

double open_descriptors() {
  std::error_code ignored;
  double count = 0;
  for (std::filesystem::directory_iterator at("/proc/self/fd", ignored), end; at != end;
       at.increment(ignored)) {
    ++count;
  }
  return count == 0 ? 0 : count - 1;  // Without the descriptor of this listing.
}

void add_disk(const std::string& folder, Families& families) {
  struct statvfs disk{};
  if (folder.empty() || ::statvfs(folder.c_str(), &disk) != 0) return;
  const auto block = static_cast<double>(disk.f_frsize);
  add(families, "baton_disk_free_bytes", "Free space on the data folder's disk.",
      static_cast<double>(disk.f_bavail) * block);
  add(families, "baton_disk_size_bytes", "Size of the data folder's disk.",
      static_cast<double>(disk.f_blocks) * block);
}

}  // namespace

void add_process_metrics(const ServerFacts& facts, Families& families) {
  add_value(families.emplace_back(make_family("baton_build_info",
                                              "1, with the version of this "
                                              "broker.",
                                              MetricType::Gauge)),
            {{"version", facts.version}}, 1);
  add_disk(facts.data_folder, families);
  const auto stat = read_stat();
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  add_value(families.emplace_back(make_family("process_cpu_seconds_total",
                                              "CPU time, user and system.", MetricType::Counter)),
            {}, (stat.at(stat_field(14)) + stat.at(stat_field(15))) / ticks);
  add(families, "process_threads", "Threads.", stat.at(stat_field(20)));
  add(families, "process_start_time_seconds", "When the process started, since 1970.",
      boot_seconds() + stat.at(stat_field(22)) / ticks);
  add(families, "process_virtual_memory_bytes", "Virtual memory.", stat.at(stat_field(23)));
  add(families, "process_resident_memory_bytes", "Memory in use.",
      stat.at(stat_field(24)) * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  add(families, "process_open_fds", "Open descriptors.", open_descriptors());
  rlimit allowed{};
  ::getrlimit(RLIMIT_NOFILE, &allowed);
  add(families, "process_max_fds", "The most descriptors that may be open.",
      static_cast<double>(allowed.rlim_cur));
}

}  // namespace baton
