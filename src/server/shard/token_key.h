#pragma once

#include <string>

#include "base/result.h"
#include "base/siphash.h"
#include "storage/disk/disk.h"

namespace baton {

/// The key that seals the lease tokens of the data folder: the file TOKEN-KEY, drawn and written if
/// it does not exist or is incomplete. Leases whose tokens were sealed with another key cannot be
/// acked and end at their deadlines. On a full disk the key is valid for this start only.
Result<SipKey> open_token_key(Disk& disk, const std::string& data);

}  // namespace baton
