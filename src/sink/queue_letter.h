#pragma once

#include <map>
#include <string>
#include <string_view>

#include <baton/message.h>

#include "base/result.h"
#include "engine/dead_letter.h"
#include "engine/record.h"

namespace baton::pipeline {

/// A dead letter as a message of a queue, and back.
///
/// The payload is the record's value, its headers are the message's, beside those of the letter,
/// and its key is `baton-key`: so any tool can read it. A record that does not fit into that
/// (header names that repeat, bytes that are not UTF-8, more than a message may have) is packed
/// into the payload, and `baton-packed` says so:
///
///   blob key, varint number of headers, each: blob name, blob value; blob value
///
/// where a blob is a varint length and the bytes.
client::NewMessage to_message(const DeadLetter& letter);

struct StoredLetter {
  Record record;                             // As it came from the source.
  std::map<std::string, std::string> about;  // The letter's own headers: baton-class, ...

  /// Of a header that is not there: empty.
  [[nodiscard]] std::string_view what(const std::string& name) const;
};
Result<StoredLetter> from_message(const client::Headers& headers, std::string_view payload);

}  // namespace baton::pipeline
