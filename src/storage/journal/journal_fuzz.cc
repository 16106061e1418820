// Opens a folder whose only segment is made of the input: once as it is, once as the rounds of a
// segment with a good header, and once more with the checksums of those rounds corrected, since no
// fuzzer guesses a CRC. A journal that opens must accept another round and keep it.

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "sim/fake_disk.h"
#include "storage/journal/journal.h"
#include "storage/journal/journal_format.h"

namespace baton {
namespace {

constexpr SegmentId kSegment{7};
constexpr Position kFirst{1};
constexpr JournalOptions kOptions{.segment_bytes = 8192, .spares_max = 1};
const std::string kFolder = "journal";

std::string with_header(std::string_view rounds) {
  const std::uint64_t padded =
      (rounds.size() + kRoundAlignment - 1) / kRoundAlignment * kRoundAlignment;
  std::string bytes;
  encode_segment_header({kSegment, kFirst, kSegmentHeaderBytes + padded}, bytes);
  bytes.append(rounds);
  bytes.resize(kSegmentHeaderBytes + padded, '\0');
  return bytes;
}

/// Takes lengths, positions and claims from the bytes, and writes fitting checksums over theirs.
std::string with_good_checksums(std::string bytes) {
  std::uint64_t at = kSegmentHeaderBytes;
  for (Position next = kFirst; at + kRoundHeaderBytes <= bytes.size(); ++next.value) {
    const auto byte = [&](std::size_t offset) {
      return static_cast<std::uint8_t>(bytes[at + offset]);
    };
    const std::uint64_t rest = bytes.size() - at - kRoundHeaderBytes;
    const std::uint64_t facts_bytes =
        std::min<std::uint64_t>(rest, byte(4) + std::uint64_t{byte(5)} * 256);
    // Mostly the next position, sometimes another one.
    const Position position{next.value + byte(16) / 128};
    const Position durable{std::min<std::uint64_t>(byte(32), position.value)};
    const std::string facts = bytes.substr(at + kRoundHeaderBytes, facts_bytes);
    std::string round;
    encode_round(kSegment, {.position = position, .now = Instant{byte(24)}, .facts = facts},
                 durable, round);
    bytes.replace(at, round.size(), round);
    at += round.size();
  }
  return bytes;
}

/// The number of rounds, from the first one that is there.
std::uint64_t count_rounds(const Journal& journal, Position from) {
  std::uint64_t count = 0;
  const Status status = journal.read(from, [&](const Round& round) -> Status {
    BATON_ASSERT(round.position.value == from.value + count);
    ++count;
    return {};
  });
  BATON_ASSERT(status.has_value());
  BATON_ASSERT(journal.next().value == from.value + count);
  return count;
}

void open_segment(const std::string& bytes) {
  FakeDisk disk(1);
  BATON_ASSERT(disk.make_folder(kFolder).has_value());
  auto file = disk.create(kFolder + "/" + segment_name(kFirst)).value();
  BATON_ASSERT(file->write_at(0, bytes).has_value());
  auto journal = open_file_journal(disk, kFolder, kOptions);
  if (!journal) return;
  const std::uint64_t before = count_rounds(**journal, kFirst);
  BATON_ASSERT((*journal)->prepare().has_value());
  BATON_ASSERT((*journal)->append((*journal)->next(), Instant{1}, "one more").has_value());
  BATON_ASSERT((*journal)->sync().has_value());
  disk.crash();
  journal = open_file_journal(disk, kFolder, kOptions);
  BATON_ASSERT(journal.has_value());
  BATON_ASSERT(count_rounds(**journal, kFirst) == before + 1);
}

}  // namespace
}  // namespace baton

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size > 65536) return 0;
  const std::string input(reinterpret_cast<const char*>(bytes), size);  // NOLINT
  baton::open_segment(input);
  baton::open_segment(baton::with_header(input));
  baton::open_segment(baton::with_good_checksums(baton::with_header(input)));
  return 0;
}
