#pragma once

#include "base/rows.h"

namespace baton {

/// What of `older` still says something when `newer` is applied after it.
RowBatch surviving(const RowBatch& older, const RowBatch& newer);

}  // namespace baton
