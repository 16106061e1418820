#pragma once

#include <string>

#include "base/result.h"
#include "base/siphash.h"
#include "storage/disk/disk.h"

namespace baton {

/// The key that the lease tokens of the data folder are sealed with: the file TOKEN-KEY, drawn and
/// written when it is not there or not whole. Leases whose tokens were sealed with another key end
/// at their deadlines, and nobody can ack them. On a full disk the key lasts for this start only.
Result<SipKey> open_token_key(Disk& disk, const std::string& data);

}  // namespace baton
