#include "pipeline/app/pipeline.h"

#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/random.h"
#include "pipeline/app/parts.h"
#include "pipeline/app/registry.h"
#include "pipeline/engine/gate.h"

namespace baton::pipeline {

Result<std::unique_ptr<Pipeline>> Pipeline::open(PipelineConfig config) {
  std::unique_ptr<Pipeline> pipeline(new Pipeline(std::move(config)));
  PipelineConfig& kept = pipeline->config_;
  BATON_TRY(pipeline->source_, make_source(kept));
  kept.engine.lane.source = pipeline->source_->name();
  BATON_TRY(pipeline->schema_text_, read_schema(kept));
  BATON_TRY(pipeline->sink_, make_sink(kept, kept.engine.lane.source, pipeline->schema_text_));
  return pipeline;
}

void Pipeline::log(bool warning, const std::string& text) const {
  if (config_.engine.log) config_.engine.log(warning, text);
}

Status Pipeline::open_target() {
  if (dead_letters_ != nullptr) return {};
  BATON_TRY(dead_letters_, dead_letter_kind(config_.dead_letters.endpoint).open(config_));
  return {};
}

Error Pipeline::of_part(std::string_view what, std::string_view path, const Error& error) {
  part_ = what;
  // Some errors of a source are about another setting than its URL, and name that setting.
  const std::size_t end = error.text.find(": ");
  if (error.text.starts_with("source.") && end != std::string::npos) {
    return with_place(config_, error.text.substr(0, end), {error.code, error.text.substr(end + 2)});
  }
  return with_place(config_, path, error);
}

Status Pipeline::check_source(CheckReport& report) {
  auto said = source_->check();
  if (!said.has_value()) return of_part("source", "source.url", said.error());
  report.source = *std::move(said);
  if (!config_.engine.exactly_once) return {};
  auto origin = source_->origin();
  if (!origin.has_value()) return of_part("source", "source.url", origin.error());
  sink_->set_origin(*std::move(origin));
  return {};
}

Status Pipeline::check_letters(bool apply, CheckReport& report) {
  const auto wrong = [this](const Error& error) {
    return of_part("dead letters", "dead_letters.url", error);
  };
  auto missing = dead_letter_kind(config_.dead_letters.endpoint).find_missing(config_);
  if (!missing.has_value()) return wrong(missing.error());
  // Opening creates the target.
  if (apply || !missing->has_value()) {
    const Status opened = open_target();
    if (!opened.has_value()) return wrong(opened.error());
  }
  report.dead_letters = *std::move(missing);
  if (apply && report.dead_letters.has_value()) report.dead_letters->kind = Finding::Kind::made;
  return {};
}

Result<CheckReport> Pipeline::check(bool apply) {
  const Endpoint& letters = config_.dead_letters.endpoint;
  CheckReport report{.sink_name = sink_->name(),
                     .exactly_once = config_.engine.exactly_once,
                     .dead_letters_name = fmt::format("{}:{}", letters.kind_name(), letters.name)};
  BATON_TRY_STATUS(check_source(report));
  auto tables = sink_->check(apply);
  if (!tables.has_value()) return of_part("sink", "sink.url", tables.error());
  report.sink = *std::move(tables);
  BATON_TRY_STATUS(check_letters(apply, report));
  return report;
}

Status Pipeline::make_engine() {
  auto origin = source_->origin();
  if (!origin.has_value()) return of_part("source", "source.url", origin.error());
  sink_->set_origin(*std::move(origin));
  engine_ = std::make_unique<Engine>(config_.engine, *source_, *sink_, *dead_letters_);
  return {};
}

Result<Pipeline::Start> Pipeline::start(const std::function<bool()>& give_up) {
  Random random = Random(config_.engine.seed).fork("start");
  for (std::uint32_t attempt = 1;; ++attempt) {
    const auto report = check(true);
    Status made = report.has_value() ? make_engine() : report.error();
    if (made.has_value()) {
      end_waiting();
      for (const std::string& sentence : to_sentences(*report)) log(false, sentence);
      running_ = engine_.get();
      return Start::ready;
    }
    if (!may_pass(made.error())) return made.error();
    set_waiting(made.error());
    const Instant again = boot_time() + config_.engine.breaker.probe.steady(attempt, random);
    if (const auto ended = wait_until(again, give_up)) return *ended;
  }
}

std::optional<Pipeline::Start> Pipeline::wait_until(Instant again,
                                                    const std::function<bool()>& give_up) const {
  constexpr Duration kStep = std::chrono::milliseconds(20);
  do {
    if (give_up()) return Start::given_up;
    if (waits_too_long()) return Start::outage;
    std::this_thread::sleep_for(kStep);
  } while (boot_time() < again);
  return std::nullopt;
}

/// Logs when another part becomes unavailable, but not the same part again.
void Pipeline::set_waiting(const Error& error) {
  {
    const std::scoped_lock lock(mutex_);
    const bool is_news = !waiting_.has_value() || waiting_->what != part_;
    if (!waiting_.has_value()) waiting_since_ = boot_time();
    waiting_ = Waiting{.what = part_, .outage = {.why = error.text}};
    if (!is_news) return;
  }
  log(true, fmt::format("{} OUT: {}; waiting, nothing is read yet", part_, error.text));
}

void Pipeline::end_waiting() {
  const std::optional<Waiting> before = waiting();
  if (!before.has_value()) return;
  log(false, fmt::format("everything is there, after {:.0f} s",
                         std::chrono::duration<double>(before->outage.time).count()));
  const std::scoped_lock lock(mutex_);
  waiting_.reset();
}

std::optional<Pipeline::Waiting> Pipeline::waiting() const {
  const std::scoped_lock lock(mutex_);
  std::optional<Waiting> result = waiting_;
  if (result.has_value()) result->outage.time = boot_time() - waiting_since_;
  return result;
}

bool Pipeline::waits_too_long() const {
  const Duration limit = config_.engine.breaker.outage_max;
  const std::optional<Waiting> now = waiting();
  if (limit <= Duration::zero() || !now.has_value() || now->outage.time < limit) return false;
  log(true, fmt::format("{} out for longer than max_outage: ending", now->what));
  return true;
}

Status Pipeline::reload(PipelineConfig config) {
  BATON_TRY_STATUS(check_reload(config_, config));
  BATON_TRY(const std::string schema_text, read_schema(config));
  if (schema_text != schema_text_) {
    return Error{
        Errc::invalid_argument,
        fmt::format("schema: {} has changed, which takes effect at the next start: restart "
                    "the pipeline",
                    config.schema_file)};
  }
  config_.given = std::move(config.given);
  if (engine_ != nullptr) {
    engine_->reload(config.engine);
    return {};
  }
  config.engine.lane.source = config_.engine.lane.source;
  config_.engine = std::move(config.engine);
  return {};
}

}  // namespace baton::pipeline
