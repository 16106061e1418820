#include "base/assert.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/reading_files.h"

namespace baton {
namespace {

thread_local const ReadingFiles* g_reading = nullptr;  // NOLINT: one for each thread.

}  // namespace

ReadingFiles::ReadingFiles(std::string what) : what_(std::move(what)), before_(g_reading) {
  g_reading = this;
}

ReadingFiles::~ReadingFiles() { g_reading = before_; }

const std::string* ReadingFiles::now() {
  return g_reading == nullptr ? nullptr : &g_reading->what_;
}

void assertion_failed(const char* condition, const char* file, int line) {
  if (const std::string* const what = ReadingFiles::now(); what != nullptr) {
    std::fprintf(
        stderr,
        "baton: the files in '%s' do not fit together (%s, %s:%d); restore the data folder "
        "from a copy\n",
        what->c_str(), condition, file, line);
    std::_Exit(kExitDamaged);
  }
  std::fprintf(stderr, "baton: assertion failed: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace baton
