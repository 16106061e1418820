#include "pipeline/local/stdout_sink.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "pipeline/ends/json_records.h"

namespace baton::pipeline {

using flow::SinkError;

class StdoutSink::Writer : public LaneWriter {
 public:
  explicit Writer(StdoutSink& sink) : sink_(sink) {}

  std::optional<SinkError> write(std::span<Item> items) override {
    lines_.clear();
    for (const Item& item : items) {
      const std::size_t begin = lines_.size();
      lines_ += item.record.value;
      // In JSON a newline can only be between two tokens.
      std::replace_if(
          lines_.begin() + static_cast<std::ptrdiff_t>(begin), lines_.end(),
          [](char c) { return c == '\n' || c == '\r'; }, ' ');
      lines_ += '\n';
    }
    if (auto error = sink_.write(lines_)) return error;
    for (Item& item : items) item.fate = Fate::applied;
    return std::nullopt;
  }

 private:
  StdoutSink& sink_;
  std::string lines_;
};

std::unique_ptr<Preparer> StdoutSink::preparer() {
  return json_preparer(options_.schema, options_.document_bytes_max);
}

std::unique_ptr<LaneWriter> StdoutSink::writer(std::uint32_t /*lane*/) {
  return std::make_unique<Writer>(*this);
}

std::optional<SinkError> StdoutSink::write(const std::string& lines) {
  const std::scoped_lock lock(mutex_);
  for (std::string_view rest = lines; !rest.empty();) {
    const ssize_t written = ::write(options_.file, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      return SinkError{.error_class = flow::ErrorClass::outage,
                       .code = std::to_string(errno),
                       .text = std::generic_category().message(errno)};
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  return std::nullopt;
}

}  // namespace baton::pipeline
