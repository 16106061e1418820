#include "server/session/page.h"

#include <charconv>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/crc32c.h"

namespace baton {
namespace {

// A token, before it becomes base64:
//   byte     1, the version
//   4 bytes  CRC-32C of the list's name, a zero byte, and the key; least significant byte first
//   bytes    the key
// The checksum finds tokens of another list and typing errors. It keeps no secret: a client
// that makes up a token gets a page that it could have asked for.
constexpr char kVersion = 1;
constexpr std::size_t kHeadBytes = 5;

constexpr char kSeparator = '\0';  // Not allowed in names.

std::string head_of(std::string_view list, std::string_view key) {
  const std::uint32_t sum = crc32c(key, crc32c({&kSeparator, 1}, crc32c(list)));
  std::string head(1, kVersion);
  for (unsigned shift = 0; shift < 32; shift += 8) head.push_back(static_cast<char>(sum >> shift));
  return head;
}

Error bad_token() {
  return {Errc::invalid_argument,
          "page_token is not a token of this list: take next_page_token of the page before, and "
          "repeat that page's other fields"};
}

}  // namespace

Result<Page> read_page(std::string list, std::int64_t size, std::string_view token) {
  Page page;
  page.list = std::move(list);
  if (size < 0 || size > static_cast<std::int64_t>(limits::kPageItems)) {
    return Error{Errc::invalid_argument,
                 fmt::format("page_size is {}; it may be 0 (as many as allowed) to {}", size,
                             limits::kPageItems)};
  }
  if (size != 0) page.items_max = static_cast<std::size_t>(size);
  if (token.empty()) return page;
  if (token.size() > limits::kPageTokenBytes) return bad_token();
  const std::optional<std::string> bytes = from_base64(token);
  if (!bytes.has_value() || bytes->size() <= kHeadBytes) return bad_token();
  page.after = bytes->substr(kHeadBytes);
  if (!bytes->starts_with(head_of(page.list, page.after))) return bad_token();
  return page;
}

std::string page_token(std::string_view list, std::string_view last_key) {
  return base64(head_of(list, last_key) + std::string(last_key));
}

std::string to_key(const GroupId& group) {
  return fmt::format("{}{}{}{}{}", group.stream, kSeparator, group.partition, kSeparator,
                     group.name);
}

Result<std::optional<GroupId>> group_after(const Page& page) {
  if (page.after.empty()) return std::optional<GroupId>();
  const std::size_t first = page.after.find(kSeparator);
  const std::size_t second = page.after.find(kSeparator, first + 1);
  if (first == std::string::npos || second == std::string::npos) return bad_token();
  GroupId group{
      .stream = page.after.substr(0, first), .partition = 0, .name = page.after.substr(second + 1)};
  const char* const end = page.after.data() + second;
  const auto read = std::from_chars(page.after.data() + first + 1, end, group.partition);
  if (read.ec != std::errc{} || read.ptr != end) return bad_token();
  return std::optional(std::move(group));
}

}  // namespace baton
