#include "storage/journal/journal_opening.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "storage/journal/segment_scan.h"

namespace baton {
namespace {

constexpr std::string_view kJournalSuffix = ".journal";
constexpr std::string_view kAdvice =
    "Keep a copy of the folder, check the disk, and restore the data folder from a backup";

std::string parent_of(const std::string& folder) {
  const auto slash = folder.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : folder.substr(0, slash);
}

std::optional<std::uint64_t> parse_spare_name(std::string_view name, std::string_view suffix) {
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
  if (parsed.ec != std::errc{}) return std::nullopt;
  if (name != spare_name(number, suffix)) return std::nullopt;
  return number;
}

/// One opening of one folder. Segments are read one at a time, in order, until the chain of
/// positions breaks: the journal ends there, unless something later proves that it went on.
class JournalOpening {
 public:
  JournalOpening(Disk& disk, const std::string& folder) : disk_(disk), folder_(folder) {}

  Result<OpenedJournal> run() {
    BATON_TRY_STATUS(disk_.make_folder(folder_));
    BATON_TRY_STATUS(disk_.sync_folder(parent_of(folder_)));
    BATON_TRY_STATUS(sort_files());
    BATON_TRY_STATUS(read_chain());
    BATON_TRY_STATUS(check_nothing_durable_is_cut());
    BATON_TRY_STATUS(cut());
    BATON_TRY_STATUS(make_durable());
    return std::move(opened_);
  }

 private:
  struct Live {
    std::string name;
    Position first;
  };

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }

  [[nodiscard]] Error corrupt(const std::string& name, std::uint64_t offset,
                              std::string_view what) const {
    return {Errc::journal_corrupt,
            fmt::format("{} at offset {}: {}. {}", path(name), offset, what, kAdvice)};
  }

  Status sort_files() {
    BATON_TRY(const std::vector<std::string> names, disk_.list(folder_));
    for (const std::string& name : names) {
      if (parse_spare_name(name, kUnfinishedSuffix)) BATON_TRY_STATUS(disk_.remove(path(name)));
      if (const auto number = parse_spare_name(name, kSpareSuffix)) take_spare(name, *number);
      if (!name.ends_with(kJournalSuffix)) continue;
      const auto first = parse_segment_name(name);
      if (!first) return corrupt(name, 0, "this is not the name of a journal segment");
      live_.push_back({name, *first});
    }
    return {};
  }

  void take_spare(const std::string& name, std::uint64_t number) {
    opened_.spares.push_back(name);
    opened_.spare_number = std::max(opened_.spare_number, number + 1);
  }

  /// Reads segments as long as each begins where the one before it ended.
  Status read_chain() {
    if (!live_.empty()) opened_.next = live_.front().first;
    for (; chained_ < live_.size(); ++chained_) {
      const Live& live = live_[chained_];
      if (live.first < opened_.next) {
        return corrupt(live.name, 0, "its rounds repeat those of the segment before it");
      }
      if (live.first > opened_.next) return {};
      BATON_TRY(std::unique_ptr<File> file, disk_.open(path(live.name)));
      BATON_TRY(const std::optional<SegmentHeader> header, read_header(live, *file));
      // Only the very first segment, or one whose predecessor still exists, can lack a header.
      if (!header && chained_ == 0 && live.first != Position{1}) {
        return corrupt(live.name, 0, "the segment's header is lost");
      }
      if (!header) return {};
      BATON_TRY_STATUS(read_segment(live, std::move(file), *header));
    }
    return {};
  }

  /// nullopt when the header never reached the disk. Any other content than that or a good header
  /// is damage: the header lies within one sector, and its place was durably zero before.
  Result<std::optional<SegmentHeader>> read_header(const Live& live, const File& file) const {
    BATON_TRY(const std::uint64_t size, file.size());
    BATON_TRY(const std::string block, file.read_at(0, kSegmentHeaderBytes));
    if (block.size() == kSegmentHeaderBytes && is_unused_segment_header(block)) {
      return std::optional<SegmentHeader>{};
    }
    const auto header = decode_segment_header(block);
    if (!header && header.error().code == Errc::store_too_new) {
      return Error{Errc::store_too_new,
                   fmt::format("{}: {}", path(live.name), header.error().text)};
    }
    if (!header) return corrupt(live.name, 0, header.error().text);
    if (header->first != live.first) {
      return corrupt(live.name, 0,
                     fmt::format("the segment begins with round {}, not with the one that "
                                 "its name says",
                                 header->first.value));
    }
    if (header->bytes != size) {
      return corrupt(live.name, size, fmt::format("the file must be {} bytes long", header->bytes));
    }
    return std::optional{*header};
  }

  Status read_segment(const Live& live, std::unique_ptr<File> file, const SegmentHeader& header) {
    BATON_TRY(const std::string bytes, file->read_at(0, header.bytes));
    auto segment = std::make_shared<Segment>(Segment{.name = live.name,
                                                     .file = std::move(file),
                                                     .header = header,
                                                     .end = header.first,
                                                     .used = kSegmentHeaderBytes,
                                                     .marks = {}});
    SegmentReader reader(bytes, header);
    while (const auto found = reader.next()) {
      segment->add_round(round_bytes(found->round.facts.size()));
      claimed_ = std::max(claimed_, found->durable);
    }
    BATON_ASSERT(segment->used == reader.offset() && segment->end == reader.position());
    opened_.next = segment->end;
    const bool goes_on = chained_ + 1 < live_.size() && live_[chained_ + 1].first == opened_.next;
    if (!goes_on) beyond_ = search_later_rounds(bytes, header.id, {segment->used, segment->end});
    opened_.segments.push_back(std::move(segment));
    return {};
  }

  /// A broken chain is a torn tail only if no later round was written when the missing round was
  /// known to be durable.
  Status check_nothing_durable_is_cut() {
    BATON_TRY_STATUS(check_claim(
        beyond_.durable, opened_.segments.empty() ? std::string() : opened_.segments.back()->name));
    for (std::size_t i = chained_; i < live_.size(); ++i) {
      BATON_TRY(const std::unique_ptr<File> file, disk_.open(path(live_[i].name)));
      BATON_TRY(const std::optional<SegmentHeader> header, read_header(live_[i], *file));
      if (!header) continue;
      BATON_TRY(const std::string bytes, file->read_at(0, header->bytes));
      const LaterRounds later =
          search_later_rounds(bytes, header->id, {kSegmentHeaderBytes, header->first});
      BATON_TRY_STATUS(check_claim(later.durable, live_[i].name));
    }
    return {};
  }

  [[nodiscard]] Status check_claim(Position durable, const std::string& witness) const {
    if (durable <= opened_.next) return {};
    const std::string what = fmt::format(
        "round {} is damaged or missing, but {} shows that every round before {} was durable",
        opened_.next.value, witness, durable.value);
    if (opened_.segments.empty()) return corrupt(live_.front().name, 0, what);
    return corrupt(opened_.segments.back()->name, opened_.segments.back()->used, what);
  }

  /// Makes what lies beyond the end harmless, so that no later opening takes it for rounds that
  /// follow those still to come. Nothing is appended before all steps are done, and a crash between
  /// two steps only leaves less to cut.
  Status cut() {
    BATON_TRY_STATUS(cut_segments());
    return cut_rounds();
  }

  /// Removes the newest first, each one durably: a crash between two removals must not leave a
  /// segment whose predecessors are gone, because it would look like the beginning of a trimmed
  /// journal.
  Status cut_segments() {
    for (; live_.size() > chained_; live_.pop_back()) {
      const std::string spare = spare_name(opened_.spare_number, kSpareSuffix);
      BATON_TRY_STATUS(disk_.rename(path(live_.back().name), path(spare)));
      BATON_TRY_STATUS(disk_.sync_folder(folder_));
      take_spare(spare, opened_.spare_number);
    }
    return {};
  }

  Status cut_rounds() {
    if (beyond_.end == 0) return {};
    Segment& last = *opened_.segments.back();
    const std::string zeros(std::size_t{1} << 20U, '\0');
    for (std::uint64_t at = last.used; at < beyond_.end; at += zeros.size()) {
      const std::uint64_t count = std::min<std::uint64_t>(zeros.size(), beyond_.end - at);
      BATON_TRY_STATUS(last.file->write_at(at, std::string_view(zeros).substr(0, count)));
    }
    return last.file->sync();
  }

  /// After a crash of the process alone, rounds may be only in the memory of the system, and the
  /// reader will act on them.
  Status make_durable() {
    for (const auto& segment : opened_.segments) {
      if (segment->end > claimed_ || segment == opened_.segments.back()) {
        BATON_TRY_STATUS(segment->file->sync());
      }
      segment->established = true;
    }
    return disk_.sync_folder(folder_);
  }

  Disk& disk_;
  const std::string& folder_;
  std::vector<Live> live_;
  std::size_t chained_ = 0;  // How many of live_ belong to the chain.
  Position claimed_{0};      // The furthest claim of the rounds that are kept.
  LaterRounds beyond_;       // What lies in the last segment of the chain, beyond its end.
  OpenedJournal opened_;
};

}  // namespace

std::string spare_name(std::uint64_t number, std::string_view suffix) {
  return fmt::format("{:020}{}", number, suffix);
}

Result<OpenedJournal> open_journal_folder(Disk& disk, const std::string& folder) {
  return JournalOpening(disk, folder).run();
}

}  // namespace baton
