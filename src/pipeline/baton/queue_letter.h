#pragma once

#include <string>
#include <string_view>

#include <baton/message.h>

#include "base/result.h"
#include "pipeline/engine/dead_letter.h"
#include "pipeline/engine/stored_letter.h"

namespace baton::pipeline {

/// Converts a dead letter into a message of a queue, and back.
///
/// The payload is the record's value, the message's headers are the record's and the letter's, and
/// the record's key is the header `baton-key`: so any tool can read it. A record that does not fit
/// into this form (header names that repeat, bytes that are not UTF-8, more than a message may
/// have) is packed into the payload, and the header `baton-packed` says so:
///
///   blob key, varint number of headers, each: blob name, blob value; blob value
///
/// where a blob is a varint length and the bytes.
client::NewMessage to_message(const DeadLetter& letter);

Result<StoredLetter> from_message(const client::Headers& headers, std::string_view payload);

}  // namespace baton::pipeline
